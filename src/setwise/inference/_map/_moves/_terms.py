"""The terms of a field in the form of graph-cut moves, and the conditions of each method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from setwise._core import Moves
from setwise._foundation._arguments import BATCH, FloatArray, IntArray
from setwise._foundation._methods import refused, taken
from setwise.fields._field import Field
from setwise.fields._terms import (
    KINDS,
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

NOT_PAIRS = "it is a table of several variables, or forbids: elimination, branch_and_bound take it"


def start_moves(field: Field, init: IntArray | None) -> tuple[Moves, IntArray]:
    """Return a kernel with the field's terms, and its initial labelling.

    This is ``init``, or the label of least unary energy for each variable.
    """
    n, labels = field.n_variables, field.n_labels
    _, unary, terms = field._folded()
    if init is not None:
        start = init
    elif unary is field.unary:
        start = field._favourites().labels.copy()  # a copy, since the kernel changes it
    else:
        start = np.argmin(unary, axis=1)
    kernel = Moves(np.ascontiguousarray(unary))
    for _, term in terms:
        _add(kernel, term, n, labels)
    _add_costs(kernel, [term for _, term in terms if isinstance(term, LabelTerm)], labels)
    kernel.start(start)
    return kernel, start


def _add(kernel: Moves, term: Term, n: int, labels: int) -> None:
    own = np.arange(labels)  # each label is its own group
    match term:
        case PottsTerm(edges, weights):
            kernel.add_potts(_ints(edges), _floats(weights))
        case TableTerm(edges):
            tables, weights = term._arrays()
            kernel.add_tables(_ints(edges), tables.ravel(), weights)
        case CountTerm(regions, starts, table):
            kernel.add_counts(_ints(regions), _ints(starts), _floats(table), own)
        case RobustTerm(regions, weights, truncation):
            kernel.add_robust(_ints(regions), _floats(weights), _floats(truncation), own)
        case CardinalityTerm(center, table) if n > 0:
            # The kernel counts the variables with the label of the center, so its table is
            # reversed.
            kernel.add_counts(
                np.zeros(n, np.int64),
                np.array([0, n + 1]),
                _floats(table[::-1]),
                np.where(own == center[0], 0, -1),
            )
        case TransitionTerm(edges, costs):
            values = term._heights(np.arange(len(edges) + 1, dtype=np.float64))
            kernel.add_transitions(_ints(edges), _floats(costs), _floats(values))


def _add_costs(kernel: Moves, terms: list[LabelTerm], labels: int) -> None:
    """Add label costs in layers of disjoint groups, by first fit."""
    layers: list[tuple[list[float], IntArray]] = []
    for term in terms:
        free = [layer for layer in layers if (layer[1][term.labels] < 0).all()]
        if not free:
            layers.append(([], np.full(labels, -1)))
        costs, groups = free[0] if free else layers[-1]
        groups[term.labels] = len(costs)
        costs.append(term.cost)
    for costs, groups in layers:
        kernel.add_costs(np.array(costs, np.float64), groups)


def _ints(array: IntArray) -> IntArray:
    return np.ascontiguousarray(array, np.int64).ravel()


def _floats(array: FloatArray) -> FloatArray:
    return np.ascontiguousarray(array, np.float64).ravel()


def _submodular_tables(
    worst: Callable[[FloatArray], FloatArray], moves: str
) -> Callable[[TableTerm], str | None]:
    """Return a condition on terms: tables must be submodular for a kind of moves."""

    def find(term: TableTerm) -> str | None:
        edges, tables = term.edges, term._distinct
        if len(tables) > 1 and (tables == tables[0]).all():  # one table for all edges
            tables = tables[:1]
        for begin in range(0, len(tables), step := max(1, BATCH // tables[:1].size)):
            chunk = tables[begin : begin + step]
            fresh = np.ones(len(chunk), np.bool_)  # often many edges share a table
            fresh[1:] = (chunk[1:] != chunk[:-1]).any(axis=(1, 2))
            chunk = chunk[fresh]
            excess = worst(chunk) - 1e-12 * np.abs(chunk).max(axis=(1, 2))
            if (excess > 0).any():
                first = np.flatnonzero(fresh)[int(np.argmax(excess > 0))]
                i, j = edges[begin + first]
                return f"its table is not submodular{moves} on edge ({i}, {j})"
        return None

    # The result is cached, because it is needed when a method is chosen and when it runs.
    def condition(term: TableTerm) -> str | None:
        return term._remember(moves, lambda: find(term))

    return condition


def _concave_around_a_label(term: CardinalityTerm) -> str | None:
    if len(term.center) and (term.center != term.center[0]).any():
        return "its center must be the same label for all variables"
    return None if term.is_submodular else "its table is not concave"


def _worst_swap(tables: FloatArray) -> FloatArray:
    """Return the largest t(a, a) + t(b, b) - t(a, b) - t(b, a) of each table (E, L, L)."""
    same = np.diagonal(tables, axis1=1, axis2=2)
    rise = same[:, :, None] + same[:, None, :] - tables - tables.transpose(0, 2, 1)
    return np.asarray(rise.max(axis=(1, 2)))


def _worst_expansion(tables: FloatArray) -> FloatArray:
    """Return the largest t(a, a) + t(b, c) - t(b, a) - t(a, c) of each table (E, L, L)."""
    worst = np.zeros(len(tables))
    for a in range(tables.shape[1]):
        rise = tables + tables[:, a, a, None, None] - tables[:, :, a, None] - tables[:, a, None, :]
        np.maximum(worst, rise.max(axis=(1, 2)), out=worst)
    return worst


_TAKEN: dict[type, Callable[[Any], str | None]] = {
    **dict.fromkeys(KINDS, taken),
    CardinalityTerm: _concave_around_a_label,
    CliqueTerm: refused(NOT_PAIRS),
}
_TRANSITIONS = refused("the cost of a pair of labels that touch is for swaps alone")

TAKEN_BY_CUT = _TAKEN | {
    TableTerm: _submodular_tables(_worst_swap, ""),
    TransitionTerm: _TRANSITIONS,
}
TAKEN_BY_EXPANSION = _TAKEN | {
    TableTerm: _submodular_tables(_worst_expansion, " in every expansion"),
    RobustTerm: refused("its truncation is above half of a region, which is for swaps alone"),
    TransitionTerm: _TRANSITIONS,
}
TAKEN_BY_SWAP = _TAKEN | {TableTerm: _submodular_tables(_worst_swap, " in every swap")}
