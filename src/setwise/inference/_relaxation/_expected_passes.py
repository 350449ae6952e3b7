"""When to measure a gap that costs as much as a pass: where it is expected to matter."""

from __future__ import annotations

from math import exp, log


class Schedule:
    """After which pass the gap is measured next, as one is told what it was.

    Far from the minimum it falls as a power of the number of passes (about the second), near it by
    a factor a pass: halfway between what the two say of the fall since the last measurement, at
    most ten passes ahead, and at most as many as twice those that were.
    """

    def __init__(self, tol: float, relative_gap: float) -> None:
        self._tol = tol
        self._last, self._measured = 0, relative_gap
        self.next = 1

    def measured(self, passes: int, relative_gap: float) -> None:
        """After so many passes the gap was this."""
        ahead = self._ahead(passes, relative_gap)
        self._last, self._measured = passes, relative_gap
        self.next = passes + int(max(1, min(10, 2 * passes, ahead)))

    def _ahead(self, passes: int, relative_gap: float) -> float:
        """After how many more passes the gap may reach ``tol``."""
        if not 0.0 < self._tol < relative_gap < self._measured or self._last == 0:
            return passes if self._tol == 0.0 else min(passes, 3)
        togo, fall = log(relative_gap / self._tol), log(self._measured / relative_gap)
        by_factor = togo * (passes - self._last) / fall
        by_power = passes * (exp(min(togo * log(passes / self._last) / fall, 10.0)) - 1.0)
        return (by_factor + by_power) / 2
