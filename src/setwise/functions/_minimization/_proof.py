r"""A proof that a set is a minimiser, in which a rounding may only lower the bound.

Let A be a set, and x a mean of the vertices that greedy passes give along orders which begin with
the elements of A. Then x(A) = F(A) - F(empty) whatever the numbers are, because it holds for each
vertex, and

.. math:: F(A) - \min F \;\le\; \sum_{i \in A} \max(x_i, 0) + \sum_{i \notin A} \max(-x_i, 0).

So nothing large is ever subtracted from something large: signs decide, each beside the rounding of
its own coordinate. When all are right the set is a minimiser, and what lies 40 decades apart stays
apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf, nextafter

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise.functions._base import SetFunction
from setwise.functions._numbers._parts import SHARE, parts
from setwise.functions._numbers._rounding import gains_with_errors
from setwise.functions._numbers._tolerance import bend

# A tie is a coordinate that is 0 but for rounding. The weights of the vertices come from a
# factorisation, whose rounding is a small multiple of n units.
_TIE = 64.0
_INTEGERS = 2.0**51
# So many products are made in rationals, at some microseconds each.
_MOST_EXACT = 100_000


@dataclass(frozen=True, eq=False)
class Proof:
    """What a point of the base polytope proves of a set A."""

    x: FloatArray
    """The point."""
    fall: float
    """No set is lower than F(empty) by more: a number that is not positive."""
    excess: float
    """A is no higher than the least by more."""
    rounding: float
    """What of the excess can be the rounding of ties."""


def mean_of(
    weights: FloatArray, vertices: FloatArray, errors: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean of vertices (k, n), what its coordinates can be off by, and the sizes they sum.

    ``errors`` (k, n) are what the vertices can be off by; None: they are not.
    """
    point, sizes = weights @ vertices, weights @ np.abs(vertices)
    rounding = 0.0 if len(weights) == 1 else (len(weights) + 2) * EPS
    wrong = rounding * sizes if errors is None else weights @ errors + rounding * sizes
    return point, wrong, sizes


def fall_of(function: SetFunction, point: FloatArray, errors: FloatArray) -> float:
    """How far below F(empty) a set can be: sum_i min(x_i, 0), with every rounding downwards."""
    low = fsum(np.minimum(point - errors, 0.0).tolist())
    if not parts(function).exact or errors.any():
        low = nextafter(low * (1 + 4 * EPS), -inf) if low else 0.0
    return low - slack(function)


def slack(function: SetFunction) -> float:
    """How far a greedy vertex can leave the base polytope: v(A) <= F(A) + |A| |V - A| bend."""
    n = function.n
    return (n * n // 4) * bend(function)


def prove(
    function: SetFunction, mask: BoolArray, orders: list[IntArray], weights: FloatArray
) -> Proof:
    """What the mean of the vertices along the given orders, A moved to their front, proves of A."""
    n = function.n
    vertices, errors = np.empty((len(orders), n)), np.empty((len(orders), n))
    for k, order in enumerate(orders):
        inside = mask[order]
        chain = np.concatenate([order[inside], order[~inside]])
        vertices[k, chain], errors[k, chain] = gains_with_errors(function, chain)
    point, wrong, sizes = mean_of(weights, vertices, errors)
    signs = np.where(mask, 1.0, -1.0)
    over = signs * point + wrong
    doubtful = np.flatnonzero(over > 0)
    for i in doubtful if len(doubtful) * len(weights) <= _MOST_EXACT else ():
        # Only the vertices are rounded here, and their mean is not.
        pairs = zip(weights, vertices[:, i], strict=True)
        exact = sum((Fraction(w) * Fraction(v) for w, v in pairs), Fraction())
        over[i] = nextafter(float(Fraction(signs[i]) * exact), inf) if exact else 0.0
        over[i] += (1 + 8 * EPS) * float(weights @ errors[:, i])
    open_ = over > 0
    excess = fsum(over[open_]) * (1 + 8 * EPS * len(weights))
    part, loose = parts(function), slack(function)
    ties = 4 * float(wrong[open_].sum())
    ties += _TIE * (len(weights) + n) * EPS * float(sizes[open_].sum())
    if part.exact:
        # All values are multiples of the unit, and so is what a set is too high by. Where they are
        # so many units that they are real numbers in all but name, a tie is one of these.
        excess = 0.0 if excess < part.unit else excess
        ties = ties if part.reach > _INTEGERS * part.unit else 0.0
    rounding = min(ties + loose, SHARE * part.least)
    return Proof(point, fall_of(function, point, wrong), excess + loose, rounding)
