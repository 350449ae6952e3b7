"""The magnitude and the unit of the numbers of a field, and rounding errors of their sums.

A sum of n numbers is off by at most n EPS times the sum of their sizes. A number has
``FEW_ROUNDINGS`` further errors if a kernel adds and subtracts it, and ``MANY_ROUNDINGS`` if a
table is split into unaries and an edge. These two bounds are not tuned.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, inf, isfinite, nextafter
from typing import NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, MANY_ROUNDINGS
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._terms import Term

# A gap above this share of the possible gain never counts as rounding. Not tuned.
NEGLIGIBLE = 1e-9

# Energies must be below this share of the largest float, so that sums of a few of them do not
# overflow. Not tuned.
_LARGEST = 1e-8


def trivial_bound(field: Field) -> float:
    """Return the sum of the least unaries and the least value of every term that is searched."""
    return field._remember("trivial bound", lambda: _sum_of_least(field, field._terms()))


def given_bound(field: Field) -> float:
    """Return the sum of the least unaries and the least value of every term as it is given.

    A table that is split into unaries and a Potts term may lose its least entry by rounding.
    """
    if field._given() is field._terms():
        return trivial_bound(field)
    return field._remember("given bound", lambda: _sum_of_least(field, field._given()))


def _sum_of_least(field: Field, terms: Iterable[tuple[Potential, Term]]) -> float:
    bound = float(field._favourites().least.sum())
    for _, term in terms:
        bound += term._least(*field.unary.shape)
    return bound


def largest_energy(field: Field) -> float:
    """Return an upper bound on abs(E(x)) for every x without a forbidden label.

    It is the sum of the largest unary of each row and the largest value of each term; ``inf`` where
    the sum overflows.
    """

    def compute() -> float:
        finite = np.where(np.isfinite(field.unary), np.abs(field.unary), 0.0)
        return float(finite.max(axis=1).sum()) + largest_of_terms(field)

    return field._remember("largest energy", compute)


def largest_of_terms(field: Field) -> float:
    """Return an upper bound on the size of the sum of all terms but the unaries."""
    return sum(term._most(field.n_labels) for _, term in field._terms())


def check_magnitude(field: Field, temperature: float, dtype: str, name: str = "field") -> None:
    """Raise an error if energies, or their quotients by a temperature, overflow the dtype.

    The ``ValueError`` names the field if its energies are too large, else the temperature.
    """
    limit = float(np.finfo(dtype).max) * _LARGEST
    with np.errstate(over="ignore"):
        largest = largest_energy(field)
    if not largest <= limit:
        raise ValueError(
            f"{name} must have energies that sum to at most {limit:.1e} in {dtype}, "
            f"got {largest:.1e}"
        )
    least = max(largest, 1.0) / limit
    if temperature < least:
        raise ValueError(
            f"temperature must be at least {least:.1e} in {dtype} "
            f"for energies up to {largest:.1e}, got {temperature}"
        )
    most = limit / (1.0 + field.unary.size)
    if temperature > most:
        raise ValueError(f"temperature must be at most {most:.1e} in {dtype}, got {temperature}")


def rounding_of(cost: float) -> float:
    """Return the rounding error of a sum of a few numbers, the largest of which has this size."""
    return MANY_ROUNDINGS * EPS * abs(cost)


def rounding_of_costs(field: Field, *, by_cut: bool = False) -> float:
    """Return the rounding error that the largest cost of a term causes in a search, or a cut."""
    return rounding_of(max((t._magnitude(by_cut) for _, t in field._given()), default=0.0))


def rounding_of_bound(field: Field) -> float:
    """Return the rounding error of a bound that is computed from all costs of terms."""
    given = sum(term._split_size() for _, term in field._given())
    return (field.n_variables + 1) * rounding_of(given + largest_of_terms(field))


def rounding_of_logs(field: Field, temperature: float) -> float:
    """Return an upper bound on the rounding error of sums of logarithms over a field, in nats.

    There is one logarithm of a sum over the labels per variable. The sum over the variables is
    compensated.
    """
    roundings = FEW_ROUNDINGS + field.n_labels
    return roundings * EPS * (field.n_variables + largest_energy(field) / temperature)


class Unit(NamedTuple):
    """The unit of a field's energies, a power of two, and the largest difference of energies."""

    step: float
    """every energy is a multiple of it; 0 if sums of energies are not exact"""
    total: float

    @classmethod
    def of(cls, field: Field) -> Unit:
        """Find the unit of the given numbers, in one pass that stops at the first long fraction."""
        step, total = _core.number_grid(np.ascontiguousarray(field.unary), True)
        for _, term in field._given():
            if step == 0.0:
                return _NONE
            finest, apart = _unit_of(term, field.n_labels)
            step, total = min(step, finest), total + apart
        return cls(step, total) if step < inf and total * EPS <= 2.0 * step else _NONE

    def is_exact(self, bits: int) -> bool:
        """Return whether sums of such energies are exact in a unit finer by ``bits`` bits."""
        return self.step > 0.0 and self.total * 2.0**bits * EPS <= 2.0 * self.step


_NONE = Unit(0.0, inf)


def _unit_of(term: Term, n_labels: int) -> Unit:
    """Return the unit of the numbers of a term."""

    def find() -> Unit:
        numbers = term._numbers(n_labels)
        if numbers is None:
            return _NONE
        rows, uses = numbers
        step, total = _core.number_grid(np.ascontiguousarray(rows), False)
        return Unit(step, uses * total)

    return term._remember(("unit", n_labels), find)


def sum_below(*parts: float) -> float:
    """Return the sum, rounded down: rounding may lower a lower bound, but never raise it."""
    total = sum(parts)
    if not isfinite(total):
        return total
    total = fsum(parts)
    return nextafter(total, -inf) if fsum((*parts, -total)) < 0.0 else total


def difference_below(value: float, part: float) -> float:
    """Return value - part, rounded down."""
    return sum_below(value, -part)


def difference_above(value: float, part: float) -> float:
    """Return value - part, rounded up, for upper bounds."""
    return -sum_below(-value, part)
