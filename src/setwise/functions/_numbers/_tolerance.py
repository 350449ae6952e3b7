"""By how much a family can break the law that it keeps within a tolerance."""

from __future__ import annotations

from functools import singledispatch
from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS
from setwise.functions._base import SetFunction
from setwise.functions._families._cardinality import Cardinality
from setwise.functions._families._compose import (
    Complement,
    Contraction,
    Restriction,
    Sum,
    collected,
)
from setwise.functions._families._concave import ConcaveOfModular
from setwise.functions._families._counts import Counts
from setwise.functions._families._ratio import Ratio
from setwise.functions._families._table import Table, worst_exchange, worst_fall
from setwise.functions._numbers._parts import ULPS, parts


def bend(function: SetFunction, sign: float = 1.0) -> float:
    """The most by which sign F can break F(A + i) + F(A + j) >= F(A + i + j) + F(A), where known.

    A family answers that it is submodular within a tolerance. What is within it can add up.
    """
    return function._remember(("bend", sign), lambda: _bend(function, sign))


@singledispatch
def _bend(function: SetFunction, sign: float) -> float:
    return 0.0  # submodular by its form, or at its word


@_bend.register
def _bend_of_table(function: Cardinality, sign: float, lost: float = 0.0) -> float:
    steps = np.abs(np.diff(function.values))
    return _above(np.diff(function.values, 2), steps, function, sign, lost)


@_bend.register
def _(function: Counts, sign: float) -> float:
    if isinstance(function.formula, Ratio) or not function.n:
        return 0.0
    size = ULPS * np.abs(function.grid()).max()
    return max((_above(part, size, function, sign) for part in function._curvatures()), default=0.0)


@_bend.register
def _(function: Table, sign: float) -> float:
    worst = worst_exchange(sign * function.values)[0]
    return _above(np.array([sign * worst]), np.abs(function.values).max(), function, sign)


@_bend.register
def _(function: Sum, sign: float) -> float:
    scaled = [(t, c) for t, c in zip(function.terms, function.coefficients, strict=True) if c]
    if not all(term.is_submodular if sign * c > 0 else term.is_supermodular for term, c in scaled):
        return _bend_together(function, sign)
    return float(sum(abs(c) * bend(term, sign * float(np.sign(c))) for term, c in scaled))


def _bend_together(function: Sum, sign: float) -> float:
    """Only the terms taken together are what the sum says of itself.

    What bends may be lost where tables are added up: a second difference is made of four values.
    """
    lost = 4 * parts(function).value_error(function.n)
    whole = collected(function)
    scaled = (
        list(zip(whole.terms, whole.coefficients, strict=True))
        if isinstance(whole, Sum)
        else [(whole, 1.0)]
    )
    total, counted = 0.0, False
    for term, c in scaled:
        if isinstance(term, Cardinality) and not counted:
            total, counted = total + _bend_of_table(term, sign, lost), True
        elif c:
            total += abs(c) * bend(term, sign * float(np.sign(c)))
    return float(total if counted else total + lost)


@_bend.register(Restriction)
@_bend.register(Contraction)
@_bend.register(Complement)
def _(function: Restriction | Contraction | Complement, sign: float) -> float:
    return bend(function.function, sign)


def _above(
    bends: FloatArray,
    sizes: FloatArray | float,
    function: SetFunction,
    sign: float,
    lost: float = 0.0,
) -> float:
    """The largest of the second differences, each with its rounding, if positive."""
    noise = lost + (0.0 if parts(function).exact else 4 * EPS * np.max(sizes, initial=0.0))
    worst = float((sign * bends).max(initial=-inf))
    return max(0.0, worst + float(noise)) if worst > -inf else 0.0


def fall(function: SetFunction) -> float:
    """The most by which a step of a function that calls itself increasing can fall, where known."""
    return function._remember("fall", lambda: _fall(function))


@singledispatch
def _fall(function: SetFunction) -> float:
    return 0.0


@_fall.register
def _(function: Cardinality) -> float:
    return max(0.0, -float(np.diff(function.values).min(initial=0.0)))


@_fall.register
def _(function: Counts) -> float:
    if isinstance(function.formula, Ratio):
        return 0.0
    steps = (np.diff(function.grid(), axis=axis).min(initial=0.0) for axis in (0, 1))
    return max(0.0, -float(min(steps)))


@_fall.register
def _(function: Table) -> float:
    return max(0.0, worst_fall(function.values)[0])


@_fall.register
def _(function: ConcaveOfModular) -> float:
    total = float(function.weights.sum())
    values = function._at(np.concatenate([[total], total - function.weights]))
    return max(0.0, float((values[1:] - values[0]).max(initial=0.0)))


@_fall.register
def _(function: Sum) -> float:
    scaled = [(t, c) for t, c in zip(function.terms, function.coefficients, strict=True) if c]
    lost = 0.0
    if not all(c > 0 and term.is_increasing is True for term, c in scaled):
        # Only the terms taken together are, and what falls may be lost where they are added up.
        lost = 2 * parts(function).value_error(function.n)
        whole = collected(function)
        if not isinstance(whole, Sum):
            return fall(whole) + lost
        scaled = list(zip(whole.terms, whole.coefficients, strict=True))
    return float(sum(abs(c) * fall(term) for term, c in scaled)) + lost


@_fall.register(Restriction)
@_fall.register(Contraction)
def _(function: Restriction | Contraction) -> float:
    return fall(function.function)


@_fall.register
def _(function: Complement) -> float:
    # F is increasing, and the same on both ends but for rounding: so each step rises by at most
    # that and what the others fall.
    inner = function.function
    return inner.n * fall(inner) + 2 * parts(inner).value_error(inner.n)
