"""Fields that are narrow enough for elimination, and the tree that eliminates their variables."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._edges import grid_of
from setwise.fields._field import Field
from setwise.fields._terms import CliqueTerm, Folded, PottsTerm, TableTerm
from setwise.inference._map._factors import most_variables, scopes_of, sides_of, tables_of, widest

CELLS = 1 << 23  # of the table of a clique: 64 MB
ALL_CELLS = 1 << 26  # of all messages: 512 MB, and of all tables
# What "auto" spends on it at most: a few hundredths of a second; and what costs next to nothing.
FEW_CELLS = 1 << 19
FEWEST_CELLS = 1 << 14
FEW_VARIABLES = 2000


class Planned(NamedTuple):
    """A kernel with the tables of a field and an order of elimination."""

    tree: Any
    constant: float
    """of the energy, which the kernel does not know of"""
    owners: IntArray
    """(F,): the number of the potential of each table, in the order of ``field.potentials``"""


def narrow(field: Field) -> str | None:
    """What elimination asks of a field: None, or what it lacks."""
    return field._remember("narrow", lambda: _lack(field, CELLS, ALL_CELLS))


def is_cheap(field: Field) -> bool:
    """Whether elimination is a cheap way to an exact answer: short forests, small narrow graphs."""
    return field._remember("cheap", lambda: _is_within(field, FEW_CELLS))


def is_cheaper(field: Field) -> bool:
    """Whether it is cheap beside a search: where not all are pairs, or next to nothing is to do.

    Searches over pairs alone are fast, and mostly exact where a graph is narrow. None takes tables
    that forbid: beside those it is cheap wherever it is possible.
    """
    if any(isinstance(term, CliqueTerm) and term.is_hard for _, term in field._folded().terms):
        return narrow(field) is None
    if all(isinstance(term, PottsTerm | TableTerm) for _, term in field._folded().terms):
        return field._remember("cheaper", lambda: _is_within(field, FEWEST_CELLS))
    return is_cheap(field)


def _is_within(field: Field, cells: int) -> bool:
    n, n_labels = field.unary.shape
    terms = field._folded().terms
    if not terms or n_labels == 1 or n * n_labels**2 > 8 * FEW_CELLS:
        return False
    pairs = [term for _, term in terms if isinstance(term, PottsTerm | TableTerm)]
    if len(pairs) == len(terms):
        for term in pairs:
            grid = grid_of(term.edges)
            if grid is not None and min(grid.sides) >= most_variables(cells, n_labels):
                return False
        if _is_forest(np.concatenate([term.edges for term in pairs]), n):
            return bool(n * n_labels**2 <= cells)
    return n <= FEW_VARIABLES and _lack(field, cells, cells) is None


def _is_forest(edges: IntArray, n: int) -> bool:
    """Whether edges, of which some may be listed again, have no cycle."""
    low, high = edges.min(axis=1, initial=n), edges.max(axis=1, initial=-1)
    if len(edges) > 2 * n:
        return False
    distinct = np.unique(low * max(n, 1) + high)
    if len(distinct) >= n:
        return False
    ends = np.divmod(distinct, max(n, 1))
    graph = coo_array((np.ones(len(distinct)), ends), shape=(n, n))
    return bool(connected_components(graph, directed=False)[0] == n - len(distinct))


def _lack(field: Field, cells: int, all_cells: int) -> str | None:
    """Why tables of so many cells, and so many of all of them, do not do."""
    n, n_labels = field.unary.shape
    terms = field._folded().terms
    most = most_variables(cells, n_labels)
    wide, whose = widest(terms, n)
    if wide > most:
        return f"tables of at most {most} variables, got {wide} in {whose!r}"
    tree = _core.JunctionTree(_logs(field._folded(), 1.0))
    total = 0.0
    for _, term in terms:
        for scopes in scopes_of(term, n):
            if scopes.shape[1]:
                tree.add_scopes(np.ascontiguousarray(scopes))
                sides = sides_of(term, scopes.shape[1], n_labels)
                total += len(scopes) * float(np.prod(sides, dtype=np.float64))
    if total > all_cells:
        return f"tables of at most {all_cells} entries together, got {total:.0f}"
    largest, messages = tree.plan(float(cells))
    if largest == inf or messages > all_cells:
        return f"a graph of width below {most}, got a wider one"
    return None


def _logs(folded: Folded, temperature: float) -> FloatArray:
    """-u / t, minus infinity where a label is forbidden, by itself or beyond a table."""
    logs: FloatArray = np.ascontiguousarray(-folded.unary / temperature)
    for _, term in folded.terms:
        if isinstance(term, CliqueTerm):
            for axis, side in enumerate(term.sides.tolist()):
                logs[term.cliques[:, axis], side:] = -inf
    return logs


def planned(field: Field, temperature: float) -> Planned:
    """The tree of a field that is narrow, its tables logarithms at a temperature."""
    n, n_labels = field.unary.shape
    folded: Folded = field._folded()
    constant = folded.constant
    tree = _core.JunctionTree(_logs(folded, temperature))
    number = {id(potential): k for k, potential in enumerate(field.potentials)}
    owners: list[IntArray] = []
    for potential, term in folded.terms:
        for scopes, energies in tables_of(term, n, n_labels):
            if scopes.shape[1] == 0:
                constant += float(energies.sum())
                continue
            sides = sides_of(term, scopes.shape[1], n_labels)
            tree.add_factors(np.ascontiguousarray(scopes), sides, -energies / temperature)
            owners.append(np.full(len(scopes), number[id(potential)]))
    tree.plan(inf)  # which is narrow
    none: IntArray = np.zeros(0, np.int64)
    return Planned(tree, constant, np.concatenate([none, *owners]))
