r"""Prices of potentials beyond what a labelling in hand costs, and the digits that they take.

A search adds and subtracts the terms of a field, as a cut does with a table that it splits into
unaries and an edge. What it proves is off by the rounding of the largest of them, even where no
good labelling pays it: a table with an entry of :math:`10^{20}` beside entries of 1 would hide
these. So such prices are cut down to what the labelling makes unreachable, and the search is made
again; where that is not enough the bound is lowered by what rounding may have done to it.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from setwise._foundation._certificate import EPS
from setwise.fields._field import Field
from setwise.inference._conditioning._energy_scale import NEGLIGIBLE, trivial_of_tables
from setwise.inference._conditioning._largest_energy import largest_of_terms

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
        """Return the rounding errors of a search in ``field``."""
        return cls(rounding_of_prices(field, by_cut=by_cut), digits_lost(field))

    def is_seen(self, room: float) -> bool:
        """Whether it is more than a negligible share of what a labelling pays."""
        return self.rounding > NEGLIGIBLE * room

    def taken_off(self, field: Field, value: float, bound: float) -> float:
        """Return the bound less the rounding error of prices, unless that error is negligible."""
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
    r"""Return a field with the same least energy and best labellings, without huge prices.

    ``field`` is grounded, ``value`` the energy of a labelling. A potential that alone costs more
    than :math:`c = 1024 (\text{value} - b)`, b the least that all terms cost, is in no good
    labelling, and still is in none when it costs c or more. Of a table, entries off the diagonal
    are cut down to 2 c, so that what was submodular for two labels stays so.
    """
    return _limited(field, _REACH * (value - trivial_of_tables(field)))


def within_sight(field: Field, temperature: float, value: float) -> Field:
    r"""Return a field with the same log Z and marginals to the last digit, without huge prices.

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
    """Return the largest rounding error of a bound that is computed from all prices."""
    tables = sum(potential._as_given() for potential in field.potentials)
    return _ROUNDINGS * EPS * (field.n_variables + 1) * (tables + largest_of_terms(field))


def rounding_of_prices(field: Field, *, by_cut: bool = False) -> float:
    """Return the rounding error of the largest price of a potential."""
    given = {id(p): p._largest_price(by_cut) for p in field.potentials}
    largest = max((price for price in given.values() if price is not None), default=0.0)
    for potential, term in field._terms():
        if given[id(potential)] is None:
            largest = max(largest, term._price(by_cut))
    return rounding_of(largest)


def rounding_of(price: float) -> float:
    """Return the rounding error of sums that contain a price."""
    return _ROUNDINGS * EPS * abs(price)


def rounding_of_unaries(field: Field) -> float:
    """Return the rounding error of the largest finite unary."""
    finite = np.isfinite(field.unary)
    return _ROUNDINGS * EPS * float(field.unary.max(initial=0.0, where=finite))


def _limited(field: Field, limit: float) -> Field:
    if not limit > 0.0:
        return field
    potentials = tuple(p._limited(limit, field.n_labels) for p in field.potentials)
    unary = np.where(field.unary < np.inf, np.minimum(field.unary, limit), np.inf)
    return Field._of(unary, potentials)
