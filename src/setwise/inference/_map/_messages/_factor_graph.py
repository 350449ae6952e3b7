"""The factor graph of a field: its terms, grouped by kind of message."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._methods import refused, taken
from setwise.fields._field import Field
from setwise.fields._terms import (
    KINDS,
    CardinalityTerm,
    CliqueTerm,
    CountTerm,
    LabelTerm,
    MergedPairs,
    RobustTerm,
    TransitionTerm,
    merge_pairs,
)
from setwise.inference._map._moves._terms import NOT_PAIRS


@dataclass(frozen=True, eq=False)
class CountFactor:
    """A factor table[k], where k is the number of members whose label is in their set of labels."""

    variables: IntArray
    patterns: BoolArray
    """(P, L)"""
    pattern: IntArray
    """The pattern of each member."""
    table: FloatArray


@dataclass(frozen=True, eq=False)
class RobustFactor:
    """A factor weight min(1, least number of members that differ from one label / truncation)."""

    variables: IntArray
    weight: float
    truncation: float


@dataclass(frozen=True, eq=False)
class Cliques:
    """Factors with tables of k variables each."""

    variables: IntArray
    """(C, k)"""
    tables: FloatArray
    """(C, L^k), the last variable fastest"""


@dataclass(frozen=True, eq=False)
class Factors:
    """The terms of a field, grouped by kind of message."""

    constant: float
    unary: FloatArray
    pairs: MergedPairs
    counts: list[CountFactor]
    robust: list[RobustFactor]
    cliques: list[Cliques]


def _finite(term: CliqueTerm) -> str | None:
    return NOT_PAIRS if term.is_hard else None


TAKEN_BY_MESSAGES = dict.fromkeys(KINDS, taken) | {
    TransitionTerm: refused("its counts are of pairs, not of variables"),
    CliqueTerm: _finite,
}


def factors_of(field: Field) -> Factors:
    """Return the factors whose sum is the energy of a field."""
    constant, unary, terms = field._folded()
    counts: list[CountFactor] = []
    robust: list[RobustFactor] = []
    cliques: list[Cliques] = []
    for _, term in terms:
        match term:
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
            case CliqueTerm() if len(term.cliques):
                cliques.append(_whole_tables(term, field.n_labels))
                unary = _within_sides(term, unary)
            case RobustTerm():
                members = _members(term.regions, len(term.weights))
                robust += [
                    RobustFactor(region, float(weight), float(truncation))
                    for region, weight, truncation in zip(
                        members, term.weights, term.truncation, strict=True
                    )
                    if len(region)
                ]
    pairs = merge_pairs((term for _, term in terms), *field.unary.shape)
    return Factors(constant, unary, pairs, counts, robust, cliques)


def _whole_tables(term: CliqueTerm, n_labels: int) -> Cliques:
    """Return tables over all labels, with 0 for labels outside a table."""
    sides = [(0, 0), *((0, n_labels - side) for side in term.sides.tolist())]
    tables = np.pad(term.tables, sides)
    return Cliques(term.cliques, tables.reshape(len(tables), -1))


def _within_sides(term: CliqueTerm, unary: FloatArray) -> FloatArray:
    """Return unaries that forbid the labels outside a table's sides."""
    for axis, side in enumerate(term.sides.tolist()):
        if side < unary.shape[1]:
            unary = unary.copy()
            unary[term.cliques[:, axis], side:] = np.inf
    return unary


def _counts_of_regions(term: CountTerm, n_labels: int) -> list[CountFactor]:
    """Return a factor per region and label, of the number of variables with the label."""
    found: list[CountFactor] = []
    single = np.eye(n_labels, dtype=bool)
    for r, members in enumerate(_members(term.regions, len(term.starts) - 1)):
        table = term.table[term.starts[r] : term.starts[r + 1]]
        found += [
            CountFactor(members, single, np.full(len(members), j), table) for j in range(n_labels)
        ]
    return found


def _members(regions: IntArray, count: int) -> list[IntArray]:
    """Return the variables of each region."""
    order = np.argsort(regions, kind="stable")
    bounds = np.searchsorted(regions[order], np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(bounds)]
