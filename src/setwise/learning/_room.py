"""What a fit could gain, and how much of it is not proved to be gained."""

from __future__ import annotations

from setwise.functions._certificate import relative_gap

# Both ends of a gap are sums of about the size of P(0): a smaller share of it is their rounding.
_ROUNDING = 2.0**-40


def share_left(value: float, bound: float, zero: float) -> float:
    """(P(w) - bound) / (P(0) - bound): the share of what there was to gain that may be left.

    ``zero`` is P(0), the objective without any weights, which every fit begins with. It counts
    C times the risk of saying nothing, so that a gap divided by the objective itself would call
    weights of zero good wherever that is large. 0 where the gap is within the rounding of P(0).
    """
    gap = value - bound
    return 0.0 if gap <= _ROUNDING * zero else relative_gap(gap, zero - bound)


def within(tol: float, value: float, bound: float, zero: float) -> bool:
    """Whether a fit may stop: the gap is at most ``tol`` of what there was to gain and of P(w).

    Where nearly all of C times the risk can be gained, as on data that can be told apart at a large
    C, a small share of that is a large one of what is left.
    """
    gap = value - bound
    return gap <= _ROUNDING * zero or gap <= tol * min(zero - bound, value)
