"""What a fit could gain, and how much of it is not proved to be gained."""

from __future__ import annotations

from setwise.functions._certificate import relative_gap

# Both ends of a gap are sums of about the size of P(0): a smaller share of it is their rounding.
_ROUNDING = 2.0**-40


def share_left(value: float, bound: float, zero: float) -> float:
    """(P(w) - bound) / min(P(0) - bound, P(w)), in [0, 1]: how much of the room may be left.

    ``zero`` is P(0), the objective of no weights. P(0) - bound is what there was to gain: against
    the objective alone, which C times the risk of saying nothing makes large, weights of zero would
    pass for a minimum. Where nearly all of P(0) can be gained, as on data that can be told apart at
    a large C, a small share of that is a large one of what is left, and the objective itself is the
    measure. 0 where the gap is within the rounding of P(0).
    """
    gap = value - bound
    return 0.0 if gap <= _ROUNDING * zero else relative_gap(gap, min(zero - bound, value))
