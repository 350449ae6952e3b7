"""Best labellings of many Potts fields at once, for costs that change and edges that do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._interrupts import whole
from setwise.estimators._fields._graphs import Graphs
from setwise.fields import Field, Potts
from setwise.inference import FlowGraph, MapResult, maxflow_batch, solve_map
from setwise.learning import Executor

# Graphs of a few nodes each would spend their time in calls: they share a flow problem until it has
# so many nodes. The cut depends on the data alone, so the answers do not depend on the threads.
_TOGETHER = 4096
# So few labellings are all tried: a millisecond or so.
_FEW = 1 << 14


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
        """(M,) labels, quickly: from where the last answer was, if that helps."""

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """(M,) labels from another start."""

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """The best labels that any search finds, with what none is below."""


class Cuts:
    """Two labels: exact, by a minimum cut that starts from the flow of the one before.

    A call costs a pass over nodes and edges, and the part of the flow that the changes reach.
    """

    exact = True

    def __init__(self, graphs: Graphs, n_jobs: int) -> None:
        self._graphs, self._n_jobs = graphs, n_jobs
        nodes, edges = graphs.node_starts, graphs.edge_starts
        count = max(1, int(nodes[-1]) // _TOGETHER)
        ends = np.searchsorted(nodes, nodes[-1] * np.arange(1, count) / count)
        bounds = np.unique(np.concatenate([[0], ends, [len(graphs)]]))
        self._flows = []
        for begin, end in pairwise(bounds.tolist()):
            at, between = slice(nodes[begin], nodes[end]), slice(edges[begin], edges[end])
            local = graphs.edges[between] - nodes[begin]
            flow = FlowGraph(int(nodes[end] - nodes[begin]), local, 0.0, dtype=float)
            self._flows.append((flow, at, between, np.arange(len(local))))

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        excess = unary[:, 1] - unary[:, 0]
        source, sink = np.maximum(-excess, 0.0), np.maximum(excess, 0.0)
        for flow, at, between, every in self._flows:
            flow.set_terminals(source[at], sink[at])
            flow.set_capacities(every, weights[between], weights[between])
        maxflow_batch([flow for flow, *_ in self._flows], n_jobs=self._n_jobs)
        return np.concatenate([flow.mask for flow, *_ in self._flows]).astype(np.int64)

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """The same labels: no start matters."""
        return self(unary, weights)

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """Their values are the bounds."""
        labels = self(unary, weights)
        return BoundedLabels(labels, energies(self._graphs, labels, unary, weights))


class Moves:
    """Any number of labels: expansion moves from the labels before, with no promise.

    ``afresh`` starts from the least unaries as well and takes the better labels of each graph.
    ``prove`` tries all labellings where they are few; else it solves the relaxation, whose bound
    is the proof and whose rounding finds labels where moves have settled, and moves on from there.
    """

    exact = False

    def __init__(self, graphs: Graphs, executor: Executor) -> None:
        self._graphs, self._executor = graphs, executor
        self._labels: IntArray | None = None

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        results = self._map(_move, unary, weights, self._labels)
        self._labels = np.concatenate([result.labels for result in results])
        return self._labels

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Of each graph the better of these labels and the last ones."""
        results = self._map(_move, unary, weights, None)
        fresh = np.concatenate([result.labels for result in results])
        if self._labels is not None:
            now, before = (
                energies(self._graphs, labels, unary, weights) for labels in (fresh, self._labels)
            )
            better = np.repeat(now < before, np.diff(self._graphs.node_starts))
            fresh = np.where(better, fresh, self._labels)
        self._labels = fresh
        return fresh

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """What the searches find, and what they prove."""
        results = self._map(_prove, unary, weights, self._labels)
        self._labels = np.concatenate([result.labels for result in results])
        return BoundedLabels(self._labels, np.array([result.bound for result in results]))

    def _map(
        self,
        search: Callable[[Field, IntArray | None], MapResult],
        unary: FloatArray,
        weights: FloatArray,
        start: IntArray | None,
    ) -> list[MapResult]:
        graphs = self._graphs

        def solve(i: int) -> MapResult:
            at = slice(*graphs.node_starts[i : i + 2])
            between = slice(*graphs.edge_starts[i : i + 2])
            edges = graphs.edges[between] - graphs.node_starts[i]
            field = Field(unary[at]) + Potts(edges, weights[between])
            return search(field, None if start is None else start[at])

        return self._executor.map(solve, range(len(graphs)))


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


def cut(graphs: Graphs, labels: IntArray) -> FloatArray:
    """(E,) 1 where the ends of an edge differ, else 0."""
    first, second = graphs.edges.T
    differ: FloatArray = (labels[first] != labels[second]).astype(np.float64)
    return differ


def energies(
    graphs: Graphs, labels: IntArray, unary: FloatArray, weights: FloatArray
) -> FloatArray:
    """(n,) the energy of each graph."""
    return graphs.sums(unary[np.arange(len(labels)), labels], cut(graphs, labels) * weights)
