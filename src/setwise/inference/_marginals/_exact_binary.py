r"""The exact least upper bound on log Z for two labels, by cuts.

With :math:`G(A) = E(x) - E(0)`, :math:`A = \{i: x_i = 1\}`, the bound is :math:`\min_{s \in B(G)}
\sum_i \log(1 + e^{-s_i / t})` (Claim 1 and equation (5)). One s minimises all such sums of a convex
function of the coordinates, so it does not depend on the temperature. Its level sets are minimisers
of :math:`G(A) - \lambda |A|`, which are found by divide and conquer.
"""

from __future__ import annotations

from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, gap_over_value
from setwise.fields._field import Field
from setwise.inference._conditioning._magnitude import rounding_of_logs
from setwise.inference._flows._energy_as_cut import ConcaveCut, as_cut
from setwise.inference._flows._flow_graph import FlowGraph
from setwise.inference._marginals._search import (
    MarginalsOptions,
    MarginalsSearch,
    MarginalsSolution,
    Standing,
)
from setwise.inference._relaxation._relaxation import Relaxation


def exact_binary(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    r"""Minimise the bound by levels of cuts: at most N levels, and for instance 16 on a photograph.

    Each level cuts all blocks at once. Regions become auxiliary nodes, one per kink of their
    function: few for robust terms and label costs, one per variable for powers, which raise an
    error above 4e6 arcs. ``n_iter`` counts the levels; ``tol`` and ``max_iter`` have no effect.

    After each level s lies in the base polytope of the cut over variables and auxiliary nodes B, so
    :math:`G(A) \ge s(A) + \sum_{b \in B} \min(s_b, 0)`: if a callback or Ctrl-C ends the search
    there, the bound is valid. At the end the remaining costs of auxiliary nodes are 0. The bound is
    raised by the rounding errors of the flows of all levels.
    """
    return options.run(_Levels(field, options))


class _Levels(MarginalsSearch):
    """A search by levels of cuts, with the bound of s after each."""

    def __init__(self, field: Field, options: MarginalsOptions) -> None:
        super().__init__(options)
        self._t = t = options.temperature
        self._relaxation = relaxation = Relaxation(field)
        self._unary = unary = relaxation.finite_unary(t)
        self._n = n = field.n_variables
        self._largest = float((np.abs(unary).max(axis=1) + relaxation.widths).sum())
        # energies are relative to label 0; the energy of all zeros is added last
        self._zero = relaxation.extension(np.eye(2)[np.zeros(n, np.int64)])
        self._of_zeros = (self._zero + float(unary[:, 0].sum()) + relaxation.constant) / t
        self._rounding = rounding_of_logs(field, t)
        self._point = _BasePoint(as_cut(field, unary), n)
        self._history: list[float] = []
        self._lost = self._lost_by(self._point.s)
        self._gap = inf
        self.limit = inf if len(self._point.left) else 0

    def step(self) -> bool:
        is_last = self._point.split()
        nodes = self._point.s
        self._lost = self._lost_by(nodes)
        self._history.append(self._value_at(nodes) - self._of_zeros + self._lost)
        return is_last

    def _value_at(self, nodes: FloatArray) -> float:
        left = float(np.minimum(nodes[self._n :], 0.0).sum())
        return float(np.logaddexp(0.0, -nodes[: self._n] / self._t).sum()) - left / self._t

    def _lost_by(self, nodes: FloatArray) -> float:
        """Return the possible rounding error of the bound of s, in nats."""
        sizes = float(np.abs(nodes).sum()) + self._largest
        return self._rounding + (FEW_ROUNDINGS + 4.0 * self._point.n_levels) * EPS * sizes / self._t

    def has_converged(self, tol: float) -> bool:
        return self.relative_gap <= max(tol, 1e-9)

    def finish(self) -> None:
        if not len(self._point.left):  # otherwise a callback ended the search
            self.reassess()

    def reassess(self) -> None:
        """Measure the gap, which needs the Lovász extension at the probabilities."""
        t, unary, nodes = self._t, self._unary, self._point.s
        s, value = nodes[: self._n], self._value_at(nodes)
        p = np.empty(unary.shape)
        p[:, 1] = np.where(s > 0, np.exp(-np.abs(s) / t), 1.0) / (1.0 + np.exp(-np.abs(s) / t))
        p[:, 0] = np.where(s > 0, 1.0, np.exp(-np.abs(s) / t)) / (1.0 + np.exp(-np.abs(s) / t))
        rise = float((p[:, 1] * (unary[:, 1] - unary[:, 0])).sum())
        rise = self._relaxation.extension(p) - self._zero + rise
        logs = np.log(p, out=np.zeros_like(p), where=p > 0)
        dual = -float((p * logs).sum()) - rise / t
        shifted = value - float((unary[:, 0] - unary.min(axis=1)).sum() + self._zero) / t
        self._gap = max(0.0, value - dual)
        self.relative_gap = gap_over_value(self._gap, shifted)
        self._lost = self._lost_by(nodes)
        self._upper, self._p = value - self._of_zeros + self._lost, p

    def standing(self) -> Standing:
        return Standing(self._history[-1])

    def solution(self) -> MarginalsSolution:
        return MarginalsSolution(
            probabilities=self._p,
            upper=self._upper,
            gap=self._gap + self._lost,
            relative_gap=self.relative_gap,
            history=self._history,
        )


class _BasePoint:
    """The search for the s in the base polytope whose level sets minimise G(A) - lambda |A|.

    s has an entry per node, the n variables first. A block is cut at the mean of its costs; if the
    cut does not divide it, s equals the mean. Later levels continue from the flow. It moves costs
    along the edges and reduces their capacities, to zero across a cut. So s is the boundary of a
    feasible flow, and lies in the base polytope up to rounding.
    """

    def __init__(self, cut: ConcaveCut, n: int) -> None:
        self.s: FloatArray = cut.costs.copy()
        self.n_levels = 0
        self.left = np.arange(len(self.s))
        """The nodes of unfinished blocks."""
        self._is_variable = (self.left < n).astype(np.float64)
        self._block = np.zeros(len(self.s), np.int64)
        self._edges, self._there, self._back = cut.edges, cut.there, cut.back
        self._place = np.empty(len(self.s), np.int64)

    def split(self) -> bool:
        """Cut each unfinished block. Return whether all are finished."""
        nodes, edges, place = self.left, self._edges, self._place
        member, free = self._block[nodes], self._is_variable[nodes]
        weight = np.bincount(member, free)
        level = np.bincount(member, self.s[nodes]) / np.maximum(weight, 1.0)
        excess = self.s[nodes] - level[member] * free
        place[nodes] = np.arange(len(nodes))
        ends = place[edges]
        tails, heads = np.ascontiguousarray(ends.T)
        graph = FlowGraph(len(nodes), ends, self._there, self._back, dtype=np.float64)
        graph.set_terminals(np.maximum(-excess, 0.0), np.maximum(excess, 0.0))
        graph.solve()
        flows, mask = graph.flows, graph.mask
        moved = np.bincount(tails, flows, len(nodes))
        moved -= np.bincount(heads, flows, len(nodes))
        self.n_levels += 1
        self.s[nodes] += moved
        # the remaining excess below the mean is the value of the cut
        value = np.bincount(member, (excess + moved) * mask)
        scale = np.bincount(member, np.abs(self.s[nodes]) + np.abs(excess))
        lower = np.bincount(member, mask)
        splits = (value < -1e-14 * scale) & (lower > 0) & (lower < np.bincount(member))
        kept = splits[member[tails]] & (mask[tails] == mask[heads])
        residuals = graph.residuals[kept]
        self._edges, self._there, self._back = edges[kept], residuals[:, 0], residuals[:, 1]
        parts = (2 * member + mask)[splits[member]]
        self.left = nodes = nodes[splits[member]]
        is_part = np.bincount(parts, minlength=1) > 0
        self._block[nodes] = (np.cumsum(is_part) - 1)[parts]
        return len(nodes) == 0
