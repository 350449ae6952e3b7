"""How much further a bound will rise, judged by how it has risen."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

# Of the gap: a search whose bound has less than this to rise is at its limit.
LITTLE = 0.1


class Rise:
    """The bounds of a search, pass by pass, and what is to be expected of the passes to come.

    A rise that shrinks by a factor from look to look ends where the geometric series ends (Aitken's
    extrapolation). Tails are often slower, as 1 / n: then what is left is as much as the last
    doubling of the number of passes brought. The larger of the two is taken.
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
        half = bisect_right(self._passes, self._passes[-1] // 2) - 1 if self._passes else -1
        if half < 0 or len(self._bounds) < 3:
            return inf
        before, last = self._bounds[-2] - self._bounds[-3], self._bounds[-1] - self._bounds[-2]
        if not last < before:
            return inf if last > 0.0 else self._bounds[-1] - self._bounds[half]
        series = last * last / (before - last)
        return max(series, self._bounds[-1] - self._bounds[half])

    def is_over(self, gap: float, goal: float) -> bool:
        """Whether the gap stays above ``goal``, and falls by a tenth at most."""
        rest = self.rest
        return rest <= LITTLE * gap and gap - rest > goal
