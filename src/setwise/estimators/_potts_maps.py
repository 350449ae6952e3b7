"""Best labellings of many Potts fields at once, for costs that change and edges that do not."""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np

from setwise.estimators._graphs import Graphs
from setwise.fields import Field, Potts
from setwise.functions._arguments import FloatArray, IntArray
from setwise.functions._interrupts import whole
from setwise.inference import FlowGraph, MapResult, maxflow_batch, solve_map
from setwise.learning import Executor

# Graphs of a few nodes each would spend their time in calls: they share a flow problem until it has
# so many nodes. The cut depends on the data alone, so the answers do not depend on the threads.
_TOGETHER = 4096


class PottsMaps(Protocol):
    r"""Minimises :math:`\sum_p u_{p z_p} + \sum_{e = (p, q)} g_e [z_p \ne z_q]` in every graph."""

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """(M,) labels for unaries (M, L) and weights (E,) that are not negative."""

    def bounds(self, unary: FloatArray, weights: FloatArray) -> FloatArray:
        """(n,) a number for each graph that no labelling is below."""


class Cuts:
    """Two labels: exact, by a minimum cut that starts from the flow of the one before.

    A call costs a pass over nodes and edges, and the part of the flow that the changes reach.
    """

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

    def bounds(self, unary: FloatArray, weights: FloatArray) -> FloatArray:
        """The values of the best labellings, which nothing is below."""
        graphs, labels = self._graphs, self(unary, weights)
        return graphs.sums(unary[np.arange(len(labels)), labels], cut(graphs, labels) * weights)


class Moves:
    """Any number of labels: expansion moves from the labelling before, with no promise."""

    def __init__(self, graphs: Graphs, executor: Executor) -> None:
        self._graphs, self._executor = graphs, executor
        self._labels: IntArray | None = None

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        results = self._solve(unary, weights, tol=np.inf)
        self._labels = np.concatenate([result.labels for result in results])
        return self._labels

    def bounds(self, unary: FloatArray, weights: FloatArray) -> FloatArray:
        """The bounds that the searches prove."""
        return np.array([result.bound for result in self._solve(unary, weights, tol=1e-9)])

    def _solve(self, unary: FloatArray, weights: FloatArray, tol: float) -> list[MapResult]:
        graphs, start = self._graphs, self._labels

        def solve(i: int) -> MapResult:
            at = slice(*graphs.node_starts[i : i + 2])
            between = slice(*graphs.edge_starts[i : i + 2])
            edges = graphs.edges[between] - graphs.node_starts[i]
            field = Field(unary[at]) + Potts(edges, weights[between])
            init = None if start is None else start[at]
            return whole(solve_map(field, "expansion", tol=tol, init=init, n_jobs=1))

        return self._executor.map(solve, range(len(graphs)))


def cut(graphs: Graphs, labels: IntArray) -> FloatArray:
    """(E,) 1 where the ends of an edge differ, else 0."""
    first, second = graphs.edges.T
    differ: FloatArray = (labels[first] != labels[second]).astype(np.float64)
    return differ
