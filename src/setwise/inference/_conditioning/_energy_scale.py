r"""What a gap between energies of a field is measured against, and which bounds are claimed.

The least energy is known to lie between a bound and the value of a labelling. Neither the share
that is left of what there was to gain, nor the claim that nothing is left but rounding, may depend
on a constant in the energies or on their unit.

Every bound that ``solve_map`` tells passes ``EnergyScale.claim``: what a search computes in floats
is lowered by what rounding may have added to it, and raised to the next multiple of the unit of the
energies where these are known to have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, fsum, isfinite, nextafter
from math import inf as infinite
from typing import NamedTuple

import numpy as np

from setwise._foundation._certificate import EPS, relative_gap
from setwise.fields._field import Field
from setwise.inference._conditioning._number_grid import NumberGrid

NEGLIGIBLE = 1e-9  # of what there was to gain: no gap above it is called rounding
# How many roundings of its size a number goes through beside those of sums over the field; more
# when a table is split into unaries and an edge, which may differ from it by 45 of them.
FEW_ROUNDINGS, _ROUNDINGS = 8.0, 64.0


# A unit decides what is exact where sums of energies are shorter by so many bits than floats: those
# that a search adds up and takes apart then are off by less than a unit.
_SPARE_BITS = 12


class Sums(NamedTuple):
    """The summands of a bound, if they are not the numbers of the field."""

    paid: float
    """the sum of the sizes"""
    lost: float = 0.0
    """what the search knows to have lost besides"""
    depth: int | None = None
    """how many sums a number goes through; None for as many as energies have summands"""


@dataclass(frozen=True, eq=False)
class EnergyScale:
    """The trivial bound of a field, and how many numbers its energies are sums of."""

    field: Field
    given: Field
    """the field that ``field`` stands for: with constants and unreachable prices"""
    trivial: float
    """of the terms that a search adds up"""
    floor: float
    """the trivial bound of the tables as they are given"""
    n_summands: int
    split: float | None = None
    """the sum of the sizes of tables that a search splits; None for all as they are given"""

    @classmethod
    def of(cls, field: Field, given: Field | None = None) -> EnergyScale:
        """Compute the scale in O(N L + E L^2), once per search."""
        summands = sum(term._n_summands(field.n_variables) for _, term in field._terms())
        trivial, floor = trivial_bound(field), trivial_of_tables(field)
        given = field if given is None else given
        return cls(field, given, trivial, floor, field.n_variables + summands)

    def relative_gap(self, value: float, bound: float) -> float:
        """(value - bound) / (value - trivial bound): the share of what there was to gain."""
        return relative_gap(value - bound, value - self.floor)

    def rounding(self, value: float, paid: float) -> float:
        """Return the rounding error of two sums: the energy of a labelling, and a bound.

        The error of a sum of n numbers is at most n eps times the sum of their sizes. Numbers that
        are not added, such as the price of a label that a seed forbids, do not count.
        """
        return self.n_summands * EPS * (max(value - self.trivial, 0.0) + paid)

    def is_exact(self, value: float, bound: float, sums: Sums | None = None) -> bool:
        """Whether the gap is rounding only; ``sums`` is what the bound adds up, if not itself.

        However large the numbers in a bound that cancel each other, a gap above 1e-9 of what there
        was to gain is none of rounding. Between energies that are multiples of a unit no gap of
        half of it is; nor is one of less than a unit left, where their sums have the digits.
        """
        gap = value - bound
        if gap <= 0.0:
            return True
        if self.grid.has_room(_SPARE_BITS):
            return self.claim(value, bound, self.lost(value, bound, sums)) >= value
        paid = max(bound - self.trivial, 0.0) if sums is None else sums.paid
        if self.relative_gap(value, bound) > NEGLIGIBLE or gap > self.rounding(value, paid):
            return False
        return gap < 0.5 * self.grid.step or self.grid.step == 0.0

    def claim(self, value: float, bound: float, lost: float) -> float:
        """Return the bound to report beside a value: no energy is lower, in exact arithmetic.

        ``bound`` is the bound that a search computed, and ``lost`` the most that rounding may have
        added to it. If energies are multiples of a unit, it is raised to the next multiple.
        """
        claimed = bound - lost
        if claimed >= value:
            return value
        step = self.grid.step
        if step > 0.0 and isfinite(claimed):
            claimed = ceil(claimed / step) * step
        if claimed < self.floor:
            least = self._sizes[0] if self.split is None else 0.0
            claimed = max(claimed, sum_below(self.floor, -EPS * self.n_summands * least))
        return min(claimed, value)

    def lost(self, value: float, bound: float, sums: Sums | None = None) -> float:
        """Return an upper bound on the rounding error of a computed bound.

        Without ``sums`` it is a sum of the numbers of the field: that loses nothing where they are
        multiples of a unit, and have the digits.
        """
        if sums is None:
            if self._sums_are_exact:
                return 0.0
            sums = Sums(max(bound - self.trivial, 0.0))
        least, split = self._sizes if self.split is None else (0.0, self.split)
        room = value - self.trivial if value < infinite else 0.0
        size = max(room, 0.0) + least + sums.paid
        depth = self.n_summands if sums.depth is None else sums.depth
        return sums.lost + EPS * ((depth + FEW_ROUNDINGS) * size + _ROUNDINGS * split)

    @cached_property
    def grid(self) -> NumberGrid:
        """The unit of the energies."""
        return NumberGrid.of(self.given)

    @cached_property
    def _sums_are_exact(self) -> bool:
        """Whether sums and differences of the numbers of the field's terms are exact."""
        if not self.grid.has_room(4):  # for quarters, and twice the capacity of an edge
            return False
        return not any(p._has_fractions(self.field.n_labels) for p in self.field.potentials)

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        """Return the sums of the sizes of the least numbers of the field, and of its tables."""
        field = self.field
        least = field._favourites().least
        size = float(np.abs(least).sum()) if least.any() else 0.0
        for _, term in field._terms():
            size += abs(term._least(*field.unary.shape))
        return size, sum(p._as_given() for p in field.potentials)


def sum_below(*parts: float) -> float:
    """Return the sum, rounded down: rounding may lower a lower bound, but never raise it."""
    total = sum(parts)
    if not isfinite(total):
        return total
    total = fsum(parts)
    return nextafter(total, -infinite) if fsum((*parts, -total)) < 0.0 else total


def trivial_bound(field: Field) -> float:
    """Return the sum of the least unaries and of the least value of every term."""
    return field._remember("trivial bound", lambda: _least_of_terms(field, {}))


def _least_of_terms(field: Field, given: dict[int, float | None]) -> float:
    """Return the least unaries plus the least terms of potentials that are not in ``given``."""
    bound = float(field._favourites().least.sum())
    for potential, term in field._terms():
        if given.get(id(potential)) is None:
            bound += term._least(*field.unary.shape)
    return bound


def trivial_of_tables(field: Field) -> float:
    """Return the sum of the least unaries and the least costs of potentials, from given tables.

    A table that is split into unaries and a Potts term may lose its least entry by rounding.
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
