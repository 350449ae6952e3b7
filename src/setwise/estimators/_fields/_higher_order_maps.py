"""Best labellings of many fields at once, with costs of regions or of used labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._search import completed
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._graphs import Graphs
from setwise.estimators._fields._potts_maps import BatchMaps, BoundedLabels
from setwise.estimators._threads import executor_of
from setwise.fields import Field
from setwise.inference import MapResult
from setwise.inference._map._enumerate import FEW_LABELINGS
from setwise.inference._map._solve_map import solve_map


def best_maps(graphs: Graphs, couplings: Couplings, n_labels: int, n_jobs: int) -> BatchMaps:
    """Return the fastest search that supports the couplings."""
    if couplings.edges_alone or n_labels == 2:
        return BatchMaps(graphs, n_labels, n_jobs, couplings.region_tables)
    return HigherOrderMaps(graphs, couplings, n_labels, n_jobs)


class HigherOrderMaps(BatchMaps):
    """Maps of three or more labels with regions or label costs, proved by ``solve_map``."""

    def __init__(self, graphs: Graphs, couplings: Couplings, n_labels: int, n_jobs: int) -> None:
        super().__init__(graphs, n_labels, n_jobs, couplings.region_tables)
        self._graphs, self._couplings = graphs, couplings

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """Return the best labels that any search finds, with a lower bound on all energies."""
        starts = None if self._labels is None else self._graphs.of_nodes(self._labels)

        def solve(i: int) -> MapResult:
            field = self._couplings.field(i, unary, weights)
            return _prove(field, None if starts is None else starts[i])

        executor = executor_of(self._n_jobs)
        try:
            results = executor.map(solve, range(len(self._graphs)))
        finally:
            executor.close()
        self._labels = np.concatenate([result.labels for result in results])
        bounds = np.array([min(result.bound, result.value) for result in results])
        return BoundedLabels(self._labels, bounds)


def _prove(field: Field, start: IntArray | None) -> MapResult:
    if field.n_variables * np.log(field.n_labels) <= np.log(FEW_LABELINGS):
        return completed(solve_map(field, "enumerate", init=start, n_jobs=1))
    proof = completed(solve_map(field, "convex", init=start, n_jobs=1))
    if proof.exact:
        return proof
    moved = completed(solve_map(field, "expansion", tol=np.inf, init=proof.labels, n_jobs=1))
    return replace(moved, bound=min(proof.bound, moved.value))
