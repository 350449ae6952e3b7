"""What a fit could gain, and how much of it is not proved to be gained.

P is the objective, P(0) that of no weights. P(0) - bound is what there was to gain: against the
objective alone, which C times the risk of saying nothing makes large, weights of zero would pass
for a minimum on rows with few positives. Where nearly all of P(0) can be gained, as on data that
can be told apart at a large C, a small share of that is a large one of what is left, and the
objective itself, above the least that it can be, is the measure.
"""

from __future__ import annotations

from setwise._foundation._certificate import EPS, relative_gap

# Of the objective and its bound: the rounding of their sums, those within a risk included.
ROUNDING = 64 * EPS
# Of P(0), whose terms, such as the 1 of a hinge, cancel against the scores. It is no larger: where
# the classes can be told apart, P is a small share of P(0), and a gap of P's own size none of that.
CANCELLED = 4 * EPS
# Of the objective: a gap that is more is none of rounding, however large that may be. At a price of
# 1e15 it hides all that there is to know.
HIDDEN = 1e-6
# Of the terms that a risk sums: how far below its least value rounding may take it.
BELOW_LEAST = 1e-9


def room_of(value: float, bound: float, zero: float, least: float | None = 0.0) -> float:
    """min(P(0) - bound, P(w) - least), of P(w), a bound, P(0) and what C times the risk is above.

    A gap that is small beside it is small beside both. ``least`` is None where it is not known.
    """
    gain = zero - bound
    return gain if least is None else min(gain, value - least)


def share_left(value: float, bound: float, zero: float, rounding: float = 0.0) -> float:
    """(P(w) - bound) / min(P(0) - bound, P(w)), in [0, 1]: how much of the room may be left.

    0 where the gap is within the rounding of the sums that its ends are; ``rounding`` is what is
    known of it beyond their size.
    """
    return relative_gap(*measures(value, bound, zero, rounding))


def measures(
    value: float, bound: float, zero: float, rounding: float
) -> tuple[float, float, float]:
    """The gap, the room that it is measured against, and the rounding that it may be."""
    least = ROUNDING * (abs(value) + abs(bound)) + CANCELLED * zero
    rounding = min(max(least, rounding), HIDDEN * value)
    return value - bound, room_of(value, bound, zero), rounding
