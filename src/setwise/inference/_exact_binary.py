r"""Two labels: the least upper bound on log Z exactly, by cuts.

With :math:`G(A) = E(x) - E(0)`, :math:`A = \{i: x_i = 1\}`, the bound is :math:`\min_{s \in B(G)}
\sum_i \log(1 + e^{-s_i / t})` (Claim 1 and equation (5)). One s minimises every such sum of one
convex function of the coordinates, so the temperature has no part in it, and its level sets are
minimisers of :math:`G(A) - \lambda |A|`: divide and conquer.
"""

from __future__ import annotations

import numpy as np

from setwise.fields._field import Field
from setwise.functions._arguments import FloatArray
from setwise.inference._concave_cut import ConcaveCut, as_cut
from setwise.inference._flow_graph import FlowGraph
from setwise.inference._marginal_options import Options, Solution
from setwise.inference._relaxation import Relaxation


def exact_binary(field: Field, options: Options) -> Solution:
    """The minimiser by at most N levels of cuts (16 on a photograph), all blocks of a level at once.

    Regions become auxiliary nodes, one for each kink of their function: few for robust terms and
    label costs, as many as variables for powers, so that these are refused where the arcs would be
    more than 4e6. ``n_iter`` counts the levels; ``tol`` and ``max_iter`` have no effect.
    """
    if field.n_labels != 2:
        raise ValueError(f"field must have two labels for exact_binary, got {field.n_labels}")
    t = options.temperature
    relaxation = Relaxation(field)
    unary = relaxation.finite_unary(t)
    s, n_levels = base_minimiser(as_cut(field, unary), field.n_variables)
    p = np.empty(unary.shape)
    p[:, 1] = np.where(s > 0, np.exp(-np.abs(s) / t), 1.0) / (1.0 + np.exp(-np.abs(s) / t))
    p[:, 0] = np.where(s > 0, 1.0, np.exp(-np.abs(s) / t)) / (1.0 + np.exp(-np.abs(s) / t))
    # everything relative to label 0: the energy of all zeros enters last
    value = float(np.logaddexp(0.0, -s / t).sum())
    zero = relaxation.extension(np.eye(2)[np.zeros(len(p), np.int64)])
    rise = relaxation.extension(p) - zero + float((p[:, 1] * (unary[:, 1] - unary[:, 0])).sum())
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    dual = -float((p * logs).sum()) - rise / t
    upper = value - (zero + float(unary[:, 0].sum()) + relaxation.constant) / t
    gap = max(value - dual, 0.0)
    shifted = value - float((unary[:, 0] - unary.min(axis=1)).sum() + zero) / t
    relative_gap = gap / max(1.0, abs(shifted))
    return Solution(
        probabilities=p,
        upper=upper,
        gap=gap,
        relative_gap=relative_gap,
        n_iter=n_levels,
        converged=relative_gap <= max(options.tol, 1e-9),
        interrupted=False,
        history=[upper],
    )


def base_minimiser(cut: ConcaveCut, n: int) -> tuple[FloatArray, int]:
    """The s (n,) in the base polytope whose level sets minimise G(A) - lambda |A|; and the levels.

    A block is cut at the mean of its costs; one that the cut leaves whole has s equal to the mean. An
    edge that leaves the lower part becomes a cost: its flow is at its capacity, and stays there. So s
    is the boundary of a flow within the capacities, and lies in the base polytope up to rounding.
    """
    costs = cut.costs.copy()
    nodes = np.arange(len(costs))  # of blocks that are not done
    is_variable = (nodes < n).astype(np.float64)
    block = np.zeros(len(costs), np.int64)
    edges, there, back = cut.edges, cut.there, cut.back
    s = np.zeros(len(costs))
    place = np.empty(len(costs), np.int64)
    n_levels = 0
    while len(nodes):
        n_levels += 1
        n_blocks = int(block[nodes].max()) + 1
        weight = np.bincount(block[nodes], is_variable[nodes], n_blocks)
        level = np.bincount(block[nodes], costs[nodes], n_blocks) / np.maximum(weight, 1.0)
        excess = costs[nodes] - level[block[nodes]] * is_variable[nodes]
        place[nodes] = np.arange(len(nodes))
        graph = FlowGraph(len(nodes), place[edges], there, back, dtype=np.float64)
        graph.set_terminals(np.maximum(-excess, 0.0), np.maximum(excess, 0.0))
        graph.solve()
        inside = np.zeros(len(costs), np.bool_)
        inside[nodes] = graph.mask
        forth = inside[edges[:, 0]] & ~inside[edges[:, 1]]
        hither = inside[edges[:, 1]] & ~inside[edges[:, 0]]
        leaving = np.where(forth, there, 0.0) + np.where(hither, back, 0.0)
        value = np.bincount(block[nodes], excess * inside[nodes], n_blocks)
        value += np.bincount(block[edges[:, 0]], leaving, n_blocks)
        scale = np.bincount(block[nodes], np.abs(excess), n_blocks)
        splits = (value < -1e-14 * scale) & (weight > 0)
        _settle(s, costs, edges, graph.flows, ~splits[block[edges[:, 0]]])
        done = ~splits[block[nodes]]
        s[nodes[done]] += costs[nodes[done]]
        # cut edges turn into costs of their two ends
        for crossing, capacity, tail, head in ((forth, there, 0, 1), (hither, back, 1, 0)):
            which = crossing & splits[block[edges[:, 0]]]
            costs += np.bincount(edges[which, tail], capacity[which], len(costs))
            costs -= np.bincount(edges[which, head], capacity[which], len(costs))
        nodes = nodes[~done]
        kept = splits[block[edges[:, 0]]] & ~forth & ~hither
        edges, there, back = edges[kept], there[kept], back[kept]
        _, fresh = np.unique(2 * block[nodes] + inside[nodes], return_inverse=True)
        block[nodes] = fresh
    return s[:n], n_levels


def _settle(
    s: FloatArray, costs: FloatArray, edges: np.ndarray, flows: np.ndarray, done: np.ndarray
) -> None:
    """Add the boundary of the flows on the edges of finished blocks."""
    n = len(costs)
    s += np.bincount(edges[done, 0], flows[done], n)
    s -= np.bincount(edges[done, 1], flows[done], n)
