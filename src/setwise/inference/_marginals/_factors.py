"""The terms of a field as tables over the labellings of a few variables each."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._terms import (
    CardinalityTerm,
    CountTerm,
    LabelTerm,
    PottsTerm,
    RobustTerm,
    TableTerm,
    Term,
    TransitionTerm,
)


def scopes_of(term: Term, n: int) -> list[IntArray]:
    """The variables of each table that a term is a sum of; none for one that is a constant."""
    match term:
        case PottsTerm() | TableTerm():
            return list(term.edges)
        case CountTerm() | RobustTerm():
            n_regions = len(term.starts) - 1 if isinstance(term, CountTerm) else len(term.weights)
            sizes = np.bincount(term.regions[term.members], minlength=n_regions)
            return np.split(term.members, np.cumsum(sizes)[:-1]) if n_regions else []
        case TransitionTerm():
            return [np.unique(term.edges)]
        case LabelTerm() | CardinalityTerm():
            return [np.arange(n)]
        case _:
            raise TypeError(f"{type(term).__name__} is no sum of tables")


def widest(terms: tuple[tuple[Any, Term], ...], n: int) -> tuple[int, Any]:
    """How many variables the widest table has, and the potential that it comes from."""
    wide, whose = 0, None
    for potential, term in terms:
        match term:
            case CountTerm() | RobustTerm():
                inside = term.regions[term.regions >= 0]
                size = int(np.bincount(inside).max(initial=0))
            case LabelTerm() | CardinalityTerm():
                size = n
            case TransitionTerm():
                size = len(np.unique(term.edges))
            case _:
                size = 2 if len(term.edges) else 0  # type: ignore[attr-defined]
        if size > wide:
            wide, whose = size, potential
    return wide, whose


def tables_of(term: Term, n: int, n_labels: int) -> Iterator[tuple[IntArray, FloatArray]]:
    """Variables and energies (L, ..., L) in C order, for each table that a term is a sum of."""
    if isinstance(term, PottsTerm | TableTerm):
        for edge, table in term._pair_tables(n_labels):
            yield np.array(edge, np.int64), np.ascontiguousarray(table).ravel()
        return
    for k, scope in enumerate(scopes_of(term, n)):
        size = len(scope)
        labelings = _all_labelings(size, n_labels)
        match term:
            case CountTerm():
                heights = term.table[term.starts[k] : term.starts[k + 1]]
                alone: Term = CountTerm(np.zeros(size, np.int64), [0, size + 1], heights)
                if size == 0:
                    yield scope, np.array([n_labels * float(heights[0])])
                    continue
            case RobustTerm():
                if size == 0:
                    continue
                alone = RobustTerm(
                    np.zeros(size, np.int64), term.weights[k : k + 1], term.truncation[k : k + 1]
                )
            case TransitionTerm():
                edges = np.searchsorted(scope, term.edges)
                alone = TransitionTerm(edges, term.costs, term.concave)
            case _:
                alone = term
        yield scope, alone._energies(labelings, n_labels)


def _all_labelings(n: int, n_labels: int) -> IntArray:
    """(L^n, n), the last variable's labels running fastest."""
    digits = np.arange(n_labels**n)[:, None] // n_labels ** np.arange(n)[::-1]
    return np.ascontiguousarray(digits % n_labels)


def most_variables(cells: int, n_labels: int) -> int:
    """How many variables a table of so many cells may have."""
    return 10**6 if n_labels == 1 else int(log(cells) / log(n_labels) + 1e-9)
