"""Edges of a grid of pixels or voxels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from setwise.functions._arguments import IntArray, as_array, as_count

Offset = tuple[int, ...]


def grid_edges(shape: int | Sequence[int], connectivity: int | ArrayLike | None = None) -> IntArray:
    """Pairs of neighbours in a grid, each pair once.

    Pixels are numbered in C order, as ``image.ravel()`` has them. The edges come one direction
    after the other, and in a direction in the order of their first pixel. Directions are sorted by
    how many coordinates change, then as tuples: in an image right, down, and with 8 neighbours then
    down-left, down-right. So the first edges of a larger neighbourhood are those of a smaller one.

    Parameters
    ----------
    shape : int or sequence of int
        The grid's shape, of any number d of dimensions.
    connectivity : int or array-like of int of shape (K, d), optional
        The number of neighbours of an inner pixel: 4 (the default) or 8 in an image, 6, 18 or 26 in
        a volume, 2 in a row. Or the directions themselves, each an offset that leads from a pixel
        to its neighbour; an edge is listed for each pixel that has the neighbour.

    Returns
    -------
    array of shape (E, 2), int64

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.grid_edges((2, 2)).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    >>> sw.fields.grid_edges((2, 2), connectivity=8)[4:].tolist()
    [[1, 2], [0, 3]]
    >>> sw.fields.grid_edges((1, 5), connectivity=[[0, 2]]).tolist()  # every other pixel
    [[0, 2], [1, 3], [2, 4]]
    >>> len(sw.fields.grid_edges((10, 20, 30), connectivity=26))
    68456
    """
    sides = [shape] if np.ndim(shape) == 0 else list(shape)  # type: ignore[arg-type]
    if not sides:
        raise ValueError("shape must have at least one dimension, got ()")
    counts = tuple(as_count(side, "shape") for side in sides)
    pixels = np.arange(int(np.prod(counts, dtype=object))).reshape(counts)
    found = [_pairs(pixels, offset) for offset in _directions(connectivity, len(counts))]
    return np.concatenate([np.zeros((0, 2), np.int64), *found])


def _pairs(pixels: IntArray, offset: Offset) -> IntArray:
    """Each pixel beside the one at the offset, where there is one."""
    first = tuple(
        slice(max(-step, 0), max(side - max(step, 0), 0))
        for step, side in zip(offset, pixels.shape, strict=True)
    )
    second = tuple(
        slice(max(step, 0), max(side + min(step, 0), 0))
        for step, side in zip(offset, pixels.shape, strict=True)
    )
    return np.stack([pixels[first].ravel(), pixels[second].ravel()], axis=1)


def _directions(connectivity: int | ArrayLike | None, dimensions: int) -> list[Offset]:
    """One of each two opposite directions."""
    if connectivity is not None and np.ndim(connectivity) != 0:
        return _given_directions(connectivity, dimensions)
    wanted = 2 * dimensions if connectivity is None else as_count(connectivity, "connectivity")
    cube = product((-1, 0, 1), repeat=dimensions)
    around = sorted((np.count_nonzero(offset), offset) for offset in cube)
    sizes = []
    for changes in range(1, dimensions + 1):
        near = [offset for count, offset in around if 0 < count <= changes]
        if len(near) == wanted:
            return [offset for offset in near if offset > (0,) * dimensions]
        sizes.append(str(len(near)))
    raise ValueError(
        f"connectivity must be {' or '.join(sizes)} in {dimensions} dimensions, or a list of "
        f"offsets, got {wanted}"
    )


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
