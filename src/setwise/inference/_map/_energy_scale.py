r"""What a gap between energies of a field is measured against.

The least energy is known to lie between a bound and the value of a labelling. Neither the share
that is left of what there was to gain, nor the claim that nothing is left but rounding, may depend
on a constant in the energies or on their unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, relative_gap
from setwise.fields._field import Field
from setwise.fields._potentials._pairwise import Pairwise
from setwise.fields._terms import (
    CardinalityTerm,
    ConstantTerm,
    CountTerm,
    LabelTerm,
    PottsTerm,
    TableTerm,
    Term,
    TransitionTerm,
    UnaryTerm,
)

NEGLIGIBLE = 1e-9  # of what there was to gain: no gap above it is called rounding


@dataclass(frozen=True, eq=False)
class EnergyScale:
    """The trivial bound of a field, and how many numbers its energies are sums of."""

    field: Field
    trivial: float
    """of the terms that a search adds up"""
    floor: float
    """the higher one of that and the trivial bound of the tables as they are given"""
    n_summands: int

    @classmethod
    def of(cls, field: Field) -> EnergyScale:
        """In O(N L + E L^2), once a search."""
        summands = sum(_summands(term, field.n_variables) for _, term in field._terms())
        trivial = trivial_bound(field)
        floor = max(trivial, trivial_of_tables(field))
        return cls(field, trivial, floor, field.n_variables + summands)

    def relative_gap(self, value: float, bound: float) -> float:
        """(value - bound) / (value - trivial bound): the share of what there was to gain."""
        return relative_gap(value - bound, value - self.floor)

    def rounding(self, value: float, paid: float) -> float:
        """The rounding error of two sums: of what a labelling pays, and of what a bound adds up.

        A sum of n numbers is off by at most n eps times the sum of their sizes. What is not added
        up, such as the price of the label that a seed forbids, is no part of it.
        """
        return self.n_summands * EPS * (max(value - self.trivial, 0.0) + paid)

    def is_exact(self, value: float, bound: float, paid: float | None = None) -> bool:
        """Whether the gap is rounding only; ``paid`` is what the bound adds up, if not itself.

        However large the numbers in a bound that cancel each other, a gap above 1e-9 of what there
        was to gain is none of rounding. Whole energies are rounded by less than 1.
        """
        gap = value - bound
        if gap <= 0.0:
            return True
        paid = max(bound - self.trivial, 0.0) if paid is None else paid
        if self.relative_gap(value, bound) > NEGLIGIBLE or gap > self.rounding(value, paid):
            return False
        return gap < 0.5 or not _is_integral(self.field)


def trivial_bound(field: Field) -> float:
    """The sum of the least unary energies and of the least value of every term."""
    bound = float(least_of_rows(field.unary).sum())
    n, labels = field.n_variables, field.n_labels
    for _, term in field._terms():
        match term:
            case ConstantTerm(value):
                bound += float(value)
            case UnaryTerm(unary):
                bound += float(unary.min(axis=1).sum())
            case TableTerm(_, tables):
                bound += float(tables.min(axis=(1, 2)).sum())
            case CountTerm(_, starts, table):
                # A sum of concave functions over a simplex is least at a corner: one label.
                bound += float((table[starts[1:] - 1] + (labels - 1) * table[starts[:-1]]).sum())
            case LabelTerm(cost, group) if n > 0 and group.all():
                bound += float(cost)
            case CardinalityTerm(_, table):
                bound += float(table.min())
            case _:
                pass  # not negative
    return bound


def trivial_of_tables(field: Field) -> float:
    """The least that unaries and potentials cost, of tables as they are given.

    As unaries plus Potts a table may round its least entry away.
    """
    others = tuple(p for p in field.potentials if not isinstance(p, Pairwise))
    if len(others) == len(field.potentials):
        return trivial_bound(field)
    bound = trivial_bound(Field._of(field.unary, others)) if others else 0.0
    bound = bound if others else float(least_of_rows(field.unary).sum())
    for potential in field.potentials:
        if isinstance(potential, Pairwise) and len(potential.edges):
            least = potential.tables.min(axis=(-2, -1))
            bound += float(least.sum()) * (len(potential.edges) if least.ndim == 0 else 1)
    return bound


def least_of_rows(unary: FloatArray) -> FloatArray:
    """(N,): the least entry of each row, by columns where they are few."""
    if unary.shape[1] > 8:
        return np.asarray(unary.min(axis=1))
    least: FloatArray = unary[:, 0].copy()
    for column in unary.T[1:]:
        np.minimum(least, column, out=least)
    return least


def _summands(term: Term, n: int) -> int:
    match term:
        case PottsTerm(edges) | TableTerm(edges) | TransitionTerm(edges):
            return len(edges)
        case CountTerm(_, _, table):
            return len(table)
        case _:
            return n


def _is_integral(field: Field) -> bool:
    return _whole(field.unary) and all(_has_whole_energies(term) for _, term in field._terms())


def _has_whole_energies(term: Term) -> bool:
    match term:
        case ConstantTerm(value) | LabelTerm(value):
            return float(value).is_integer()
        case UnaryTerm(numbers) | PottsTerm(_, numbers) | TableTerm(_, numbers):
            return _whole(numbers)
        case CardinalityTerm(_, numbers) | TransitionTerm(_, numbers, None):
            return _whole(numbers)
        case _:
            return False


def _whole(numbers: FloatArray) -> bool:
    return bool((np.rint(numbers) == numbers).all())
