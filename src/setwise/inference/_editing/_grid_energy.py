"""An energy of two labels on a grid, in integers, with cuts of windows."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, frexp, prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise import _core
from setwise._foundation._arguments import LARGEST, BoolArray, FloatArray, IntArray
from setwise.fields._pixels._grid import Offset, count_pairs, directions
from setwise.inference._editing._edits import NO_SEED, Chunk, Edits
from setwise.inference._editing._sliceable import (
    Sliceable,
    Window,
    as_sliceable,
    blocks,
    grown,
    located,
    per_step,
    read,
    shape_of,
    size_of,
    whole,
    within,
)
from setwise.inference._flows._flow_graph import FlowGraph

# The side of the blocks in which arrays are checked: 2^21 voxels in three dimensions, 16 MB. Not
# tuned.
_SLAB = 1 << 7
# The most voxels of a window that are read at once if the costs of only some of them are needed: 32
# MB of floats. A larger window is read in parts. Not tuned.
_MOST_READ = 1 << 22
# The sum of all capacities stays below 2**62. An incident capacity stays below 2**50, so that
# costs are multiplied and rounded in float64 without another error.
_MOST_SUM, _MOST_INCIDENT = 1 << 62, 1 << 50


OPEN = 2
"""The state of a voxel whose label is not known, beside the labels 0 and 1."""

States = NDArray[np.uint8]
r"""The states (\*window) of voxels: 0, 1 or OPEN."""


@dataclass(frozen=True, eq=False)
class GridEnergy:
    r"""The energy of an ``EditableCut`` in units of ``2**-exponent``.

    Costs and weights are rounded to this unit. A cost that is larger than all edges of a voxel
    together decides the voxel's label, and so does a seed; such costs are replaced by the smallest
    number that does so.
    """

    unary: Sliceable
    weights: Sliceable
    reverse: Sliceable
    steps: list[Offset]
    exponent: int
    decisive: int
    """the least cost that decides a label, in units"""

    @property
    def sides(self) -> tuple[int, ...]:
        """The shape of the grid."""
        return self.unary.shape

    @property
    def margin(self) -> tuple[int, ...]:
        """The largest distance of two neighbours along each axis."""
        return tuple(int(far) for far in np.abs(np.array(self.steps)).max(axis=0, initial=0))

    def exact_costs(self, window: Window) -> FloatArray:
        """Return the unaries of a window, which must not be NaN."""
        costs = np.broadcast_to(read(self.unary, window), shape_of(window)).astype(np.float64)
        if np.isnan(costs).any():
            place = np.argwhere(np.isnan(costs))[0] + [part.start for part in window]
            raise ValueError(f"unary must hold numbers, got nan at {tuple(map(int, place))}")
        large = (np.abs(costs) > LARGEST) & np.isfinite(costs)
        if large.any():
            raise ValueError(
                f"unary must be infinite or at most {LARGEST:g} in size, got {costs[large][0]:g}"
            )
        return costs

    def costs(self, window: Window, edits: Edits) -> IntArray:
        """Return the cost of label 1 minus that of label 0 in a window, in units."""
        exact = self.exact_costs(window)
        if (changes := edits.read(window)) is None:
            return self.rounded(exact)
        return self.changed(exact, *changes)

    def costs_at(self, voxels: IntArray, *changes: Chunk) -> list[IntArray]:
        """Return costs, under each of several changes, of voxels with sorted numbers in C order."""
        window, places = located(voxels, self.sides)
        if size_of(window) > _MOST_READ and len(voxels) > 1:
            middle = len(voxels) // 2
            halves = [
                self.costs_at(voxels[part], *((delta[part], seed[part]) for delta, seed in changes))
                for part in (slice(middle), slice(middle, None))
            ]
            return [np.concatenate(pair) for pair in zip(*halves, strict=True)]
        exact = self.exact_costs(window)[tuple(places.T)]
        return [self.changed(exact, *change) for change in changes]

    def changed(self, exact: FloatArray, delta: FloatArray, seed: NDArray[np.int8]) -> IntArray:
        """Return unaries with changes and seeds, in units."""
        costs = self.rounded(exact + delta)
        return np.where(seed == NO_SEED, costs, self.decisive * (1 - 2 * seed.astype(np.int64)))

    def rounded(self, exact: FloatArray) -> IntArray:
        """Return costs in units; larger costs than a decisive one are lowered to it."""
        most = float(self.decisive)
        with np.errstate(over="ignore"):
            units = np.rint(np.ldexp(exact, self.exponent))
        return np.clip(units, -most, most).astype(np.int64)

    def capacities(self, window: Window) -> tuple[IntArray, IntArray]:
        r"""Return forward and backward weights (K, \*window) of edges from a window, in units.

        A weight that is repeated along an axis is a view.
        """
        there = self._capacities(self.weights, window)
        return there, there if self.reverse is self.weights else self._capacities(
            self.reverse, window
        )

    def _capacities(self, array: Sliceable, window: Window) -> IntArray:
        steps = len(self.steps)
        values = read(array, (slice(0, steps), *window))
        units = np.rint(np.ldexp(values.astype(np.float64), self.exponent)).astype(np.int64)
        return np.broadcast_to(units, (steps, *shape_of(window)))

    def least(
        self,
        window: Window,
        edits: Edits,
        outside: int,
        n_threads: int,
        kept: BoolArray | None = None,
    ) -> BoolArray:
        """Return the least minimiser in a window if all voxels outside have the label ``outside``.

        Voxels of ``kept`` are known to have the same label. Fixing them halves the time.
        """
        padded = grown(window, self.margin, self.sides)
        inner = within(window, padded)
        known = np.full(shape_of(padded), outside, np.uint8)
        known[inner] = OPEN if kept is None else np.where(kept, outside, OPEN)
        if known.size:
            costs, *weights = self.numbers(padded, edits)
            if not _core.cut_open(*self._arrays(costs, weights, known), n_threads, weights[1]):
                known = self._by_graph(costs, weights, known)
        return np.asarray(known[inner] == 1)

    def numbers(self, window: Window, edits: Edits) -> tuple[IntArray, IntArray, IntArray]:
        """Return the costs of a window, and the weights there and back of its edges, in units."""
        return self.costs(window, edits), *self.capacities(window)

    def prove(
        self, numbers: tuple[IntArray, IntArray, IntArray], inner: Window, known: States
    ) -> None:
        """Write the labels of open voxels of a window that are certain for any labels around it.

        ``numbers`` and ``known`` are those of a larger window, which has all neighbours of the
        voxels of ``inner``.
        """
        costs, *weights = numbers
        box = np.array([(part.start, part.stop) for part in inner])
        arrays = self._arrays(costs, weights, known)
        if _core.cut_block(*arrays, box, reverse=weights[1]) >= 0:
            return
        is_outside = np.ones(known.shape, np.bool_)
        is_outside[inner] = False
        lower, upper = (
            self._by_graph(costs, weights, np.where(is_outside & (known == OPEN), label, known))
            for label in (0, 1)
        )
        known[inner] = np.where(lower == upper, lower, OPEN)[inner]

    def _arrays(
        self, costs: IntArray, weights: list[IntArray], known: States
    ) -> tuple[IntArray, IntArray, IntArray, IntArray, States]:
        """Return the arguments of kernels: costs, sides, steps, weights and states."""
        steps = np.array(self.steps, np.int64).reshape(-1, known.ndim)
        sides = np.array(known.shape, np.int64)
        return costs.reshape(-1), sides, steps, weights[0], known.reshape(-1)

    def _by_graph(self, costs: IntArray, weights: list[IntArray], known: States) -> States:
        """Return all labels of a window, for neighbourhoods that have no kernel of their own."""
        steps = np.array(self.steps).reshape(-1, known.ndim)
        there, back = weights
        graph = FlowGraph.grid(known.shape, back, there, offsets=steps)
        tied = self.decisive * (1 - 2 * known.astype(np.int64))
        costs = np.where(known == OPEN, costs, tied)
        graph.set_terminals(np.maximum(costs, 0), np.maximum(-costs, 0))
        graph.solve(n_jobs=1)
        return graph._least_sink_side().astype(np.uint8)


def make_energy(
    unary: ArrayLike | Sliceable,
    weights: ArrayLike | Sliceable,
    reverse: ArrayLike | Sliceable | None,
    connectivity: int | ArrayLike | None,
) -> GridEnergy:
    """Return an energy from checked arguments; the unaries are checked where they are read."""
    costs = as_sliceable(unary, "unary")
    sides = tuple(int(side) for side in costs.shape)
    if not sides:
        raise ValueError("unary must have at least one axis, got shape ()")
    steps = directions(connectivity, len(sides))
    there = _as_weights(weights, "weights", sides, steps)
    back = there if reverse is None else _as_weights(reverse, "reverse", sides, steps)
    largest = _largest(there, "weights", sides, steps)
    again = largest if back is there else _largest(back, "reverse", sides, steps)
    incident = sum(largest) + sum(again)
    most = min(_MOST_SUM // (8 * max(prod(sides), 1)), _MOST_INCIDENT) - len(steps) - 1
    # Rounding raises the sum of 2 K weights by K units at most.
    exponent = frexp(most)[1] - 1 - frexp(incident)[1] if incident > 0 else 1000
    exponent = max(min(exponent, 1000), -1000)
    units = sum(floor(np.rint(np.ldexp(x, exponent))) for x in [*largest, *again])
    return GridEnergy(costs, there, back, steps, exponent, units + 1)


def _as_weights(
    values: ArrayLike | Sliceable, name: str, sides: tuple[int, ...], steps: list[Offset]
) -> Sliceable:
    array = as_sliceable(values, name)
    full, shape = (len(steps), *sides), tuple(array.shape)
    n_edges = sum(count_pairs(sides, step) for step in steps)
    if shape == (n_edges,) and len(full) > 1:
        return per_step(np.asarray(array[:]), sides, steps)
    own = full[len(full) - len(shape) :] if len(shape) <= len(full) else ()
    if len(own) != len(shape) or any(
        have not in (1, want) for have, want in zip(shape, own, strict=True)
    ):
        raise ValueError(
            f"{name} must broadcast to shape {full} or have shape ({n_edges},), got {shape}"
        )
    return array


def _largest(
    array: Sliceable, name: str, sides: tuple[int, ...], steps: list[Offset]
) -> list[float]:
    """Return the largest weight of each direction. All must be finite and not negative."""
    most = np.zeros(len(steps))
    own = tuple(array.shape)[-len(sides) :]
    for window in blocks(own, _SLAB) if len(tuple(array.shape)) else [()]:
        padded = whole(sides[: len(sides) - len(own)]) + window
        values = read(array, (slice(0, len(steps)), *padded)).astype(np.float64)
        bad = values[~(np.isfinite(values) & (values >= 0))]
        if bad.size:
            raise ValueError(f"{name} must be finite and not negative, got {bad[0]}")
        if values.size and values.max() > LARGEST:
            raise ValueError(f"{name} must be at most {LARGEST:g}, got {values.max():g}")
        if values.ndim <= len(sides):
            most = np.maximum(most, values.max(initial=0.0))
        else:
            most = np.maximum(most, values.reshape(values.shape[0], -1).max(axis=1, initial=0.0))
    return [float(x) for x in most]
