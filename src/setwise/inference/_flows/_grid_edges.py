"""The edges of a grid of pixels, of any dimension and connectivity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import IntArray, as_array
from setwise.fields._pixels._grid import as_sides, count_pairs
from setwise.inference._flows._capacities import Capacities, as_capacities, as_kind, check_size


@dataclass(frozen=True)
class GridCapacities:
    """A grid of pixels with the capacities between neighbours.

    ``there`` and ``back`` are views of shape (K, *sides). Entry ``[k, p]`` is the capacity between
    pixel ``p`` and ``p + steps[k]``. If edges are undirected, one is a view of the other.
    """

    sides: tuple[int, ...]
    steps: IntArray
    sizes: list[int]  # the number of edges of each step
    there: NDArray[np.generic]
    back: NDArray[np.generic]

    @property
    def n(self) -> int:
        return math.prod(self.sides)

    def in_kind(self, kind: type[np.int64] | type[np.float64]) -> tuple[Capacities, Capacities]:
        """Return checked capacities of one type in both directions; repeated values are views."""
        there = _of_kind(self.there, "weights", kind)
        return there, there if self.back is self.there else _of_kind(self.back, "reverse", kind)

    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.generic], NDArray[np.generic]]:
        """Return edges (E, 2), ordered by step and then pixel, and both capacities (E,) of each."""
        pixels = np.arange(self.n, dtype=np.int32).reshape(self.sides)
        edges = np.empty((sum(self.sizes), 2), np.int32)
        capacities = np.empty(len(edges), self.there.dtype)
        backward = capacities if self.back is self.there else np.empty(len(edges), self.back.dtype)
        strides = [math.prod(self.sides[axis + 1 :]) for axis in range(len(self.sides))]
        begin = 0
        for k, (step, size) in enumerate(zip(self.steps.tolist(), self.sizes, strict=True)):
            if size == 0:  # the offset may be larger than any index of a pixel
                continue
            start = tuple(
                slice(max(0, -o), max(0, side - max(0, o)))
                for o, side in zip(step, self.sides, strict=True)
            )
            rows = slice(begin, begin + size)
            edges[rows, 0] = pixels[start].reshape(-1)
            edges[rows, 1] = edges[rows, 0] + np.int32(np.dot(step, strides))
            capacities[rows] = self.there[k][start].reshape(-1)
            if self.back is not self.there:
                backward[rows] = self.back[k][start].reshape(-1)
            begin += size
        return edges, capacities, backward


def as_grid(
    shape: Sequence[int], weights: ArrayLike, reverse: ArrayLike | None, offsets: ArrayLike | None
) -> GridCapacities:
    """Return a grid from arguments that are checked here, except for the signs of the weights."""
    sides = as_sides(shape)
    steps = _as_offsets(offsets, len(sides))
    sizes = [count_pairs(sides, step) for step in map(tuple, steps.tolist())]
    check_size(math.prod(sides), sum(sizes), "shape", "shape and offsets")
    full = (len(steps), *sides)
    there = _broadcast(weights, "weights", full)
    back = there if reverse is None else _broadcast(reverse, "reverse", full)
    return GridCapacities(sides, steps, sizes, there, back)


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
    as_kind(array.dtype, name)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast to shape {shape}, got {array.shape}") from None


def _of_kind(
    view: NDArray[np.generic], name: str, kind: type[np.int64] | type[np.float64]
) -> Capacities:
    once = view[tuple(slice(None) if step else slice(1) for step in view.strides)]
    return np.broadcast_to(
        as_capacities(once, name, kind, once.shape).reshape(once.shape), view.shape
    )
