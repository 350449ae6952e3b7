"""Best labellings of many fields at once whose regions or used labels have a price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._interrupts import whole
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._graphs import Graphs
from setwise.estimators._fields._potts_maps import BoundedLabels, Cuts, Moves, PottsMaps
from setwise.fields import Field
from setwise.inference import MapResult, solve_map
from setwise.learning import Executor

# So few labellings are all tried: a millisecond or so.
_FEW = 1 << 14


def best_maps(
    graphs: Graphs, couplings: Couplings, n_labels: int, executor: Executor, n_jobs: int
) -> PottsMaps:
    """The fastest search that fits: the weights it takes are those of the couplings."""
    if not couplings.edges_alone:
        return HigherMaps(graphs, couplings, n_labels, executor)
    return Cuts(graphs, n_jobs) if n_labels == 2 else Moves(graphs, executor)


class HigherMaps:
    """Fields with regions or label costs, one by one: by a cut for two labels, else by moves.

    The weights are those of the couplings, (F,). ``afresh`` and ``prove`` are as in ``Moves``.
    """

    def __init__(
        self, graphs: Graphs, couplings: Couplings, n_labels: int, executor: Executor
    ) -> None:
        self._graphs, self._couplings, self._executor = graphs, couplings, executor
        self.exact = n_labels == 2
        self._labels: IntArray | None = None

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """(M,) labels, by moves from where the last answer was."""
        self._labels, _, _ = self._map(self._quick, unary, weights, self._labels)
        return self._labels

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Of each graph the better of the labels from another start and the last ones."""
        fresh, values, _ = self._map(self._quick, unary, weights, None)
        if self._labels is not None:
            every, last = np.arange(len(fresh)), self._labels
            before = self._couplings.sums(unary[every, last], self._couplings(last) * weights)
            better = np.repeat(values < before, np.diff(self._graphs.node_starts))
            fresh = np.where(better, fresh, last)
        self._labels = fresh
        return fresh

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """The best labels that any search finds, with what none is below."""
        search = self._quick if self.exact else _prove
        self._labels, _, bounds = self._map(search, unary, weights, self._labels)
        return BoundedLabels(self._labels, bounds)

    def _quick(self, field: Field, start: IntArray | None) -> MapResult:
        return _cut(field, start) if self.exact else _move(field, start)

    def _map(
        self,
        search: Callable[[Field, IntArray | None], MapResult],
        unary: FloatArray,
        weights: FloatArray,
        start: IntArray | None,
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Labels (M,), and the values and bounds of the graphs."""
        parts = None if start is None else self._graphs.of_nodes(start)

        def solve(i: int) -> MapResult:
            field = self._couplings.field(i, unary, weights)
            return search(field, None if parts is None else parts[i])

        results = self._executor.map(solve, range(len(self._graphs)))
        labels = np.concatenate([result.labels for result in results])
        values = np.array([result.value for result in results])
        return labels, values, np.array([min(r.bound, r.value) for r in results])


def _cut(field: Field, start: IntArray | None) -> MapResult:
    return whole(solve_map(field, "cut", n_jobs=1))


def _move(field: Field, start: IntArray | None) -> MapResult:
    return whole(solve_map(field, "expansion", tol=np.inf, init=start, n_jobs=1))


def _prove(field: Field, start: IntArray | None) -> MapResult:
    if field.n_variables * np.log(field.n_labels) <= np.log(_FEW):
        return whole(solve_map(field, "enumerate", init=start, n_jobs=1))
    proof = whole(solve_map(field, "convex", init=start, n_jobs=1))
    if proof.exact:
        return proof
    moved = _move(field, proof.labels)
    return replace(moved, bound=min(proof.bound, moved.value))
