"""Best labellings of many fields at once, for costs that change and graphs that do not."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from setwise._core import FieldBatch
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._fields._graphs import Graphs


class BoundedLabels(NamedTuple):
    """Labels (M,), and for each graph a number that no labelling is below, (n,)."""

    labels: IntArray
    bounds: FloatArray


class PottsMaps(Protocol):
    r"""Minimises :math:`\sum_p u_{p z_p} + \sum_{e = (p, q)} g_e [z_p \ne z_q]` in every graph.

    Unaries are (M, L), weights (E,) and not negative.
    """

    @property
    def exact(self) -> bool:
        """Whether every answer is a best one."""

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Return labels (M,) quickly: from the last answer, if that helps."""

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Return labels (M,) from another start."""

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """Return the best labels that any search finds, with a bound that none is below."""


class RegionTables(NamedTuple):
    r"""The costs of regions S of the graphs: :math:`g_S \sum_l h_S(|\{p \in S : z_p = l\}|)`.

    Every :math:`h_S` is concave.

    Attributes
    ----------
    regions : (layers, M)
        The region of each node in each layer, numbered through all graphs; -1 for none.
    region_starts : (n + 1,)
        Graph i has the regions [region_starts[i], region_starts[i + 1]).
    tables : (R + the nodes of all regions,)
        :math:`h_S(0), \dots, h_S(|S|)` of one region after the other.
    """

    regions: IntArray
    region_starts: IntArray
    tables: FloatArray


class BatchMaps:
    """Labellings of all graphs in one call of compiled code, over threads.

    Two labels: exact, by a minimum cut a graph. More of them: expansion moves from the labels
    before, with no promise; ``afresh`` starts from the least unaries as well and takes the better
    labels of each graph. ``prove`` tries all labellings where they are few; else sweeps of
    tree-reweighted messages raise a bound, and moves go on from the labels that they decode.

    With ``regions``, weights are those of the edges and then of the regions. Where they go on,
    there follow for each graph those of the labels that it uses: (E + R + n L,) in all. With such
    weights more than two labels are not proved here. Answers do not depend on ``n_jobs``.
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
        """Return labels (M,), searched for from the last ones."""
        self._labels, _, _ = self._search(unary, weights, self._labels)
        return self._labels

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Return for each graph the better of these labels and the last ones."""
        found, now, _ = self._search(unary, weights, None)
        if self._labels is not None and not self.exact:
            before = np.empty_like(now)
            terms = self._terms(unary, weights)
            self._batch.measure(*terms, self._labels, before)
            found = np.where(np.repeat(now < before, self._sizes), found, self._labels)
        self._labels = found
        return found

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """Return what the searches find, and what they prove."""
        self._labels, energies, gaps = self._search(unary, weights, self._labels, prove=True)
        below = np.nextafter(energies - gaps, -np.inf)
        return BoundedLabels(self._labels, np.where(gaps > 0, below, energies))

    def _search(
        self, unary: FloatArray, weights: FloatArray, start: IntArray | None, *, prove: bool = False
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return labels (M,), and of each graph its energy and by how much others may be better."""
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
    """Return 1 where the ends of an edge differ, else 0, (E,)."""
    first, second = graphs.edges.T
    differ: FloatArray = (labels[first] != labels[second]).astype(np.float64)
    return differ


def _ints(array: IntArray) -> IntArray:
    return np.ascontiguousarray(array, np.int64).ravel()


def _floats(array: FloatArray) -> FloatArray:
    return np.ascontiguousarray(array, np.float64).ravel()
