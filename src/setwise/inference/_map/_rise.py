"""How much further a bound will rise, judged by how it has risen."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

# Why a search for a bound ended, in words that go on a sentence.
AT_LIMIT = "the bound is at the limit of its relaxation, above tol"
# Of the gap: a search whose bound has less than this to rise is at its limit.
LITTLE = 0.03


class Rise:
    """The bounds of a search, pass by pass, and what is to be expected of the passes to come.

    What a doubling of the number of passes brings falls from doubling to doubling: by half where
    the distance to the limit falls as 1 / n, by more and more where it falls by a factor a pass.
    Were it to go on by the last factor, what is left is the sum of a geometric series.
    """

    def __init__(self) -> None:
        self._passes: list[int] = []
        self._bounds: list[float] = []

    def note(self, n_iter: int, bound: float) -> None:
        """The bound after so many passes."""
        self._passes.append(n_iter)
        self._bounds.append(bound)

    @property
    def rest(self) -> float:
        """By how much the bound may still rise; ``inf`` until that can be told."""
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
        """Whether the gap stays above ``goal``, and falls by a few hundredths at most."""
        rest = self.rest
        return rest <= LITTLE * gap and gap - rest > goal
