"""The treewidth condition of elimination, and the junction tree of a field."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._methods import Method, Run
from setwise._foundation._threads import machine_memory
from setwise.fields._edges import grid_of
from setwise.fields._field import Field
from setwise.fields._terms import CliqueTerm, Folded, PottsTerm, TableTerm
from setwise.inference._map._factors import most_variables, scopes_of, sides_of, tables_of, widest

# The most bytes of tables if "auto" chooses elimination. If elimination is requested by name, its
# tables may take _SHARE of the memory of the machine, which leaves enough for a copy of the field.
# Not tuned.
MEMORY = 1 << 30
_SHARE = 0.5
_BYTES = 8  # the bytes of a cell, which is a float64
# The limits up to which an error message states the required size: the number of variables, above
# which computing the size would take too long, and a number of cells that no memory can hold.
_MOST_MEASURED = 20_000
_BEYOND = 2.0**60
# The most cells of a table of a potential, 64 MB, and of the tables of all potentials, 512 MB.
# Chosen by hand to bound the memory.
CELLS = 1 << 23
ALL_CELLS = 1 << 26
# The most cells with which "auto" chooses elimination. FEWEST_CELLS cost almost nothing. The second
# number takes about a hundredth of a second, like a short search. The third takes about a second,
# and is for answers that searches have not proved (benchmarks/exact.py).
FEWEST_CELLS = 1 << 15
FEW_CELLS = 1 << 20
MANY_CELLS = 1 << 29
FEW_VARIABLES = 2000
# No elimination order is searched if tables of n_labels**2 entries, one per variable, have more
# entries than this in total. Chosen by hand; no measurement is on record.
MOST_ENTRIES = 1 << 22


class Planned(NamedTuple):
    """A kernel with the tables of a field and an elimination order."""

    tree: Any
    constant: float
    """the constant of the energy, which the kernel does not have"""
    owners: IntArray
    """(F,): the number of the potential of each table, in the order of ``field.potentials``"""
    size: str
    """The width and the memory of the tables, as part of a sentence."""


def narrow(field: Field) -> str | None:
    """Return None if the field can be eliminated, otherwise the violated condition."""
    return field._remember("narrow", lambda: _lack(field, MEMORY))


def largest_memory() -> float:
    """Return the bytes that elimination may use if it is requested by name."""
    return max(MEMORY, _SHARE * machine_memory())


def named(record: Method[Run]) -> Method[Run]:
    """Return the record of a method with the memory limit for requests by name."""
    if record.name != "elimination":
        return record
    return replace(record, needs=lambda field: _lack(field, largest_memory()))


def is_cheap(field: Field) -> bool:
    """Return whether elimination is cheap and exact: on short forests, small narrow graphs."""
    return field._remember("cheap", lambda: _is_within(field, FEW_CELLS))


def is_affordable(field: Field) -> bool:
    """Return whether elimination takes at most about a second, for answers that are not proved."""
    return field._remember("affordable", lambda: _is_within(field, MANY_CELLS))


def is_cheaper(field: Field) -> bool:
    """Return whether elimination is cheaper than a search.

    Searches over pairs are fast, and mostly exact on narrow graphs.
    """
    if all(isinstance(term, PottsTerm | TableTerm) for _, term in field._folded().terms):
        return field._remember("cheaper", lambda: _is_within(field, FEWEST_CELLS))
    return is_cheap(field)


def numbers_of_a_pass(field: Field) -> int:
    """Return the approximate number of entries that a pass over a field visits."""
    n, n_labels = field.unary.shape
    total: int = n * n_labels
    for _, term in field._folded().terms:
        match term:
            case CliqueTerm():
                total += term.tables.size
            case TableTerm():
                total += term.tables.size
            case _:
                total += term._n_summands(n) * n_labels
    return total


def _is_within(field: Field, cells: int) -> bool:
    n, n_labels = field.unary.shape
    terms = field._folded().terms
    if not terms or n_labels == 1 or n * n_labels**2 > MOST_ENTRIES:
        return False
    pairs = [term for _, term in terms if isinstance(term, PottsTerm | TableTerm)]
    if len(pairs) == len(terms):
        for term in pairs:
            grid = grid_of(term.edges)
            if grid is not None and min(grid.sides) >= most_variables(cells, n_labels):
                return False
        edges = [term.edges for term in pairs]
        if _is_forest(np.concatenate(edges) if len(edges) > 1 else edges[0], n):
            return bool(2 * n * n_labels**2 <= cells)
    if n > FEW_VARIABLES:
        return False
    tree = _scopes(field, min(cells, CELLS), min(cells, ALL_CELLS))
    if isinstance(tree, str):
        return False
    _, total, _, memory = tree.plan(MEMORY / _BYTES, float(cells))
    return bool(total <= cells and _BYTES * memory <= MEMORY)


def _is_forest(edges: IntArray, n: int) -> bool:
    """Return whether edges, which may be repeated, have no cycle."""
    if len(edges) > 2 * n:
        return False
    kept = np.empty(len(edges), np.uint8)
    _core.spanning_forest(np.ascontiguousarray(edges), n, np.zeros(len(edges)), kept)
    n_kept = np.count_nonzero(kept)
    if n_kept == len(edges):
        return True
    distinct = np.unique(edges.min(axis=1) * n + edges.max(axis=1))
    return bool(len(distinct) == n_kept)


def _lack(field: Field, memory: float) -> str | None:
    """Return why the tables do not fit into this memory."""
    tree = _scopes(field, CELLS, ALL_CELLS)
    if isinstance(tree, str):
        return tree
    most = memory / _BYTES
    largest, total, width, needed = tree.plan(most, inf)
    if total < inf and needed <= most:
        return None
    if total == inf and field.n_variables <= _MOST_MEASURED:
        largest, total, width, needed = tree.plan(_BEYOND, inf)
    cells, more = (largest, " or more") if total == inf else (needed, "")
    size = f"{cells * _BYTES:.3g} bytes" if cells < inf else "far more"
    fits = max(most_variables(max(int(most), 1), field.n_labels) - 1, 0)
    return (
        f"tables of at most {memory:.3g} bytes (width {fits} or less with {field.n_labels} "
        f"labels), got width {width}{more}: {size}{more}; use a machine with more memory, of which "
        "elimination may take half, or let method='auto' choose another method"
    )


def _scopes(field: Field, cells: int, all_cells: int) -> Any:
    """Return the tree of a field without its tables, and the reason if these are too large."""
    n, n_labels = field.unary.shape
    terms = field._folded().terms
    most = most_variables(cells, n_labels)
    wide, whose = widest(terms, n)
    if wide > most:
        return (
            f"tables of at most {most} variables, got {wide} in {whose!r}; let method='auto' "
            "choose another method"
        )
    tree = _core.JunctionTree(_logs(field._folded(), 1.0))
    total = 0.0
    for _, term in terms:
        for scopes in scopes_of(term, n):
            if scopes.shape[1]:
                tree.add_scopes(np.ascontiguousarray(scopes))
                sides = sides_of(term, scopes.shape[1], n_labels)
                total += len(scopes) * float(np.prod(sides, dtype=np.float64))
    if total > all_cells:
        return (
            f"tables of potentials of at most {all_cells} entries together, got {total:.0f}; let "
            "method='auto' choose another method"
        )
    return tree


def _logs(folded: Folded, temperature: float) -> FloatArray:
    """Return -u / t, minus infinity for labels that are forbidden or outside a table."""
    logs: FloatArray = np.ascontiguousarray(-folded.unary / temperature)
    for _, term in folded.terms:
        if isinstance(term, CliqueTerm):
            for axis, side in enumerate(term.sides.tolist()):
                logs[term.cliques[:, axis], side:] = -inf
    return logs


def planned(field: Field, temperature: float) -> Planned:
    """Return the junction tree of a field of small treewidth, with tables of -E / temperature."""
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
    for memory in (MEMORY, largest_memory()):  # the field is narrow, so one of the two is enough
        _, total, width, cells = tree.plan(memory / _BYTES, inf)
        if total < inf:
            break
    none: IntArray = np.zeros(0, np.int64)
    size = f"width {width}, {cells * _BYTES / 1e6:.3g} MB of tables"
    return Planned(tree, constant, np.concatenate([none, *owners]), size)
