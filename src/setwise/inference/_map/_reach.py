r"""Prices of potentials beyond what a labelling in hand costs, and the digits that they take.

A search adds and subtracts the terms of a field, as a cut does with a table that it splits into
unaries and an edge. What it proves is off by the rounding of the largest of them, even where no
good labelling pays it: a table with an entry of :math:`10^{20}` beside entries of 1 would hide
these. So such prices are cut down to what the labelling makes unreachable, and the search is made
again; where that is not enough the bound is lowered by what rounding may have done to it.
"""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import NamedTuple

import numpy as np

from setwise._foundation._certificate import EPS, relative_gap
from setwise.fields._field import Field
from setwise.inference._map._energy_scale import NEGLIGIBLE, trivial_of_tables
from setwise.inference._map._largest_energy import largest_of_terms
from setwise.inference._map._result import MapResult

# Prices are cut down to so many times what the labelling in hand costs.
_REACH = 1024.0
# How many roundings of its size a price goes through, at least.
_ROUNDINGS = 16.0


class Doubt(NamedTuple):
    """How far prices put a bound in doubt while a search goes on."""

    rounding: float = 0.0
    """of the largest price"""
    lost: float = 0.0
    """what rounding may do to the bound, at most"""

    @classmethod
    def of(cls, field: Field, *, by_cut: bool) -> Doubt:
        """That of a search in a field."""
        return cls(rounding_of_prices(field, by_cut=by_cut), digits_lost(field))

    def is_seen(self, room: float) -> bool:
        """Whether it is more than a negligible share of what a labelling pays."""
        return self.rounding > NEGLIGIBLE * room

    def taken_off(self, field: Field, value: float, bound: float) -> float:
        """A bound on the energies of a field, less what it may have lost, where that is seen."""
        if self.rounding == 0.0:
            return bound
        least = trivial_of_tables(field)
        if not self.is_seen(value - least):
            return bound
        return min(max(bound - self.lost, least), value)


def out_of_reach(field: Field, energy: float, *, by_cut: bool) -> bool:
    """Whether the rounding of a price is more than a negligible share of what an energy pays."""
    doubt = Doubt(rounding_of_prices(field, by_cut=by_cut))
    return doubt.is_seen(energy - trivial_of_tables(field))


def within_reach(field: Field, value: float) -> Field:
    r"""A field with the same least energy and best labellings, no price far above ``value``.

    ``field`` is grounded, ``value`` the energy of a labelling. A potential that alone costs more
    than :math:`c = 1024 (\text{value} - b)`, b the least that all terms cost, is in no good
    labelling, and still is in none when it costs c or more. Of a table, entries off the diagonal
    are cut down to 2 c, so that what was submodular for two labels stays so.
    """
    return _limited(field, _REACH * (value - trivial_of_tables(field)))


def within_sight(field: Field, temperature: float, value: float) -> Field:
    r"""A field with the same log Z and marginals to the last digit, its prices cut down.

    With a labelling of energy ``value`` and b the least that all terms cost, prices of
    :math:`\text{value} - b + t (N \log L + 745)` leave all labellings that pay them a share of
    less than :math:`e^{-745}` of Z. Cut down, they raise Z, by no more.
    """
    nats = field.n_variables * log(field.n_labels) + 745.0
    limit = value - trivial_of_tables(field) + temperature * nats
    near = _limited(field, limit)
    kept = [
        before if before.is_submodular and not after.is_submodular else after
        for before, after in zip(field.potentials, near.potentials, strict=True)
    ]
    return Field._of(near.unary, tuple(kept))


def digits_lost(field: Field) -> float:
    """What rounding may do to a bound that is computed from all prices of a field, at most."""
    tables = sum(potential._as_given() for potential in field.potentials)
    return _ROUNDINGS * EPS * (field.n_variables + 1) * (tables + largest_of_terms(field))


def rounding_of_prices(field: Field, *, by_cut: bool = False) -> float:
    """The rounding of the largest price of a potential."""
    given = {id(p): p._largest_price(by_cut) for p in field.potentials}
    largest = max((price for price in given.values() if price is not None), default=0.0)
    for potential, term in field._terms():
        if given[id(potential)] is None:
            largest = max(largest, term._price(by_cut))
    return rounding_of(largest)


def rounding_of(price: float) -> float:
    """What is lost of the digits of sums that a price is in."""
    return _ROUNDINGS * EPS * abs(price)


def rounding_of_unaries(field: Field) -> float:
    """The rounding of the largest unary that forbids nothing."""
    finite = np.isfinite(field.unary)
    return _ROUNDINGS * EPS * float(field.unary.max(initial=0.0, where=finite))


def _limited(field: Field, limit: float) -> Field:
    if not limit > 0.0:
        return field
    potentials = tuple(p._limited(limit, field.n_labels) for p in field.potentials)
    unary = np.where(field.unary < np.inf, np.minimum(field.unary, limit), np.inf)
    return Field._of(unary, potentials)


def without_lost_digits(field: Field, result: MapResult) -> MapResult:
    """The result with a bound that is below what rounding may have done to it, and its claims."""
    trivial = trivial_of_tables(field)
    bound = min(max(result.bound - digits_lost(field), trivial), result.value)
    share = relative_gap(result.value - bound, result.value - trivial)
    return replace(result, bound=bound, relative_gap=share, exact=bound == result.value)


def remeasured(field: Field, result: MapResult) -> MapResult:
    """The result with its gap against the least entries of tables as they are given."""
    share = relative_gap(result.gap, result.value - trivial_of_tables(field))
    return replace(result, relative_gap=share, exact=result.exact and share <= NEGLIGIBLE)
