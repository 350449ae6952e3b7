"""The setup of the compiled message search: order of the variables and shares of unaries."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from setwise._core import MessageSearch
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.fields._terms import MergedPairs
from setwise.inference._map._messages._factor_graph import Factors


def _visit_order(pairs: MergedPairs, n: int) -> tuple[IntArray, bool]:
    """Return the order in which messages visit the variables, and whether pairs form a forest.

    A forest is visited from its roots (breadth first), so that one sweep to the roots and one
    back are dynamic programming. Otherwise the order is the variables' own.
    """
    links = coo_array((np.ones(len(pairs.low)), (pairs.low, pairs.high)), shape=(n, n))
    components, component = connected_components(links, directed=False)
    if len(pairs.low) != n - components:
        return np.arange(n), False
    _, roots = np.unique(component, return_index=True)
    above = coo_array(
        (
            np.ones(len(pairs.low) + len(roots)),
            (np.append(pairs.low, np.full(len(roots), n)), np.append(pairs.high, roots)),
        ),
        shape=(n + 1, n + 1),
    )
    order = breadth_first_order(above.tocsr(), n, directed=False, return_predecessors=False)
    return order[1:].astype(np.int64), True


def _shares(
    pairs: MergedPairs, n: int, is_forest: bool, other_factors: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the part of a variable's unaries that each pair ahead gets, in both sweeps.

    The share is 1 / max(pairs ahead, pairs behind), as in sequential tree-reweighted message
    passing, where the other factors of a variable count as one more pair. In a forest without other
    factors, all unaries are sent towards the roots.
    """
    ahead = np.bincount(pairs.low, minlength=n)
    behind = np.bincount(pairs.high, minlength=n)
    shares = 1.0 / np.maximum(np.maximum(ahead, behind) + other_factors, 1)
    if is_forest and not other_factors.any():
        return 1.0 / np.maximum(ahead, 1), np.ones(n)
    return shares, shares


def message_search(factors: Factors, damping: float) -> tuple[MessageSearch, IntArray]:
    """Return the compiled search, and the order of its variables: its i is the field's order[i]."""
    n, n_labels = factors.unary.shape
    order, is_forest = _visit_order(factors.pairs, n)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    pairs = factors.pairs.renumbered(rank)
    counts, robust = factors.counts, factors.robust
    tables, table_starts = _share_tables([factor.table for factor in counts])
    pattern_starts = np.cumsum([0, *(len(factor.patterns) for factor in counts)])
    count_variables = _joined([rank[factor.variables] for factor in counts])
    robust_variables = _joined([rank[factor.variables] for factor in robust])
    others = np.zeros(n, np.bool_)
    cliques = factors.cliques
    clique_variables = _joined([rank[group.variables].ravel() for group in cliques])
    clique_sizes = _joined([np.full(len(g.variables), g.variables.shape[1]) for g in cliques])
    clique_cells = _joined([np.full(len(g.tables), g.tables.shape[1]) for g in cliques])
    others[count_variables] = others[robust_variables] = others[clique_variables] = True
    forward, backward = _shares(pairs, n, is_forest, others)
    search = MessageSearch(
        n=n,
        labels=n_labels,
        constant=factors.constant,
        unary=np.ascontiguousarray(factors.unary[order]).ravel(),
        low=pairs.low,
        high=pairs.high,
        table=pairs.table,
        weight=pairs.weights,
        tables=pairs.tables.ravel(),
        count_starts=np.cumsum([0, *(len(factor.variables) for factor in counts)]),
        count_variables=count_variables,
        count_patterns=_joined(
            [factor.pattern + start for factor, start in zip(counts, pattern_starts, strict=False)]
        ),
        count_tables=table_starts,
        count_values=tables,
        patterns=np.concatenate(
            [np.zeros((0, n_labels), np.bool_), *(factor.patterns for factor in counts)]
        )
        .astype(np.uint8)
        .ravel(),
        robust_starts=np.cumsum([0, *(len(factor.variables) for factor in robust)]),
        robust_variables=robust_variables,
        robust_weights=np.array([factor.weight for factor in robust], float),
        robust_truncations=np.array([factor.truncation for factor in robust], float),
        clique_starts=np.concatenate([[0], np.cumsum(clique_sizes)]),
        clique_variables=clique_variables,
        clique_tables=np.cumsum(clique_cells) - clique_cells,
        clique_values=np.concatenate([np.zeros(0), *(group.tables.ravel() for group in cliques)]),
        forward=forward,
        backward=backward,
        damping=damping,
    )
    return search, order


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _share_tables(tables: list[FloatArray]) -> tuple[FloatArray, IntArray]:
    """Return all tables in one array, and the start of each."""
    starts = np.cumsum([0, *(len(table) for table in tables)])
    return np.concatenate([np.zeros(0), *tables]), starts[:-1]
