"""The rounds of a linear field's fit: stopping and history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import as_count, as_number
from setwise._foundation._clock import Deadline
from setwise._foundation._progress import Progress, stops
from setwise.estimators._fields._field_oracle import FieldOracle
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._history import History
from setwise.learning._relative_gap import share_left

# The share of the tolerance that planes may use if the proof of the labels needs the rest. It is
# not tuned.
_SHARE = 0.1


class FieldRounds:
    """The record of the rounds of a learner, over one or two searches of the same problem.

    While labels come from moves, the value that the learner gets is no upper bound. The history
    therefore has the objectives that the oracle has proved.
    """

    def __init__(
        self,
        oracle: FieldOracle,
        tol: float,
        limit: int,
        callback: Callable[[Progress], object] | None,
        deadline: Deadline,
    ) -> None:
        self._oracle, self._callback, self.deadline = oracle, callback, deadline
        self._tol = as_number(tol, "tol", nonnegative=True)
        self._limit = as_count(limit, "max_iter", least=1)
        self.bound = -np.inf
        self.rounding = 0.0  # the rounding error of the final sums
        self._bounds: list[float] = []
        self.seconds: list[float] = []
        self._before = 0.0
        self._asked = self._thorough = False
        self.stalled = False
        self.interrupted = self.cancelled = False

    def start(self, *, thorough: bool) -> None:
        """Begin another search, whose clock starts at 0.

        A thorough search ends when its best weights are proved to be within the tolerance, or when
        only the proof of their labels is missing.
        """
        self._thorough = thorough
        self._before = self.seconds[-1] if self.seconds else 0.0
        self._asked, self.stalled, self.rounding = False, False, 0.0

    def __call__(self, progress: Progress) -> bool:
        """Record a round; return True if it is the last."""
        self.bound = max(self.bound, progress.bound)
        gap = self.share_left(progress.value)
        self._bounds.append(self.bound)
        self.seconds.append(self._before + progress.seconds)
        total = replace(
            progress,
            n_iter=len(self.seconds),
            bound=min(self.bound, progress.value),
            relative_gap=gap,
            seconds=self.seconds[-1],
        )
        asked = stops(self._callback, total)
        tol = _SHARE * self._tol if self._thorough else self._tol
        done = gap <= tol or (self._thorough and self.proved())
        self.interrupted = asked and gap > self._tol
        self._asked = asked or done
        return self._asked

    @property
    def left(self) -> int:
        """The largest number of further rounds."""
        return self._limit - len(self.seconds)

    def proved(self) -> bool:
        """Return whether the best proved weights are within the tolerance."""
        best = self._oracle.best.value
        return self.share_left(best) <= self._tol

    def share_left(self, value: float) -> float:
        """Return the relative gap of weights with this objective."""
        return share_left(value, min(self.bound, value), self._oracle.zero, self.rounding)

    def end(self, fit: Fit) -> None:
        """Record why a search ended above its target: Ctrl-C, the time limit, or no progress."""
        self.rounding = fit.rounding
        if (fit.interrupted or self.deadline.expired) and not self._asked:
            self.cancel()
        elif not (self._asked or fit.converged) and len(self.seconds) < self._limit:
            self.stalled = True

    def cancel(self) -> None:
        """End the rounds because of Ctrl-C or the time limit."""
        self.interrupted = self.cancelled = True

    def history(self) -> History:
        """Return proved objectives, bounds and seconds of all rounds."""
        primal = np.minimum.accumulate(self._oracle.proved[: len(self.seconds)])
        return History(primal, np.minimum(self._bounds, primal), np.array(self.seconds))
