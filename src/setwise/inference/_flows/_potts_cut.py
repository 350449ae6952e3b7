"""Unaries of two labels and edges that pay alike: the best labelling by one cut, and its flow.

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
from setwise.fields._terms import PottsTerm


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


def cut_potts(unary: FloatArray, terms: list[PottsTerm]) -> PottsCut | None:
    r"""The least of :math:`\sum_i u_{i x_i} + \sum_e w_e [x_i \ne x_j]`, unaries (N, 2).

    ``+inf`` in the unaries forbids a label. None where numbers of very different size leave too few
    digits for a flow to be the proof.
    """
    edges, weights = _joined(terms)
    labels = np.empty(len(unary), np.int64)
    answer = np.empty(5)
    grid = grid_of(edges)
    if grid is None or not _cut_grid(grid, unary, weights, labels, answer):
        _core.cut_edges(unary, edges, weights, labels, answer)
    alone, between, paid, sent, lost = answer.tolist()
    rounding = (len(unary) + len(edges)) * EPS * (paid + sent)
    if not isfinite(paid + sent) or not abs(paid - sent) <= lost + rounding:
        return None
    return PottsCut(labels, alone + between, paid, lost)


def _cut_grid(
    grid: Grid, unary: FloatArray, weights: FloatArray, labels: IntArray, answer: FloatArray
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
    )


def _joined(terms: list[PottsTerm]) -> tuple[IntArray, FloatArray]:
    """One list of edges for all terms: that of the first, if the others have the same array."""
    first = terms[0]
    if len(terms) == 1:
        return first.edges, first.weights
    weights = [term.weights for term in terms]
    if all(term.edges is first.edges for term in terms):
        return first.edges, np.sum(weights, axis=0)
    return np.concatenate([term.edges for term in terms]), np.concatenate(weights)
