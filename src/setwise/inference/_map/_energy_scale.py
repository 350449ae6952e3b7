r"""What a gap between energies of a field is measured against.

The least energy is known to lie between a bound and the value of a labelling. Neither the share
that is left of what there was to gain, nor the claim that nothing is left but rounding, may depend
on a constant in the energies or on their unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from setwise._foundation._certificate import EPS, relative_gap
from setwise.fields._field import Field
from setwise.fields._terms._base import is_whole

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
        summands = sum(term._n_summands(field.n_variables) for _, term in field._terms())
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
    return field._remember("trivial bound", lambda: _least_of_terms(field, {}))


def _least_of_terms(field: Field, given: dict[int, float | None]) -> float:
    """The least of unaries and of the terms of potentials whose own least is not given."""
    bound = float(field._favourites().least.sum())
    for potential, term in field._terms():
        if given.get(id(potential)) is None:
            bound += term._least(*field.unary.shape)
    return bound


def trivial_of_tables(field: Field) -> float:
    """The least that unaries and potentials cost, of tables as they are given.

    As unaries plus Potts a table may round its least entry away.
    """
    return field._remember("trivial bound of tables", lambda: _trivial_of_tables(field))


def _trivial_of_tables(field: Field) -> float:
    given = {id(p): p._least() for p in field.potentials}
    if all(least is None for least in given.values()):
        return trivial_bound(field)
    bound = _least_of_terms(field, given)
    for potential in field.potentials:
        bound += given[id(potential)] or 0.0
    return bound


def _is_integral(field: Field) -> bool:
    return is_whole(field.unary) and all(term._is_whole for _, term in field._terms())
