"""What rounding can do to a greedy pass: each gain with what it can be off by.

A proof in floating point holds when every number in it is moved, by all that rounding can have done
to it, to the side that weakens the proof. The families say what that is.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise.functions._base import SetFunction, empty_value
from setwise.functions._families._cardinality import Cardinality
from setwise.functions._families._compose import Complement, Contraction, Restriction, Sum
from setwise.functions._families._concave import ConcaveOfModular
from setwise.functions._families._counts import Counts, CountsGrid
from setwise.functions._families._coverage import Coverage
from setwise.functions._families._cut import Cut
from setwise.functions._families._modular import Modular
from setwise.functions._families._ratio import Ratio
from setwise.functions._families._table import Table
from setwise.functions._numbers._parts import ULPS, parts


def gains_with_errors(function: SetFunction, order: IntArray) -> tuple[FloatArray, FloatArray]:
    """One greedy pass, and what each of its gains can be off by: the same cost, about."""
    if parts(function).exact:
        return function._gains(order), np.zeros(len(order))
    return _pass(function, order)


@singledispatch
def _pass(function: SetFunction, order: IntArray) -> tuple[FloatArray, FloatArray]:
    gains = function._gains(order)
    chain = np.abs(np.concatenate([[0.0], np.cumsum(gains)]) + empty_value(function))
    return gains, ULPS * EPS * (chain[1:] + chain[:-1])


@_pass.register
def _(function: Modular, order: IntArray) -> tuple[FloatArray, FloatArray]:
    return function._gains(order), np.zeros(len(order))


@_pass.register(Cardinality)
@_pass.register(Table)
def _(function: Cardinality | Table, order: IntArray) -> tuple[FloatArray, FloatArray]:
    gains = function._gains(order)
    return gains, EPS * np.abs(gains)


@_pass.register
def _(function: Counts, order: IntArray) -> tuple[FloatArray, FloatArray]:
    if isinstance(function.formula, CountsGrid):
        gains = function._gains(order)
        return gains, EPS * np.abs(gains)
    if isinstance(function.formula, Ratio) and function.formula.part != "submodular":
        gains = function._gains(order)
        return gains, 4 * ULPS * EPS * np.abs(gains)
    return _pass.dispatch(SetFunction)(function, order)


@_pass.register(Cut)
@_pass.register(Coverage)
def _(function: Cut | Coverage, order: IntArray) -> tuple[FloatArray, FloatArray]:
    incident = function._remember("incident", lambda: _incident(function))
    return function._gains(order), incident[order]


def _incident(function: Cut | Coverage) -> FloatArray:
    """The rounding of the sum of all the weights at each element."""
    n = function.n
    if isinstance(function, Cut):
        ends, weights = function.edges.T.ravel(), np.tile(function.weights, 2)
    else:
        ends = np.repeat(np.arange(n), np.diff(function.indptr))
        weights = function.weights[function.items]
    count = np.bincount(ends, minlength=n)
    errors = (count + 2) * EPS * np.bincount(ends, weights, minlength=n).astype(np.float64)
    # A single weight is not summed at all.
    return np.where(count > 1, errors, 0.0)


@_pass.register
def _(function: ConcaveOfModular, order: IntArray) -> tuple[FloatArray, FloatArray]:
    sums = np.concatenate([[0.0], np.cumsum(function.weights[order])])
    shift = np.arange(len(sums)) * EPS * sums
    top = max(float(function.weights.sum()), float(sums[-1]))
    values, low, high = (function._at(np.clip(sums + d, 0.0, top)) for d in (0.0, -shift, shift))
    # A concave h lies, within the interval, no further from its middle than at the ends.
    errors = np.maximum(np.abs(low - values), np.abs(high - values)) + ULPS * EPS * np.abs(values)
    return np.diff(values), errors[1:] + errors[:-1]


@_pass.register
def _(function: Sum, order: IntArray) -> tuple[FloatArray, FloatArray]:
    total: FloatArray = np.zeros(len(order))
    errors: FloatArray = np.zeros(len(order))
    for term, scale in zip(function.terms, function.coefficients.tolist(), strict=True):
        gains, wrong = gains_with_errors(term, order)
        scaled: FloatArray = scale * gains
        errors += abs(scale) * wrong
        if abs(scale) != 1.0:
            errors += EPS * np.abs(scaled)
        # What an addition of two numbers rounds away is a number, and this is it.
        after: FloatArray = np.add(total, scaled)
        part = after - total
        errors += np.abs((total - (after - part)) + (scaled - part))
        total = after
    return total, (1 + 4 * len(function.terms) * EPS) * errors


@_pass.register
def _(function: Restriction, order: IntArray) -> tuple[FloatArray, FloatArray]:
    return gains_with_errors(function.function, function.subset[order])


@_pass.register
def _(function: Contraction, order: IntArray) -> tuple[FloatArray, FloatArray]:
    chain = np.concatenate([function.subset, function.rest[order]])
    gains, errors = gains_with_errors(function.function, chain)
    return gains[len(function.subset) :], errors[len(function.subset) :]


@_pass.register
def _(function: Complement, order: IntArray) -> tuple[FloatArray, FloatArray]:
    outside: BoolArray = np.ones(function.n, np.bool_)
    outside[order] = False
    chain = np.concatenate([np.flatnonzero(outside), order[::-1]])
    gains, errors = gains_with_errors(function.function, chain)
    start = function.n - len(order)
    return -gains[start:][::-1], errors[start:][::-1]
