"""The scale of relative gaps of fits, and their rounding errors.

P is the objective, and P(0) the objective at w = 0. The largest possible gain is P(0) - bound.
The gap is divided by the smaller of two scales. The first is the largest possible gain. With P
alone as the scale, w = 0 would count as a minimum on data with few positives, because C times the
risk at zero dominates P. The second scale is P minus its trivial lower bound. On separable data
with a large C, nearly all of P(0) can be gained, so a small share of the gain can be larger than P.
"""

from __future__ import annotations

from setwise._foundation._certificate import EPS, HIDDEN, MANY_ROUNDINGS, relative_gap

# The rounding error of the objective and the bound, relative to their terms, including the sums
# inside of a risk.
ROUNDING = MANY_ROUNDINGS * EPS
# The rounding error relative to P(0), whose terms, such as the 1 of a hinge, cancel against the
# scores. It must be small: on separable data P is a small share of P(0), and a gap as large as P
# must not count as a rounding error.
CANCELLED = 4 * EPS
# The distance below its lower bound, relative to its terms, that a risk may have by rounding.
BELOW_LEAST = 1e-9


def gap_scale_of(value: float, bound: float, zero: float, least: float | None = 0.0) -> float:
    """Return the scale of the relative gap, min(P(0) - bound, P(w) - least).

    ``least`` is a lower bound of C times the risk, or None if none is known.
    """
    gain = zero - bound
    return gain if least is None else min(gain, value - least)


def share_left(value: float, bound: float, zero: float, rounding: float = 0.0) -> float:
    """Return the relative gap, (P(w) - bound) / min(P(0) - bound, P(w)), in [0, 1].

    It is 0 if the gap is within the rounding error of value and bound, which is at least
    ``rounding``.
    """
    return relative_gap(*measures(value, bound, zero, rounding))


def measures(
    value: float, bound: float, zero: float, rounding: float
) -> tuple[float, float, float]:
    """Return the gap, its scale, and its rounding error."""
    least = ROUNDING * (abs(value) + abs(bound)) + CANCELLED * zero
    rounding = min(max(least, rounding), HIDDEN * value)
    return value - bound, gap_scale_of(value, bound, zero), rounding
