"""The numbers that define a set function, and bounds on the rounding errors of its values.

A proof in floating point is valid if every number in it is moved by a bound on its rounding error,
in the direction that weakens the proof. Private methods of ``SetFunction`` give these bounds. Their
default versions are valid for any function, and families override them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, INTEGERS

if TYPE_CHECKING:
    from setwise.functions._base import SetFunction


@dataclass(frozen=True)
class Numbers:
    """The properties of the numbers of a set function that determine rounding errors."""

    unit: float
    """A power of two that divides every number of F; ``inf`` if all are 0, 0 if none is known."""
    span: float
    """An upper bound on all partial sums of a difference of two values."""
    least: float
    """The smallest number that is not 0: a weight, a step of a table; ``inf`` if there is none."""
    base: float = 0.0
    """The sum of the absolute values of the terms of F on the empty set."""
    base_unit: float = inf
    """A power of two that divides each of these values."""
    n_terms: int = 1
    """The number of terms of F, each of which is a sum."""

    @property
    def exact(self) -> bool:
        """Whether the differences of values are computed without any rounding."""
        return self.unit > 0 and self.span <= INTEGERS * self.unit

    def value_error(self, n: int) -> float:
        """Return a bound on the rounding error of a value of F.

        A value is a sum over n elements and all terms, and no partial sum exceeds ``span + base``.
        """
        whole = self.span + self.base
        alone = self.span == 0.0 and self.n_terms == 1
        if alone or whole <= INTEGERS * min(self.unit, self.base_unit):
            return 0.0
        return FEW_ROUNDINGS * (n + self.n_terms) * EPS * whole


def numbers_of(function: SetFunction) -> Numbers:
    """Return the numbers of a set function, cached in it."""
    return function._remember("numbers", function._numbers)


def gains_with_errors(function: SetFunction, order: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the gains of one greedy pass, with bounds on their rounding errors."""
    if numbers_of(function).exact:
        return function._gains(order), np.zeros(len(order))
    return function._gains_with_errors(order)


def lowest_unit(numbers: FloatArray) -> float:
    """Return the largest power of two that divides all the numbers; ``inf`` if all are 0."""
    some = numbers[numbers != 0]
    if not len(some):
        return inf
    mantissa, exponent = np.frexp(np.abs(some))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    low = whole & -whole
    with np.errstate(under="ignore"):
        return float(np.ldexp(low.astype(np.float64), exponent - 53).min())


def least_of(numbers: FloatArray) -> float:
    """Return the smallest absolute value that is not 0; ``inf`` if all are 0."""
    return float(np.abs(numbers[numbers != 0]).min(initial=inf))


def numbers_of_weights(weights: FloatArray, times: int) -> Numbers:
    """Return the numbers of a sum of weights, each of which occurs at most ``times`` times."""
    span = times * float(np.abs(weights).sum())
    return Numbers(lowest_unit(weights), span, least_of(weights), n_terms=times)


def numbers_of_table(values: FloatArray, least: float) -> Numbers:
    """Return the numbers of a function with a table of values, that of the empty set first."""
    rises = values - values[0]
    # If the differences are exact, a large constant in the values does not affect them.
    unit = lowest_unit(rises if rises_are_exact(values, rises) else values)
    span = 2.0 * float(np.abs(rises).max())
    return Numbers(unit, span, least, abs(float(values[0])), lowest_unit(values[:1]))


def rises_are_exact(values: FloatArray, rises: FloatArray) -> bool:
    """Return whether the differences from the first value are computed without rounding."""
    first = values[0]
    return bool(np.all(rises + first == values) and np.all(values - rises == first))


def without_constant(values: FloatArray) -> FloatArray | None:
    """Return the differences from the first value; None if it is 0 or they are not exact."""
    rises = values - values[0]
    return rises if values[0] != 0 and rises_are_exact(values, rises) else None


def numbers_from_values(function: SetFunction) -> Numbers:
    """Return the numbers of a submodular or supermodular function, bounded from 2 n + 2 values.

    Each gain of an element i then lies between F({i}) - F({}) and F(V) - F(V - i).
    """
    n = function.n
    ends = [np.zeros((1, n)), np.ones((1, n)), np.eye(n)]
    if function.is_increasing is not True:
        ends.append(1 - np.eye(n))
    values = function._values(np.concatenate(ends) > 0)
    empty, whole, firsts = float(values[0]), float(values[1]), values[2 : n + 2] - values[0]
    if function.is_increasing is True:
        gains, span = firsts, abs(whole - empty)
    else:
        lasts = whole - values[n + 2 :]
        gains = np.concatenate([firsts, lasts])
        span = float(np.maximum(np.abs(firsts), np.abs(lasts)).sum())
    noise = FEW_ROUNDINGS * EPS * float(np.abs(values).max())
    return Numbers(0.0, span, least_of(gains[np.abs(gains) > noise]), abs(empty), 0.0)


def errors_of_sums(elements: IntArray, weights: FloatArray, n: int) -> FloatArray:
    """Return bounds on the rounding errors of the sum of the weights at each element."""
    count = np.bincount(elements, minlength=n)
    sums = np.bincount(elements, weights, minlength=n).astype(np.float64)
    # a sum of a single weight has no rounding error
    return np.where(count > 1, (count + 2) * EPS * sums, 0.0)


def bend_of(function: SetFunction, exchange: float, size: float, lost: float) -> float:
    """Return ``SetFunction._bend`` from the largest violation, a sum of numbers up to ``size``."""
    noise = 0.0 if numbers_of(function).exact else 4 * EPS * size
    return max(0.0, exchange + (lost + noise))
