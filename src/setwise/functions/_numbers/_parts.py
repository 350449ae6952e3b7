"""The numbers that a set function is made of: their unit, how far they reach, the smallest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS
from setwise.functions._base import SetFunction
from setwise.functions._families._cardinality import Cardinality
from setwise.functions._families._compose import Complement, Contraction, Restriction, Sum
from setwise.functions._families._coverage import Coverage
from setwise.functions._families._cut import Cut
from setwise.functions._families._modular import Modular
from setwise.functions._families._table import Table

# A function that is a Python callable is taken to be right to so many units in the last place of
# each of its values.
ULPS = 8.0
# No number that F is made of, however small beside others, may hide in what rounding is granted.
SHARE = 1e-6
_INTEGERS = 2.0**53


@dataclass(frozen=True)
class Parts:
    """The numbers that a set function is made of, as far as rounding is concerned."""

    unit: float
    """A power of two that divides every number of F; ``inf`` if all are 0, 0 if none is known."""
    reach: float
    """No sum that a difference of two values adds up is larger."""
    least: float
    """The smallest number that is not 0: a weight, a step of a table; ``inf`` if there is none."""
    base: float
    """The sum of what the terms of F are on the empty set, each taken positive."""
    base_unit: float
    """A power of two that divides each of these."""
    n_terms: int
    """How many sums F adds up."""

    @property
    def exact(self) -> bool:
        """Whether the differences of values are computed without any rounding."""
        return self.unit > 0 and self.reach <= _INTEGERS * self.unit

    def value_error(self, n: int) -> float:
        """What a value of F can be off by: of n elements, each in several sums."""
        whole = self.reach + self.base
        alone = self.reach == 0.0 and self.n_terms == 1
        if alone or whole <= _INTEGERS * min(self.unit, self.base_unit):
            return 0.0
        return ULPS * (n + self.n_terms) * EPS * whole


def lowest_unit(numbers: FloatArray) -> float:
    """The largest power of two of which all the numbers are multiples; ``inf`` if all are 0."""
    some = numbers[numbers != 0]
    if not len(some):
        return inf
    mantissa, exponent = np.frexp(np.abs(some))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    low = whole & -whole
    with np.errstate(under="ignore"):
        return float(np.ldexp(low.astype(np.float64), exponent - 53).min())


def _least(numbers: FloatArray) -> float:
    return float(np.abs(numbers[numbers != 0]).min(initial=inf))


def parts(function: SetFunction) -> Parts:
    """The parts of a set function, remembered: O(n) for the families that are made of numbers."""
    return function._remember("rounding", lambda: _parts(function))


@singledispatch
def _parts(function: SetFunction) -> Parts:
    """Of a submodular or supermodular F every gain lies between F({i}) - F({}), F(V) - F(V - i)."""
    n = function.n
    ends = [np.zeros((1, n)), np.ones((1, n)), np.eye(n)]
    if function.is_increasing is not True:
        ends.append(1 - np.eye(n))
    values = function._values(np.concatenate(ends) > 0)
    empty, whole, firsts = float(values[0]), float(values[1]), values[2 : n + 2] - values[0]
    if function.is_increasing is True:
        gains, reach = firsts, abs(whole - empty)
    else:
        lasts = whole - values[n + 2 :]
        gains = np.concatenate([firsts, lasts])
        reach = float(np.maximum(np.abs(firsts), np.abs(lasts)).sum())
    noise = ULPS * EPS * float(np.abs(values).max())
    return Parts(0.0, reach, _least(gains[np.abs(gains) > noise]), abs(empty), 0.0, 1)


@_parts.register
def _(function: Modular) -> Parts:
    weights = function.weights
    return Parts(lowest_unit(weights), float(np.abs(weights).sum()), _least(weights), 0.0, inf, 1)


@_parts.register(Cut)
@_parts.register(Coverage)
def _(function: Cut | Coverage) -> Parts:
    weights = function.weights
    return Parts(lowest_unit(weights), 2.0 * float(weights.sum()), _least(weights), 0.0, inf, 2)


@_parts.register
def _(function: Cardinality) -> Parts:
    return _of_values(function.values, _least(np.diff(function.values)))


@_parts.register
def _(function: Table) -> Parts:
    by_element = function.values.reshape((2,) * function.n)
    steps = (_least(np.diff(by_element, axis=i)) for i in range(function.n))  # 2^(n - 1) at a time
    return _of_values(function.values, min(_least(function.values), *steps, inf))


def _of_values(values: FloatArray, least: float) -> Parts:
    rises = values - values[0]
    reach = 2.0 * float(np.abs(rises).max())
    # A large constant in the values is no part of their differences, where these are not rounded.
    unit = lowest_unit(rises if _is_plain(values, rises) else values)
    base, base_unit = abs(float(values[0])), lowest_unit(values[:1])
    return Parts(unit, reach, least, base, base_unit, 1)


@_parts.register
def _(function: Sum) -> Parts:
    inner = [parts(term) for term in function.terms]
    scales = np.abs(function.coefficients)
    used = [(part, float(scale)) for part, scale in zip(inner, scales, strict=True) if scale]
    steps = [lowest_unit(np.array([scale])) for _, scale in used]
    paired = list(zip((part for part, _ in used), steps, strict=True))
    return Parts(
        min((part.unit * step for part, step in paired), default=inf),
        sum(part.reach * scale for part, scale in used),
        min((part.least * scale for part, scale in used), default=inf),
        sum(part.base * scale for part, scale in used),
        min((part.base_unit * step for part, step in paired), default=inf),
        len(used) + sum(part.n_terms for part, _ in used),
    )


@_parts.register(Restriction)
@_parts.register(Contraction)
@_parts.register(Complement)
def _(function: Restriction | Contraction | Complement) -> Parts:
    # The empty set of these may be any set of F: its value is no larger than that.
    part = parts(function.function)
    base, base_unit = part.base, part.base_unit
    if not isinstance(function, Restriction):
        base, base_unit = base + part.reach, min(base_unit, part.unit)
    return Parts(part.unit, 2.0 * part.reach, part.least, base, base_unit, part.n_terms + 1)


def without_constant(function: SetFunction) -> SetFunction:
    """F less what its tables add to all sets alike, where taking that away rounds nothing."""
    if isinstance(function, Sum):
        terms = [without_constant(term) for term in function.terms]
        # What is 0 on all sets adds nothing to a sum, and so nothing to its rounding.
        kept = [k for k, term in enumerate(terms) if not _is_zero(term)] or [0]
        return Sum([terms[k] for k in kept], function.coefficients[kept])
    if isinstance(function, Cardinality | Table) and function.values[0] != 0:
        rises = function.values - function.values[0]
        if _is_plain(function.values, rises):
            return type(function)(rises)
    return function


def _is_zero(function: SetFunction) -> bool:
    return isinstance(function, Cardinality | Table) and not function.values.any()


def _is_plain(values: FloatArray, rises: FloatArray) -> bool:
    """Whether the differences from the first value are not rounded."""
    first = values[0]
    return bool(np.all(rises + first == values) and np.all(values - rises == first))
