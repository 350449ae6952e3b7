r"""Two labels: the least upper bound on log Z exactly, by cuts.

With :math:`G(A) = E(x) - E(0)`, :math:`A = \{i: x_i = 1\}`, the bound is :math:`\min_{s \in B(G)}
\sum_i \log(1 + e^{-s_i / t})` (Claim 1 and equation (5)). One s minimises every such sum of one
convex function of the coordinates, so the temperature has no part in it, and its level sets are
minimisers of :math:`G(A) - \lambda |A|`: divide and conquer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, gap_over_value
from setwise.fields._field import Field
from setwise.inference._flows._energy_as_cut import ConcaveCut, as_cut
from setwise.inference._flows._flow_graph import FlowGraph
from setwise.inference._map._largest_energy import rounding_of_logs
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._relaxation._relaxation import Relaxation


def exact_binary(field: Field, options: Options) -> Solution:
    r"""The minimiser by levels of cuts (16 on a photograph, N at most), all blocks at once.

    Regions become auxiliary nodes, one for each kink of their function: few for robust terms and
    label costs, as many as variables for powers, so that these are refused where the arcs would be
    more than 4e6. ``n_iter`` counts the levels; ``tol`` and ``max_iter`` have no effect.

    After each level s lies in the base polytope of the cut over variables and auxiliary nodes B, so
    :math:`G(A) \ge s(A) + \sum_{b \in B} \min(s_b, 0)`: a callback or Ctrl-C may end the search
    there, and the bound holds. At the end nothing is left at the auxiliary nodes. It is raised by
    what the flows of so many levels may have lost of their digits.
    """
    t = options.temperature
    relaxation = Relaxation(field)
    unary = relaxation.finite_unary(t)
    n = field.n_variables
    largest = np.abs(unary).max(axis=1) + relaxation.reach
    # everything relative to label 0: the energy of all zeros enters last
    zero = relaxation.extension(np.eye(2)[np.zeros(n, np.int64)])
    of_zeros = (zero + float(unary[:, 0].sum()) + relaxation.constant) / t
    history: list[float] = []
    rounding = rounding_of_logs(field, t)
    lost = 0.0

    def value_at(nodes: FloatArray) -> float:
        left = float(np.minimum(nodes[n:], 0.0).sum())
        return float(np.logaddexp(0.0, -nodes[:n] / t).sum()) - left / t

    def report(n_levels: int, nodes: FloatArray) -> bool:
        nonlocal lost
        sizes = float(np.abs(nodes).sum()) + float(largest.sum())
        lost = rounding + (8.0 + 4.0 * n_levels) * EPS * sizes / t
        history.append(value_at(nodes) - of_zeros + lost)
        return options.report(n_levels, history[-1])

    nodes, n_levels, interrupted = base_minimizer(as_cut(field, unary), n, report)
    s, value = nodes[:n], value_at(nodes)
    p = np.empty(unary.shape)
    p[:, 1] = np.where(s > 0, np.exp(-np.abs(s) / t), 1.0) / (1.0 + np.exp(-np.abs(s) / t))
    p[:, 0] = np.where(s > 0, 1.0, np.exp(-np.abs(s) / t)) / (1.0 + np.exp(-np.abs(s) / t))
    rise = relaxation.extension(p) - zero + float((p[:, 1] * (unary[:, 1] - unary[:, 0])).sum())
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    dual = -float((p * logs).sum()) - rise / t
    gap = max(0.0, value - dual)
    shifted = value - float((unary[:, 0] - unary.min(axis=1)).sum() + zero) / t
    relative_gap = gap_over_value(gap, shifted)
    return Solution(
        probabilities=p,
        upper=value - of_zeros + lost,
        gap=gap + lost,
        relative_gap=relative_gap,
        n_iter=n_levels,
        converged=relative_gap <= max(options.tol, 1e-9),
        interrupted=interrupted,
        history=history,
    )


def base_minimizer(
    cut: ConcaveCut, n: int, report: Callable[[int, FloatArray], bool]
) -> tuple[FloatArray, int, bool]:
    """The s in the base polytope whose level sets minimise G(A) - lambda |A|, levels, interrupted.

    s has an entry for each node, the n variables first; ``report`` is told the number of levels and
    s after each, and ends the search by True, as Ctrl-C does.

    A block is cut at the mean of its costs; one that the cut leaves whole has s equal to the mean.
    Flow is kept: it moves cost along the edges and leaves less capacity, none across a cut. So s is
    the boundary of a flow within the capacities, and lies in the base polytope up to rounding.
    """
    s = cut.costs.copy()
    nodes = np.arange(len(s))  # of blocks that are not done
    is_variable = (nodes < n).astype(np.float64)
    block = np.zeros(len(s), np.int64)
    edges, there, back = cut.edges, cut.there, cut.back
    place = np.empty(len(s), np.int64)
    n_levels = 0
    try:
        while len(nodes):
            member, free = block[nodes], is_variable[nodes]
            weight = np.bincount(member, free)
            level = np.bincount(member, s[nodes]) / np.maximum(weight, 1.0)
            excess = s[nodes] - level[member] * free
            place[nodes] = np.arange(len(nodes))
            ends = place[edges]
            tails, heads = np.ascontiguousarray(ends.T)
            graph = FlowGraph(len(nodes), ends, there, back, dtype=np.float64)
            graph.set_terminals(np.maximum(-excess, 0.0), np.maximum(excess, 0.0))
            graph.solve()
            flows, mask = graph.flows, graph.mask
            moved = np.bincount(tails, flows, len(nodes))
            moved -= np.bincount(heads, flows, len(nodes))
            s[nodes] += moved
            n_levels += 1
            if report(n_levels, s):
                return s, n_levels, True
            # what is left below the mean could not flow out of the lower part: the cut's value
            value = np.bincount(member, (excess + moved) * mask)
            scale = np.bincount(member, np.abs(s[nodes]) + np.abs(excess))
            lower = np.bincount(member, mask)
            splits = (value < -1e-14 * scale) & (lower > 0) & (lower < np.bincount(member))
            kept = splits[member[tails]] & (mask[tails] == mask[heads])
            residuals = graph.residuals[kept]
            edges, there, back = edges[kept], residuals[:, 0], residuals[:, 1]
            parts = (2 * member + mask)[splits[member]]
            nodes = nodes[splits[member]]
            is_part = np.bincount(parts, minlength=1) > 0
            block[nodes] = (np.cumsum(is_part) - 1)[parts]
    except KeyboardInterrupt:  # s is that of the last level which was done
        return s, n_levels, True
    return s, n_levels, False
