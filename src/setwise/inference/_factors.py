"""A field as the factor graph that messages run on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from setwise._core import MessageSearch
from setwise.fields._field import Field
from setwise.fields._terms import (
    CardinalityTerm,
    ConstantTerm,
    CountTerm,
    LabelTerm,
    PottsTerm,
    RobustTerm,
    TableTerm,
    UnaryTerm,
)
from setwise.functions._arguments import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of variables low < high, each once, with a Potts weight or a table."""

    low: IntArray
    high: IntArray
    weights: FloatArray
    """(E,): of the pairs without a table"""
    table: IntArray
    """(E,): the position in ``tables``, -1 for Potts"""
    tables: FloatArray
    """(T, L, L): [label of low, label of high]"""

    @property
    def spread(self) -> float:
        """The standard deviation of a pair's energy over its labels, on average."""
        labels = self.tables.shape[1]
        potts = self.weights[self.table < 0] * np.sqrt(labels - 1.0) / labels
        spreads = np.append(potts, self.tables.std(axis=(1, 2)))
        return float(spreads.mean()) if len(spreads) else 0.0


@dataclass(frozen=True, eq=False)
class CountFactor:
    """table[number of members whose label is in their pattern]."""

    variables: IntArray
    patterns: BoolArray
    """(P, L)"""
    pattern: IntArray
    """The pattern of each member."""
    table: FloatArray


@dataclass(frozen=True, eq=False)
class RobustFactor:
    """weight min(1, least number of members that differ from one label / truncation)."""

    variables: IntArray
    weight: float
    truncation: float


@dataclass(frozen=True, eq=False)
class Factors:
    """The terms of a field, sorted by how messages treat them."""

    constant: float
    unary: FloatArray
    pairs: Pairs
    counts: list[CountFactor]
    robust: list[RobustFactor]


def factors_of(field: Field) -> Factors:
    """The factors whose sum is the field's energy; a potential that has none is refused."""
    constant, unary = 0.0, field.unary
    potts: list[PottsTerm] = []
    tables: list[TableTerm] = []
    counts: list[CountFactor] = []
    robust: list[RobustFactor] = []
    for potential, term in field._terms():
        match term:
            case ConstantTerm():
                constant += term.value
            case UnaryTerm():
                unary = unary + term.unary
            case PottsTerm():
                potts.append(term)
            case TableTerm():
                tables.append(term)
            case CardinalityTerm():
                everyone, others = np.arange(field.n_variables), ~np.eye(field.n_labels, dtype=bool)
                counts.append(CountFactor(everyone, others, term.center, term.table))
            case LabelTerm():
                everyone = np.arange(field.n_variables)
                table = np.where(everyone > 0, term.cost, 0.0)
                counts.append(
                    CountFactor(
                        everyone,
                        term.labels[None],
                        np.zeros_like(everyone),
                        np.append(table, term.cost if field.n_variables else 0.0),
                    )
                )
            case CountTerm():
                counts += _counts_of_regions(term, field.n_labels)
            case RobustTerm():
                members = _members(term.regions, len(term.weights))
                robust += [
                    RobustFactor(region, float(weight), float(truncation))
                    for region, weight, truncation in zip(
                        members, term.weights, term.truncation, strict=True
                    )
                    if len(region)
                ]
            case _:
                raise ValueError(
                    f"{type(potential).__name__} has no messages, so method='messages' cannot take "
                    "it: choose another method"
                )
    pairs = _merge(potts, tables, field.n_variables, field.n_labels)
    return Factors(constant, unary, pairs, counts, robust)


def _counts_of_regions(term: CountTerm, n_labels: int) -> list[CountFactor]:
    """A factor for each region and label: the number of variables that take it."""
    found: list[CountFactor] = []
    single = np.eye(n_labels, dtype=bool)
    for r, members in enumerate(_members(term.regions, len(term.starts) - 1)):
        table = term.table[term.starts[r] : term.starts[r + 1]]
        found += [
            CountFactor(members, single, np.full(len(members), j), table) for j in range(n_labels)
        ]
    return found


