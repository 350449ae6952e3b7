"""The best labelling of two labels with unaries, Potts potentials and tables, by one cut.

No graph is built in Python: the kernel reads unaries and weights from the arrays of the field. If
the edges are known to be those of a grid, it does not read the edges.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite, prod
from typing import NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.fields._edges import Grid, grid_of
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.fields._terms._tables import SPLIT_ROUNDING

Pairs = tuple[IntArray, FloatArray]
"""Edges (E, 2) and weights (E,)."""


class PottsField(NamedTuple):
    """Unaries and weights of edges whose energies are those of a field, up to a constant."""

    unary: FloatArray
    pairs: list[Pairs]
    largest: float
    """the largest difference between two entries of one table; 0 without tables"""
    total: float
    """the sum over the tables of the difference between the largest and the least entry"""


def as_potts(field: Field) -> PottsField | None:
    """Return a field of two labels, Potts terms and tables; None for any other field."""
    kinds = {type(term) for _, term in field._given()}
    if field.n_labels != 2 or not kinds or not kinds <= {PottsTerm, TableTerm}:
        return None
    unary = field.unary
    # A large cost that is the same for all labels would increase rounding errors.
    if TableTerm in kinds:
        unary = unary - field._favourites().least[:, None]
    pairs: list[Pairs] = []
    largest, total = 0.0, 0.0
    for _, term in field._given():
        if isinstance(term, PottsTerm):
            pairs.append((term.edges, term.weights))
        elif isinstance(term, TableTerm):
            weights = np.empty(len(term.edges))
            tables, factors = term._arrays()
            above, sizes = _core.split_tables(
                term.edges, tables.ravel(), factors, SPLIT_ROUNDING, unary, weights
            )
            if above < 0.0:
                return None
            pairs.append((term.edges, weights))
            largest, total = max(largest, above), total + sizes
    return PottsField(unary, pairs, largest, total)


def above_least(field: Field, labels: IntArray) -> float | None:
    """Return the energy of labels minus the least unaries and the least entries of all tables.

    Sums are compensated. Return None unless the field consists of two labels, Potts potentials and
    tables alone. The least value of a Potts potential is 0.
    """
    if field.n_labels != 2:
        return None
    excess = _core.unary_above_least(labels, field.unary)
    for _, term in field._given():
        if isinstance(term, TableTerm):
            tables, factors = term._arrays()
            excess += _core.tables_above_least(labels, term.edges, tables.ravel(), factors)
        elif isinstance(term, PottsTerm):
            excess += _core.weights_between(labels, term.edges, term.weights)
        else:
            return None
    return excess


def least_of_all(field: Field) -> tuple[float, ...]:
    """Return numbers whose sum equals that of the least unaries and the least entries of tables.

    The field must be one that ``as_potts`` accepts.
    """
    parts = [*_core.sum_of_least(field.unary)]
    for _, term in field._given():
        if isinstance(term, TableTerm):
            parts += _exact_sum_of_least(term)
    return tuple(parts)


def _exact_sum_of_least(term: TableTerm) -> list[float]:
    """Return numbers whose sum is that of the least entries of all tables of two labels."""
    tables = term._distinct
    if len(tables) == len(term.edges) and (term.weights == 1.0).all():
        return [part for part in _core.sum_of_least(tables.reshape(-1, 4)) if part]
    parts = _core.sum_of_least(np.ascontiguousarray(term.weights[:, None]))
    total = sum(map(Fraction, parts)) * Fraction(float(tables.min()))
    return [float(total), float(total - Fraction(float(total)))]


class PottsCut(NamedTuple):
    """A labelling with its energy and its proof."""

    labels: IntArray
    """the labelling (N,): among all best ones the one with the fewest ones"""
    value: float
    """its energy, summed in the order of the arrays"""
    above_least: float
    """its energy minus the least unary of every variable"""
    gap: float
    """the gap to other labellings that is due to rounding of the flow"""
    rounding: float
    """the rounding error of that difference"""


def cut_potts(unary: FloatArray, pairs: list[Pairs], n_threads: int) -> PottsCut | None:
    r"""Minimise :math:`\sum_i u_{i x_i} + \sum_e w_e [x_i \ne x_j]` with unaries (N, 2).

    ``+inf`` in the unaries forbids a label. Return None if the numbers differ so much in size that
    rounding errors prevent a proof by a flow.
    """
    edges, weights = joined(pairs)
    labels = np.empty(len(unary), np.int64)
    answer = np.empty(5)
    grid = grid_of(edges)
    if grid is None or not _cut_grid(grid, unary, weights, labels, answer, n_threads):
        _core.cut_edges(unary, edges, weights, labels, answer, n_threads)
    alone, between, excess, lost, small = answer.tolist()
    if not isfinite(excess):
        return None
    rounding = small + 2.0 * FEW_ROUNDINGS * EPS * excess
    return PottsCut(labels, alone + between, excess, lost, rounding)


def _cut_grid(
    grid: Grid,
    unary: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    answer: FloatArray,
    n_threads: int,
) -> bool:
    """Return whether the grid has all variables, and few enough offsets to compute its edges."""
    wide = [axis for axis, side in enumerate(grid.sides) if side > 1]
    if prod(grid.sides) != len(unary) or not wide:
        return False
    sides = np.array(grid.sides, np.int64)
    steps = np.array(grid.steps, np.int64).reshape(-1, len(sides))
    steps = steps[(np.abs(steps) < sides).all(axis=1)]  # all other offsets lead out of the grid
    return _core.cut_grid(
        unary,
        sides[wide],
        np.ascontiguousarray(steps[:, wide]),
        weights,
        labels,
        answer,
        n_threads,
    )


def joined(pairs: list[Pairs]) -> Pairs:
    """Return the edges and weights of all pairs as one list.

    Weights are added up if all pairs have the same array of edges.
    """
    first = pairs[0][0]
    if len(pairs) == 1:
        return pairs[0]
    weights = [weights for _, weights in pairs]
    if all(edges is first for edges, _ in pairs):
        return first, np.sum(weights, axis=0)
    return np.concatenate([edges for edges, _ in pairs]), np.concatenate(weights)
