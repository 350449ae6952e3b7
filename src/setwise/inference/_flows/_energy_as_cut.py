"""Energies of two labels, including functions of counts, as cuts with auxiliary nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._field import Field
from setwise.fields._terms import (
    CardinalityTerm,
    CountTerm,
    LabelTerm,
    PottsTerm,
)

# The most auxiliary arcs of a cut that represents functions of counts. It limits the memory and
# time of the cut. Above it, other methods need less of both. Not tuned.
MOST_ARCS = 4_000_000


@dataclass(frozen=True, eq=False)
class ConcaveCut:
    r"""G(A) = min over Z of sum of costs of A + Z and of the arcs that leave it, A = {i: x_i = 1}.

    An edge (i, j) costs ``there`` if i is in the set and j is not, and ``back`` if j is in the set
    and i is not. Nodes 0..N-1 are the variables, the other nodes (Z) are auxiliary. A concave
    function of a count k is a linear function plus
    :math:`\sum_m c_m \min(k, m)`, and each :math:`\min(k, m)` is represented by an auxiliary node
    z. If z is inside, its cost is m. If it is outside, the arcs to it from the k variables cost 1
    each.
    """

    costs: FloatArray
    """(M,)"""
    edges: IntArray
    """(E, 2)"""
    there: FloatArray
    back: FloatArray


def as_cut(field: Field, unary: FloatArray) -> ConcaveCut:
    """Return the cut of a field of two labels. ``unary`` is finite and contains all unary terms."""
    n = field.n_variables
    edges, weights = [np.zeros((0, 2), np.int64)], [np.zeros(0)]
    counts: list[tuple[IntArray, FloatArray]] = []
    for potential, term in field._folded().terms:
        if isinstance(term, PottsTerm):
            edges.append(term.edges)
            weights.append(term.weights)
            continue
        found = _counts(term, n)
        if found is None:
            raise ValueError(
                "field must be a cut of its two labels for exact_binary, "
                f"got {type(potential).__name__}, which is not"
            )
        counts += found
        if sum(len(_kinks(values)[0]) * len(variables) for variables, values in counts) > MOST_ARCS:
            raise ValueError(
                f"field must need at most {MOST_ARCS} auxiliary arcs for exact_binary, got "
                f"more from {type(potential).__name__}: take projection"
            )
    all_weights = np.concatenate(weights)
    costs = unary[:, 1] - unary[:, 0]
    return cut_with_counts(costs, np.concatenate(edges), all_weights, all_weights, counts)


def _kinks(values: FloatArray) -> tuple[IntArray, FloatArray, float]:
    """Return the kinks of a concave function of a count, their sizes, and the last slope."""
    slopes = np.diff(values)
    sizes = slopes[:-1] - slopes[1:]
    kept = np.flatnonzero(sizes > 1e-14 * max(float(np.abs(values).max()), 1e-300))
    return kept, sizes[kept], float(slopes[-1])


def cut_with_counts(
    costs: FloatArray,
    edges: IntArray,
    there: FloatArray,
    back: FloatArray,
    counts: list[tuple[IntArray, FloatArray]],
) -> ConcaveCut:
    """Return the cut of costs, edges, and concave functions of the counts of some variables."""
    nodes, ends = [costs.copy()], [edges]
    forth, hither = [there], [back]
    n_nodes = len(costs)
    for variables, values in counts:
        kept, sizes, last = _kinks(values)
        nodes[0][variables] += last
        heads = n_nodes + np.arange(len(kept))
        nodes.append(sizes * (kept + 1))
        ends.append(
            np.stack([np.tile(variables, len(kept)), np.repeat(heads, len(variables))], axis=1)
        )
        forth.append(np.repeat(sizes, len(variables)))
        hither.append(np.zeros(len(kept) * len(variables)))
        n_nodes += len(kept)
    return ConcaveCut(
        np.concatenate(nodes), np.concatenate(ends), np.concatenate(forth), np.concatenate(hither)
    )


def _counts(term: object, n: int) -> list[tuple[IntArray, FloatArray]] | None:
    """Return the functions of counts whose sum is a term, or None if there are none.

    Each function has a list of variables, and size + 1 values for the number of them with label 1.
    """
    everyone = np.arange(n)
    match term:
        case CountTerm():
            ends = np.cumsum(np.diff(term.starts) - 1)
            tables = np.split(term.table, term.starts[1:-1])
            regions = np.split(term.members, ends[:-1])
            return [
                (variables, table + table[::-1])
                for variables, table in zip(regions, tables, strict=True)
                if len(variables)
            ]
        case LabelTerm():
            if n == 0 or term.labels.all() or not term.labels.any():
                return []
            used = np.full(n + 1, term.cost)
            used[0 if term.labels[1] else n] = 0.0
            return [(everyone, used)]
        case CardinalityTerm():
            if n == 0:
                return []
            if (term.center != term.center[0]).any():
                return None
            return [(everyone, term.table if term.center[0] == 0 else term.table[::-1].copy())]
    return None
