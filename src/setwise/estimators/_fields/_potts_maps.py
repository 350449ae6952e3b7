"""Best labellings of many fields at once, with fixed graphs and changing costs."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from setwise._core import FieldBatch
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._fields._graphs import Graphs


class BoundedLabels(NamedTuple):
    """Labels (M,), and for each graph a lower bound on the energy of all labellings, (n,)."""

    labels: IntArray
    bounds: FloatArray


class PottsMaps(Protocol):
    r"""A minimiser of :math:`\sum_p u_{p z_p} + \sum_{e = (p, q)} g_e [z_p \ne z_q]` per graph.

    Unaries have shape (M, L); weights have shape (E,) and are not negative.
    """

    @property
    def exact(self) -> bool:
        """Whether every answer is optimal."""

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Return labels (M,) quickly, by a search that may start from the last answer."""

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Return labels (M,) from another start."""

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """Return the best labels that any search finds, with a lower bound."""


class RegionTables(NamedTuple):
    r"""The costs of regions S of the graphs: :math:`g_S \sum_l h_S(|\{p \in S : z_p = l\}|)`.

    Every :math:`h_S` is concave.

    Attributes
    ----------
    regions : (layers, M)
        The region of each node in each layer, numbered consecutively over all graphs; -1 for none.
    region_starts : (n + 1,)
        Graph i has the regions [region_starts[i], region_starts[i + 1]).
    tables : (R + the nodes of all regions,)
        The concatenation of :math:`h_S(0), \dots, h_S(|S|)` over the regions.
    """

    regions: IntArray
    region_starts: IntArray
    tables: FloatArray


class BatchMaps:
    """Maps that label all graphs in one call of compiled code, in parallel.

    For two labels they are exact, by one minimum cut per graph. For more labels they make expansion
    moves from the previous labels, without a guarantee; ``afresh`` also starts from the least
    unaries and takes the better labels of each graph. ``prove`` tries all labellings if they are
    few. Otherwise sweeps of tree-reweighted messages raise a bound, and moves continue from the
    labels that they decode.

    With ``regions``, weights are those of the edges followed by those of the regions. Weights of
    the labels that each graph uses may follow: (E + R + n L,) in total. With regions or label
    weights, more than two labels are not proved here. Answers do not depend on ``n_jobs``.
    """

    def __init__(
        self,
        graphs: Graphs,
        n_labels: int,
        n_jobs: int,
        regions: RegionTables | None = None,
    ) -> None:
        self._n_labels, self._n_jobs = n_labels, n_jobs
        self._sizes = np.diff(graphs.node_starts)
        self._splits = [len(graphs.edges)] * 2
        self._batch = FieldBatch(
            _ints(graphs.node_starts), _ints(graphs.edge_starts), _ints(graphs.edges), n_labels
        )
        if regions is not None:
            at, starts, tables = regions
            sizes = np.bincount(at[at >= 0], minlength=starts[-1])
            ends = np.concatenate([[0], np.cumsum(sizes + 1)])
            at = np.ascontiguousarray(at, np.int64)
            self._batch.add_regions(at, _ints(starts), _ints(ends), _floats(tables))
            self._splits[1] += int(starts[-1])
        self._labels: IntArray | None = None

    @property
    def exact(self) -> bool:
        """Whether the maps are exact: they are with two labels."""
        return self._n_labels == 2

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Return labels (M,) by a search that starts from the last ones."""
        self._labels, _, _ = self._search(unary, weights, self._labels)
        return self._labels

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Search from the last labels and the least unaries; return each graph's better labels."""
        found, now, _ = self._search(unary, weights, None)
        if self._labels is not None and not self.exact:
            before = np.empty_like(now)
            terms = self._terms(unary, weights)
            self._batch.measure(*terms, self._labels, before)
            found = np.where(np.repeat(now < before, self._sizes), found, self._labels)
        self._labels = found
        return found

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """Return the best labels that the searches find, with their lower bounds."""
        self._labels, energies, gaps = self._search(unary, weights, self._labels, prove=True)
        below = np.nextafter(energies - gaps, -np.inf)
        return BoundedLabels(self._labels, np.where(gaps > 0, below, energies))

    def _search(
        self, unary: FloatArray, weights: FloatArray, start: IntArray | None, *, prove: bool = False
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return labels (M,), and for each graph the energy and the gap."""
        labels = np.full(len(unary), -1) if start is None else start.copy()
        energies, gaps = np.empty(len(self._sizes)), np.empty(len(self._sizes))
        terms = self._terms(unary, weights)
        self._batch.search(*terms, labels, energies, gaps, prove, self._n_jobs)
        return labels, energies, gaps

    def _terms(
        self, unary: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        edges, regions, costs = np.split(_floats(weights), self._splits)
        return _floats(unary), edges, regions, costs


def cut(graphs: Graphs, labels: IntArray) -> FloatArray:
    """Return 1 for edges whose ends differ, else 0, (E,)."""
    first, second = graphs.edges.T
    differ: FloatArray = (labels[first] != labels[second]).astype(np.float64)
    return differ


def _ints(array: IntArray) -> IntArray:
    return np.ascontiguousarray(array, np.int64).ravel()


def _floats(array: FloatArray) -> FloatArray:
    return np.ascontiguousarray(array, np.float64).ravel()