def _members(regions: IntArray, count: int) -> list[IntArray]:
    """The variables of each region."""
    order = np.argsort(regions, kind="stable")
    bounds = np.searchsorted(regions[order], np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(bounds)]


def _merge(potts: list[PottsTerm], tables: list[TableTerm], n: int, n_labels: int) -> Pairs:
    """Each pair of variables once: weights add, tables add, and a table takes weights in."""
    ends = np.concatenate(
        [np.zeros((0, 2), np.int64), *(t.edges for t in potts), *(t.edges for t in tables)]
    )
    low, high = ends.min(axis=1), ends.max(axis=1)
    keys, pair = np.unique(low * n + high, return_inverse=True)
    split = sum(len(term.edges) for term in potts)
    weights = np.zeros(len(keys))
    np.add.at(weights, pair[:split], np.concatenate([np.zeros(0), *(t.weights for t in potts)]))
    table = np.full(len(keys), -1)
    with_table, place = np.unique(pair[split:], return_inverse=True)
    table[with_table] = np.arange(len(with_table))
    sums = np.zeros((len(with_table), n_labels, n_labels))
    if tables:
        given = np.concatenate([term.tables for term in tables])
        turned = ends[split:, 0] > ends[split:, 1]
        given[turned] = given[turned].transpose(0, 2, 1)
        np.add.at(sums, place, given)
        sums += weights[with_table, None, None] * ~np.eye(n_labels, dtype=bool)
    return Pairs(keys // max(n, 1), keys % max(n, 1), weights, table, sums)


def _visit_order(pairs: Pairs, n: int) -> tuple[IntArray, bool]:
    """In which order messages visit the variables, and whether the pairs form a forest.

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


def _in_order(pairs: Pairs, rank: IntArray) -> Pairs:
    """The pairs with variables numbered by rank, sorted."""
    first, second = rank[pairs.low], rank[pairs.high]
    tables = pairs.tables.copy()
    turned = pairs.table[(first > second) & (pairs.table >= 0)]
    tables[turned] = tables[turned].transpose(0, 2, 1)
    low, high = np.minimum(first, second), np.maximum(first, second)
    order = np.lexsort((high, low))
    return replace(
        pairs,
        low=low[order],
        high=high[order],
        weights=pairs.weights[order],
        table=pairs.table[order],
        tables=tables,
    )


def _shares(
    pairs: Pairs, n: int, is_forest: bool, other_factors: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """What part of a variable's unaries each pair ahead gets, in forward and backward sweeps.

    1 / max(pairs ahead, pairs behind), the weights of sequential tree-reweighted message passing,
    counting one more for the other factors of a variable; a lone forest gives all to its roots.
    """
    ahead = np.bincount(pairs.low, minlength=n)
    behind = np.bincount(pairs.high, minlength=n)
    shares = 1.0 / np.maximum(np.maximum(ahead, behind) + other_factors, 1)
    if is_forest and not other_factors.any():
        return 1.0 / np.maximum(ahead, 1), np.ones(n)
    return shares, shares


def message_search(factors: Factors, damping: float) -> tuple[MessageSearch, IntArray]:
    """The compiled search, and the order of its variables: its i is the field's order[i]."""
    n, n_labels = factors.unary.shape
    order, is_forest = _visit_order(factors.pairs, n)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    pairs = _in_order(factors.pairs, rank)
    counts, robust = factors.counts, factors.robust
    tables, table_starts = _share_tables([factor.table for factor in counts])
    pattern_starts = np.cumsum([0, *(len(factor.patterns) for factor in counts)])
    count_variables = _joined([rank[factor.variables] for factor in counts])
    robust_variables = _joined([rank[factor.variables] for factor in robust])
    others = np.zeros(n, np.bool_)
    others[count_variables] = others[robust_variables] = True
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
        forward=forward,
        backward=backward,
        damping=damping,
    )
    return search, order


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _share_tables(tables: list[FloatArray]) -> tuple[FloatArray, IntArray]:
    """All tables in one array, and where each starts."""
    starts = np.cumsum([0, *(len(table) for table in tables)])
    return np.concatenate([np.zeros(0), *tables]), starts[:-1]
