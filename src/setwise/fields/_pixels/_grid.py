"""Edges of a grid of pixels or voxels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, combinations, product
from math import comb, prod

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BATCH,
    MOST_AXES,
    MOST_RESULTS,
    IntArray,
    as_array,
    as_count,
)
from setwise.fields._edges import Grid, remember_grid

Offset = tuple[int, ...]


def grid_edges(shape: int | Sequence[int], connectivity: int | ArrayLike | None = None) -> IntArray:
    """Return pairs of neighbours in a grid, each pair once.

    Pixels are numbered in C order, as in ``image.ravel()``. Edges are sorted by direction, then by
    their first pixel. Directions are sorted by the number of coordinates that change, then as
    tuples: in an image the directions are right and down, and with 8 neighbours also down-left and
    down-right. So the first edges of a larger neighbourhood are those of a smaller one.

    Parameters
    ----------
    shape : int or sequence of int
        The grid's shape, of any number d of dimensions.
    connectivity : int or array-like of int of shape (K, d), optional
        The number of neighbours of an inner pixel: 4 (the default) or 8 in an image, 6, 18 or 26 in
        a volume, 2 in a row. Or, as in scikit-image, the number of coordinates in which neighbours
        may differ: 1 or 2 in an image, 1 to 3 in a volume, 1 in a row. Or the directions
        themselves, each an offset from a pixel to its neighbour; an edge is listed for each pixel
        that has the neighbour.

    Returns
    -------
    array of shape (E, 2), int64
        Read-only. The array is registered as a grid, but a slice or a copy of it is not. Methods
        for grids use this instead of the edges.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.grid_edges((2, 2)).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    >>> sw.fields.grid_edges((2, 2), connectivity=8)[4:].tolist()
    [[1, 2], [0, 3]]
    >>> sw.fields.grid_edges((2, 2), connectivity=2)[4:].tolist()
    [[1, 2], [0, 3]]
    >>> sw.fields.grid_edges((1, 5), connectivity=[[0, 2]]).tolist()  # every other pixel
    [[0, 2], [1, 3], [2, 4]]
    >>> len(sw.fields.grid_edges((10, 20, 30), connectivity=26))
    68456
    """
    sides = as_sides([shape] if isinstance(shape, int | np.integer) else shape)
    if not sides:
        raise ValueError("shape must have at least one dimension, got ()")
    offsets = directions(connectivity, len(sides))
    counts = [count_pairs(sides, offset) for offset in offsets]
    n, total = prod(sides), sum(counts)
    refusal = ValueError(
        f"shape must give a grid that fits into memory, got {sides} with {total} edges"
    )
    if max(n, total, *sides) > MOST_RESULTS:
        raise refusal
    try:
        # Uninitialised, so that a lack of memory shows at once.
        edges = np.empty((total, 2), np.int64)
        pixels = np.arange(n).reshape(sides)
    except MemoryError:
        raise refusal from None
    ends = np.cumsum([0, *counts])
    for k, offset in enumerate(offsets):
        _write_pairs(pixels, offset, edges[ends[k] : ends[k + 1]])
    return remember_grid(edges, Grid(sides, tuple(offsets)))


def as_sides(shape: object) -> tuple[int, ...]:
    """Return the sides of a grid."""
    given = shape.tolist() if isinstance(shape, np.ndarray) else shape
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise TypeError(f"shape must be a sequence of integers, got {type(shape).__name__}")
    sides = tuple(as_count(side, "shape") for side in given)
    if len(sides) > MOST_AXES:
        raise ValueError(f"shape must have at most {MOST_AXES} sides, got {len(sides)}")
    return sides


def count_pairs(sides: tuple[int, ...], offset: Offset) -> int:
    """Return the number of pixels that have a neighbour at the offset."""
    return prod(max(side - abs(step), 0) for step, side in zip(offset, sides, strict=True))


def _write_pairs(pixels: IntArray, offset: Offset, edges: IntArray) -> None:
    """Write pairs of each pixel and its neighbour at the offset, if it has one."""
    first, second = pair_slices(pixels.shape, offset)
    edges[:, 0] = pixels[first].ravel()
    edges[:, 1] = pixels[second].ravel()


def pair_slices(
    sides: tuple[int, ...], offset: Offset
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return slices of a grid's pixels with a neighbour at the offset, and of the neighbours."""
    first = tuple(
        slice(max(-step, 0), max(side - max(step, 0), 0))
        for step, side in zip(offset, sides, strict=True)
    )
    second = tuple(
        slice(max(step, 0), max(side + min(step, 0), 0))
        for step, side in zip(offset, sides, strict=True)
    )
    return first, second


def directions(connectivity: int | ArrayLike | None, dimensions: int) -> list[Offset]:
    """Return the directions of edges, one from each pair of opposite ones."""
    if connectivity is not None and as_array(connectivity, "connectivity").ndim != 0:
        return _given_directions(connectivity, dimensions)
    wanted = 2 * dimensions if connectivity is None else as_count(connectivity, "connectivity")
    changes = range(1, dimensions + 1)
    sizes = list(accumulate(comb(dimensions, count) * 2**count for count in changes))
    if wanted in changes:
        wanted = sizes[wanted - 1]
    if wanted not in sizes or wanted > BATCH:
        few = [size for size in sizes if size <= BATCH]
        listed = " or ".join(map(str, [*changes[: len(few)], *few]))
        raise ValueError(
            f"connectivity must be {listed} in {dimensions} dimensions, or a list of offsets, "
            f"got {wanted}"
        )
    counts = changes[: sizes.index(wanted) + 1]
    return [offset for count in counts for offset in _offsets(count, dimensions)]


def _offsets(changes: int, dimensions: int) -> list[Offset]:
    """Return the offsets that change ``changes`` coordinates by 1, the first of them upwards."""
    offsets = np.zeros((comb(dimensions, changes), 2 ** (changes - 1), dimensions), np.int64)
    signs = [(1, *rest) for rest in product((-1, 1), repeat=changes - 1)]
    for k, axes in enumerate(combinations(range(dimensions), changes)):
        offsets[k][:, axes] = signs
    return sorted(map(tuple, offsets.reshape(-1, dimensions).tolist()))


def _given_directions(connectivity: ArrayLike, dimensions: int) -> list[Offset]:
    array = as_array(connectivity, "connectivity")
    if array.ndim != 2 or array.shape[1] != dimensions:
        raise ValueError(
            f"connectivity must be a number or offsets of shape (K, {dimensions}), "
            f"got shape {array.shape}"
        )
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"connectivity must hold integers, got dtype {array.dtype}")
    seen: set[Offset] = {(0,) * dimensions}
    offsets: list[Offset] = [tuple(map(int, row)) for row in array]
    for offset in offsets:
        if offset in seen:
            raise ValueError(
                "connectivity must hold each direction once, without its opposite and without 0, "
                f"got {offset}"
            )
        seen |= {offset, tuple(-step for step in offset)}
    return offsets
