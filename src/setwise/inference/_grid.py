"""The edges of a grid of pixels, of any dimension and connectivity."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise.functions._arguments import IntArray, as_count

Grid = tuple[tuple[int, ...], NDArray[np.generic], NDArray[np.generic], NDArray[np.generic]]


def grid_arrays(
    shape: Sequence[int], weights: ArrayLike, reverse: ArrayLike | None, offsets: ArrayLike | None
) -> Grid:
    """Sides, edges (E, 2), capacities (E,) there and back of a grid, offset by offset.

    Edge order: the offsets as given, within each the pixels in C order.
    """
    sides = tuple(as_count(side, "shape") for side in shape)
    n = math.prod(sides)
    steps = _as_offsets(offsets, len(sides))
    full = (len(steps), *sides)
    there = _broadcast(weights, "weights", full)
    back = there if reverse is None else _broadcast(reverse, "reverse", full)
    index = np.int32 if n < 2**31 else np.int64
    pixels = np.arange(n, dtype=index).reshape(sides)
    starts = [
        tuple(
            slice(max(0, -o), max(0, side - max(0, o))) for o, side in zip(step, sides, strict=True)
        )
        for step in steps.tolist()
    ]
    sizes = [pixels[start].size for start in starts]
    edges = np.empty((sum(sizes), 2), index)
    capacities = np.empty(len(edges), there.dtype)
    backward = capacities if back is there else np.empty(len(edges), back.dtype)
    strides = np.array([math.prod(sides[axis + 1 :]) for axis in range(len(sides))], np.int64)
    begin = 0
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        rows = slice(begin, begin + size)
        edges[rows, 0] = pixels[start].reshape(-1)
        edges[rows, 1] = edges[rows, 0] + index(steps[k] @ strides)
        capacities[rows] = there[k][start].reshape(-1)
        if back is not there:
            backward[rows] = back[k][start].reshape(-1)
        begin += size
    return sides, edges, capacities, backward


def _as_offsets(offsets: ArrayLike | None, dimension: int) -> IntArray:
    if offsets is None:
        return np.eye(dimension, dtype=np.int64)
    array = np.asarray(offsets)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ValueError(f"offsets must have shape (K, {dimension}), got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"offsets must hold integers, got dtype {array.dtype}")
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
    array = np.asarray(values)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast to shape {shape}, got {array.shape}") from None
