r"""A proof that a set is a minimiser. Rounding errors can only lower its bound.

Let A be a set, and x a mean of the vertices that greedy passes give along orders which begin with
the elements of A. Then x(A) = F(A) - F(empty) whatever the numbers are, because it holds for each
vertex, and

.. math:: F(A) - \min F \;\le\; \sum_{i \in A} \max(x_i, 0) + \sum_{i \notin A} \max(-x_i, 0).

So no large numbers are subtracted from each other: only signs matter, each compared with the
rounding error of its own coordinate. If all signs are right, the set is a minimiser, even if the
numbers of F differ by 40 orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf, nextafter

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, HIDDEN, MANY_ROUNDINGS
from setwise.functions._base import SetFunction
from setwise.functions._numbers import gains_with_errors, numbers_of

# The most products of rational numbers in a proof. Each takes some microseconds, so the limit keeps
# a proof below a second. In a trial of 188 functions a limit of 1000 gave the same proofs, and
# without any rational products the excess of 14 functions was larger.
_MOST_EXACT = 100_000


@dataclass(frozen=True, eq=False)
class Proof:
    """The proof for a set A by a point of the base polytope."""

    x: FloatArray
    """The point."""
    fall: float
    """A lower bound on F(S) - F(empty) for all sets S; not positive."""
    excess: float
    """An upper bound on F(A) minus the minimum."""
    rounding: float
    """The part of the excess that can be the rounding of ties."""


def mean_of(
    weights: FloatArray, vertices: FloatArray, errors: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of vertices (k, n), with bounds on the errors of its coordinates.

    ``errors`` (k, n) bound the errors of the vertices; None if they are exact.
    """
    point, sizes = weights @ vertices, weights @ np.abs(vertices)
    rounding = 0.0 if len(weights) == 1 else (len(weights) + 2) * EPS
    wrong = rounding * sizes if errors is None else weights @ errors + rounding * sizes
    return point, wrong


def fall_of(function: SetFunction, point: FloatArray, errors: FloatArray) -> float:
    """Return the lower bound sum_i min(x_i, 0) on F(A) - F(empty), rounded downwards."""
    low = fsum(np.minimum(point - errors, 0.0).tolist())
    if not numbers_of(function).exact or errors.any():
        low = nextafter(low * (1 + 4 * EPS), -inf) if low else 0.0
    return low - slack(function)


def slack(function: SetFunction) -> float:
    """Bound the excess of greedy vertices v over F: v(A) <= F(A) + |A| |V - A| ``_bend()``."""
    n = function.n
    return (n * n // 4) * function._remember("bend", function._bend)


def prove(
    function: SetFunction, mask: BoolArray, orders: list[IntArray], weights: FloatArray
) -> Proof:
    """Prove a bound for A by the mean of vertices along the orders with A moved to the front."""
    n = function.n
    vertices, errors = np.empty((len(orders), n)), np.empty((len(orders), n))
    for k, order in enumerate(orders):
        inside = mask[order]
        chain = np.concatenate([order[inside], order[~inside]])
        vertices[k, chain], errors[k, chain] = gains_with_errors(function, chain)
    point, wrong = mean_of(weights, vertices, errors)
    signs = np.where(mask, 1.0, -1.0)
    over = signs * point + wrong
    doubtful = np.flatnonzero(over > 0)
    for i in doubtful if len(doubtful) * len(weights) <= _MOST_EXACT else ():
        # Only the vertices have rounding errors here. Their mean is exact.
        pairs = zip(weights, vertices[:, i], strict=True)
        exact = sum((Fraction(w) * Fraction(v) for w, v in pairs), Fraction())
        over[i] = nextafter(float(Fraction(signs[i]) * exact), inf) if exact else 0.0
        over[i] += (1 + FEW_ROUNDINGS * EPS) * float(weights @ errors[:, i])
    open_ = over > 0
    excess = fsum(over[open_]) * (1 + FEW_ROUNDINGS * EPS * len(weights))
    numbers, loose = numbers_of(function), slack(function)
    # A tie is a coordinate that is 0 up to rounding errors, including those of the weights. The
    # weights come from a factorisation, whose errors are a small multiple of n roundings.
    sizes = weights @ np.abs(vertices)
    ties = 4 * float(wrong[open_].sum())
    ties += MANY_ROUNDINGS * (len(weights) + n) * EPS * float(sizes[open_].sum())
    if numbers.exact:
        # All values are multiples of the unit, and so is the excess of a set.
        excess = 0.0 if excess < numbers.unit else excess
        ties = 0.0
    rounding = min(ties + loose, HIDDEN * numbers.least)
    return Proof(point, fall_of(function, point, wrong), excess + loose, rounding)
