"""The extrapolation of the rise of a bound from its earlier values."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

# The reason why a search for a bound ended, as part of a sentence.
AT_LIMIT = "the bound is at the limit of its relaxation, above tol"
# A bound counts as being at its limit if its predicted remaining rise is below this share of the
# gap. Not tuned.
LITTLE = 0.03


class BoundExtrapolation:
    """The bounds of a search after each pass, with a prediction for later passes.

    The rise per doubling of the number of passes decreases: by half if the distance to the limit is
    proportional to 1 / n, faster if it decreases by a factor per pass. If it continues to decrease
    by the last factor, the remaining rise is the sum of a geometric series.
    """

    def __init__(self) -> None:
        self._passes: list[int] = []
        self._bounds: list[float] = []

    def note(self, n_iter: int, bound: float) -> None:
        """Record the bound after ``n_iter`` passes."""
        self._passes.append(n_iter)
        self._bounds.append(bound)

    @property
    def rest(self) -> float:
        """The predicted remaining rise of the bound; ``inf`` until it can be predicted."""
        n_iter = self._passes[-1] if self._passes else 0
        quarter, half = (bisect_right(self._passes, n_iter // k) - 1 for k in (4, 2))
        if quarter < 0 or n_iter < 4:
            return inf
        before = self._bounds[half] - self._bounds[quarter]
        last = self._bounds[-1] - self._bounds[half]
        if last <= 0.0:
            return 0.0
        return last * last / (before - last) if last < before else inf

    def is_over(self, gap: float, goal: float) -> bool:
        """Return whether the gap is predicted to stay above ``goal`` and to hardly decrease."""
        rest = self.rest
        return rest <= LITTLE * gap and gap - rest > goal
