"""The edges of a grid of pixels, of any dimension and connectivity."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import IntArray, as_array
from setwise.fields._pixels._grid import as_sides, count_pairs
from setwise.inference._flows._capacities import check_size

Grid = tuple[tuple[int, ...], NDArray[np.generic], NDArray[np.generic], NDArray[np.generic]]


def grid_arrays(
    shape: Sequence[int], weights: ArrayLike, reverse: ArrayLike | None, offsets: ArrayLike | None
) -> Grid:
    """Sides, edges (E, 2), capacities (E,) there and back of a grid, offset by offset.

    Edge order: the offsets as given, within each the pixels in C order.
    """
    sides = as_sides(shape)
    n = math.prod(sides)
    steps = _as_offsets(offsets, len(sides))
    sizes = [count_pairs(sides, step) for step in map(tuple, steps.tolist())]
    check_size(n, sum(sizes), "shape", "shape and offsets")
    full = (len(steps), *sides)
    there = _broadcast(weights, "weights", full)
    back = there if reverse is None else _broadcast(reverse, "reverse", full)
    pixels = np.arange(n, dtype=np.int32).reshape(sides)
    starts = [
        tuple(
            slice(max(0, -o), max(0, side - max(0, o))) for o, side in zip(step, sides, strict=True)
        )
        for step in steps.tolist()
    ]
    edges = np.empty((sum(sizes), 2), np.int32)
    capacities = np.empty(len(edges), there.dtype)
    backward = capacities if back is there else np.empty(len(edges), back.dtype)
    strides = np.array([math.prod(sides[axis + 1 :]) for axis in range(len(sides))], np.int64)
    begin = 0
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if size == 0:  # the offset may be longer than any number of a pixel
            continue
        rows = slice(begin, begin + size)
        edges[rows, 0] = pixels[start].reshape(-1)
        edges[rows, 1] = edges[rows, 0] + np.int32(steps[k] @ strides)
        capacities[rows] = there[k][start].reshape(-1)
        if back is not there:
            backward[rows] = back[k][start].reshape(-1)
        begin += size
    return sides, edges, capacities, backward


def _as_offsets(offsets: ArrayLike | None, dimension: int) -> IntArray:
    if offsets is None:
        return np.eye(dimension, dtype=np.int64)
    array = as_array(offsets, "offsets")
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ValueError(f"offsets must have shape (K, {dimension}), got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"offsets must hold integers, got dtype {array.dtype}")
    if array.size and (array.min() <= -(2**31) or array.max() >= 2**31):
        bad = array.min() if array.min() <= -(2**31) else array.max()
        raise ValueError(f"offsets must lie within 2**31 of 0, got {bad}")
    steps = array.astype(np.int64)
    seen: set[tuple[int, ...]] = set()
    for step in map(tuple, steps.tolist()):
        opposite = tuple(-o for o in step)
        if step == opposite:
            raise ValueError(f"offsets must not be zero, got {step}")
        if step in seen or opposite in seen:
            raise ValueError(f"offsets must name each pair of neighbours once, got {step} again")
        seen.add(step)
    return steps


def _broadcast(values: ArrayLike, name: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    good = (array >= 0) & (array < np.inf)
    if not good.all():
        bad = array[~good].flat[0]
        raise ValueError(f"{name} must be finite and not negative, got {bad}")
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast to shape {shape}, got {array.shape}") from None
