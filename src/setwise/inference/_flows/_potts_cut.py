"""Two labels, unaries, Potts and tables: the best labelling by one cut, and its flow.

No graph is made of Python's arrays: the kernel reads unaries and weights where they lie, and where
the edges are known to be those of a grid it does not read them at all.
"""

from __future__ import annotations

from math import isfinite, prod
from typing import NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise.fields._edges import Grid, grid_of
from setwise.fields._field import Field
from setwise.fields._potentials._pairwise import Pairwise
from setwise.fields._potentials._potts import Potts

# A table that is submodular but for so small a share of its range is so but for rounding.
_ROUNDING = 1e-14

Pairs = tuple[IntArray, FloatArray]
"""Edges (E, 2) and weights (E,)."""


class PottsField(NamedTuple):
    """Unaries and weights of edges that have the energies of a field, but for a constant."""

    unary: FloatArray
    pairs: list[Pairs]
    largest: float
    """the largest entry of a table above the table's least one; 0 without tables"""


def as_potts(field: Field) -> PottsField | None:
    """A field of two labels, Potts potentials and tables; None where there is something else."""
    kinds = {type(potential) for potential in field.potentials}
    if field.n_labels != 2 or not kinds or not kinds <= {Potts, Pairwise}:
        return None
    unary = field.unary
    if Pairwise in kinds:  # what all labels of a variable pay would take the digits of the tables
        unary = unary - field._favourites().least[:, None]
    pairs: list[Pairs] = []
    largest = 0.0
    for potential in field.potentials:
        if isinstance(potential, Potts):
            pairs.append((potential.edges, potential.weights))
        elif isinstance(potential, Pairwise):
            weights = np.empty(len(potential.edges))
            tables = potential.tables.reshape(-1)
            above = _core.split_tables(potential.edges, tables, _ROUNDING, unary, weights)
            if above < 0.0:
                return None
            pairs.append((potential.edges, weights))
            largest = max(largest, above)
    return PottsField(unary, pairs, largest)


def above_least(field: Field, labels: IntArray) -> float:
    """What labels pay above the least unary of every variable and the least entry of every table.

    Of a field that ``as_potts`` takes; Potts potentials are 0 at least.
    """
    paid = _core.unary_above_least(labels, field.unary)
    for potential in field.potentials:
        if isinstance(potential, Pairwise):
            tables = potential.tables.reshape(-1)
            paid += _core.tables_above_least(labels, potential.edges, tables)
        else:
            paid += float(potential.energies(labels[None], 2)[0])
    return paid


class PottsCut(NamedTuple):
    """A labelling, and what it is worth."""

    labels: IntArray
    """(N,): of all best ones, the one with the fewest ones"""
    value: float
    """what it costs, summed in the order of the arrays"""
    paid: float
    """the same less the least unary of every variable"""
    gap: float
    """by how much another labelling may be better, by what rounding took from the flow"""


def cut_potts(unary: FloatArray, pairs: list[Pairs], n_threads: int) -> PottsCut | None:
    r"""The least of :math:`\sum_i u_{i x_i} + \sum_e w_e [x_i \ne x_j]`, unaries (N, 2).

    ``+inf`` in the unaries forbids a label. None where numbers of very different size leave too few
    digits for a flow to be the proof.
    """
    edges, weights = _joined(pairs)
    labels = np.empty(len(unary), np.int64)
    answer = np.empty(5)
    grid = grid_of(edges)
    if grid is None or not _cut_grid(grid, unary, weights, labels, answer, n_threads):
        _core.cut_edges(unary, edges, weights, labels, answer, n_threads)
    alone, between, paid, sent, lost = answer.tolist()
    rounding = (len(unary) + len(edges)) * EPS * (paid + sent)
    if not isfinite(paid + sent) or not abs(paid - sent) <= lost + rounding:
        return None
    return PottsCut(labels, alone + between, paid, lost)


def _cut_grid(
    grid: Grid,
    unary: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    answer: FloatArray,
    n_threads: int,
) -> bool:
    """Whether the grid is one of all variables, and its edges of so few kinds as to be computed."""
    wide = [axis for axis, side in enumerate(grid.sides) if side > 1]
    if prod(grid.sides) != len(unary) or not wide:
        return False
    sides = np.array(grid.sides, np.int64)
    steps = np.array(grid.steps, np.int64).reshape(-1, len(sides))
    steps = steps[(np.abs(steps) < sides).all(axis=1)]  # the others lead out of the grid
    return _core.cut_grid(
        unary,
        sides[wide],
        np.ascontiguousarray(steps[:, wide]),
        weights,
        labels,
        answer,
        n_threads,
    )


def _joined(pairs: list[Pairs]) -> Pairs:
    """One list of edges for all: that of the first, if the others have the same array."""
    first = pairs[0][0]
    if len(pairs) == 1:
        return pairs[0]
    weights = [weights for _, weights in pairs]
    if all(edges is first for edges, _ in pairs):
        return first, np.sum(weights, axis=0)
    return np.concatenate([edges for edges, _ in pairs]), np.concatenate(weights)
