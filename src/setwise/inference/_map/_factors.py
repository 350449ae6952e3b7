"""The terms of a field as tables over the labellings of a few variables each."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np

from setwise._foundation._arguments import BATCH, FloatArray, IntArray
from setwise.fields._terms import (
    CardinalityTerm,
    CliqueTerm,
    CountTerm,
    LabelTerm,
    PottsTerm,
    RobustTerm,
    TableTerm,
    Term,
    TransitionTerm,
)


def scopes_of(term: Term, n: int) -> list[IntArray]:
    """Return the variables (F, k) of the tables whose sum is the term, as a mapping from k."""
    match term:
        case PottsTerm() | TableTerm():
            return [term.edges]
        case CliqueTerm():
            return [term.cliques]
        case CountTerm() | RobustTerm():
            n_regions = len(term.starts) - 1 if isinstance(term, CountTerm) else len(term.weights)
            sizes = np.bincount(term.regions[term.members], minlength=n_regions)
            regions = np.split(term.members, np.cumsum(sizes)[:-1]) if n_regions else []
            return [region[None] for region in regions]
        case TransitionTerm():
            return [np.unique(term.edges)[None]]
        case LabelTerm() | CardinalityTerm():
            return [np.arange(n)[None]]
        case _:
            raise TypeError(f"{type(term).__name__} is no sum of tables")


def widest(terms: tuple[tuple[Any, Term], ...], n: int) -> tuple[int, Any]:
    """Return the number of variables of the widest table, and its potential."""
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
            case CliqueTerm():
                size = 0  # this term is already a table
            case _:
                size = 2 if len(term.edges) else 0  # type: ignore[attr-defined]
        if size > wide:
            wide, whose = size, potential
    return wide, whose


def sides_of(term: Term, k: int, n_labels: int) -> IntArray:
    """Return the number of labels of each axis of a term's tables, (k,)."""
    return term.sides if isinstance(term, CliqueTerm) else np.full(k, n_labels)


def tables_of(term: Term, n: int, n_labels: int) -> Iterator[tuple[IntArray, FloatArray]]:
    """Return variables (F, k) and energies, in C order, of the tables whose sum is a term.

    The energies have shape (F, L^k), or the sides of the term; k is 0 for a constant.
    """
    match term:
        case PottsTerm():
            unequal = (1.0 - np.eye(n_labels)).ravel()
            step = max(1, BATCH // unequal.size)
            for begin in range(0, len(term.edges), step):
                part = slice(begin, begin + step)
                yield term.edges[part], term.weights[part, None] * unequal
            return
        case TableTerm():
            step = max(1, BATCH // n_labels**2)
            for begin in range(0, len(term.edges), step):
                part = slice(begin, begin + step)
                yield term.edges[part], term._tables_of(part).reshape(-1, n_labels**2)
            return
        case CliqueTerm():
            yield term.cliques, term._flat()
            return
        case _:
            pass
    for k, scope in enumerate(scopes_of(term, n)):
        size = scope.shape[1]
        labelings = _all_labelings(size, n_labels)
        match term:
            case CountTerm():
                heights = term.table[term.starts[k] : term.starts[k + 1]]
                if size == 0:
                    yield scope, np.array([[n_labels * float(heights[0])]])
                    continue
                # Made without checks, because rounding may violate concavity.
                alone: Term = CountTerm._of(
                    np.zeros(size, np.int64), np.array([0, size + 1]), heights
                )
            case RobustTerm():
                if size == 0:
                    continue
                alone = RobustTerm(
                    np.zeros(size, np.int64), term.weights[k : k + 1], term.truncation[k : k + 1]
                )
            case TransitionTerm():
                edges = np.searchsorted(scope[0], term.edges)
                alone = TransitionTerm(edges, term.costs, term.concave)
            case _:
                alone = term
        yield scope, alone._energies(labelings, n_labels)[None]


def _all_labelings(n: int, n_labels: int) -> IntArray:
    """Return all labellings (L^n, n), where the last variable changes fastest."""
    digits = np.arange(n_labels**n)[:, None] // n_labels ** np.arange(n)[::-1]
    return np.ascontiguousarray(digits % n_labels)


def most_variables(cells: int, n_labels: int) -> int:
    """Return the largest number of variables of a table with ``cells`` cells."""
    return 10**6 if n_labels == 1 else int(log(cells) / log(n_labels) + 1e-9)
