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
    """The minimiser by levels of cuts (16 on a photograph, N at most), all blocks at once.

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
    inside = np.empty(len(s), np.bool_)
    n_levels = 0
    while len(nodes):
        n_levels += 1
        member, free = block[nodes], is_variable[nodes]
        weight = np.bincount(member, free)
        level = np.bincount(member, s[nodes]) / np.maximum(weight, 1.0)
        excess = s[nodes] - level[member] * free
        place[nodes] = np.arange(len(nodes))
        graph = FlowGraph(len(nodes), place[edges], there, back, dtype=np.float64)
        graph.set_terminals(np.maximum(-excess, 0.0), np.maximum(excess, 0.0))
        graph.solve()
        flows, mask = graph.flows, graph.mask
        moved = np.bincount(place[edges[:, 0]], flows, len(nodes))
        moved -= np.bincount(place[edges[:, 1]], flows, len(nodes))
        s[nodes] += moved
        inside[nodes] = mask
        # what is left below the mean could not flow out of the lower part: it is the cut's value
        value = np.bincount(member, (excess + moved) * mask)
        scale = np.bincount(member, np.abs(s[nodes]) + np.abs(excess))
        lower = np.bincount(member, mask)
        splits = (value < -1e-14 * scale) & (lower > 0) & (lower < np.bincount(member))
        nodes = nodes[splits[member]]
        kept = splits[block[edges[:, 0]]] & (inside[edges[:, 0]] == inside[edges[:, 1]])
        residuals = graph.residuals[kept]
        edges, there, back = edges[kept], residuals[:, 0], residuals[:, 1]
        _, block[nodes] = np.unique(2 * block[nodes] + inside[nodes], return_inverse=True)
    return s[:n], n_levels
