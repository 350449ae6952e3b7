"""What every learner keeps on its way: the best weights, the best bound, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from setwise._foundation._arguments import (
    FloatArray,
    as_array,
    as_count,
    as_number,
    check_callback,
)
from setwise._foundation._certificate import relative_gap
from setwise._foundation._deadline import Deadline
from setwise._foundation._progress import Progress, stops
from setwise._foundation._timings import Stopwatch
from setwise.learning._cutting_planes._fit import Dual, Fit, Planes
from setwise.learning._history import History, columns_of
from setwise.learning._room import BELOW_LEAST, CANCELLED, HIDDEN, ROUNDING, room_of

MOST_WEIGHTS = 1 << 30  # eight gigabytes for one vector of them
# A gap that falls by less than 1 % in so many rounds, and one more for each weight, stands still.
_PATIENCE, _PROGRESS = 200, 0.99


class Search:
    """What every learner keeps: the best weights, the best bound, and when to stop."""

    def __init__(
        self,
        dimension: int,
        C: float,
        tol: float,
        max_iter: int,
        callback: Callable[[Progress], object] | None,
        least: float | None = 0.0,
        *,
        time_limit: float | None = None,
    ) -> None:
        self.least = None if least is None else as_number(least, "least_risk")
        self.C = as_number(C, "C", positive=True)
        self.tol = as_number(tol, "tol", nonnegative=True)
        self.limit = as_count(max_iter, "max_iter", least=1)
        check_callback(callback)
        self.callback = callback
        self.deadline = Deadline.of(time_limit, armed=False)
        self.watch = Stopwatch()
        # One attribute for each pair: Ctrl-C between the two would leave the value of other
        # weights.
        self._incumbent = np.zeros(dimension), np.inf
        trivial = -np.inf if self.least is None else self.C * self.least
        self._bound = trivial, 0.0 if self.least is None else abs(trivial)
        self.risk_at_zero: float | None = None
        self.rounds: list[Progress] = []
        self.interrupted = False
        self._patience = _PATIENCE + dimension
        self._start = perf_counter()

    @property
    def best(self) -> FloatArray:
        """The best weights so far; zero before there are any."""
        return self._incumbent[0]

    @property
    def value(self) -> float:
        """Their objective."""
        return self._incumbent[1]

    @property
    def bound(self) -> float:
        """The best bound so far, never above the value."""
        return min(self._bound[0], self.value)

    @property
    def room(self) -> float:
        """What the gap is measured against."""
        least = None if self.least is None else self.C * self.least
        return room_of(self.value, self.bound, self.C * self._zero(), least)

    @property
    def rounding(self) -> float:
        """The rounding error of the sums that value and bound are."""
        squares = 0.5 * float(self.best @ self.best)
        paid = squares + abs(self.value - squares)
        rounding = ROUNDING * (paid + self._bound[1]) + CANCELLED * self.C * abs(self._zero())
        seen = paid if self.least is None else self.value - self.C * self.least
        return min(rounding, HIDDEN * seen)

    def _zero(self) -> float:
        return 0.0 if self.risk_at_zero is None else self.risk_at_zero

    def ask(
        self, oracle: Callable[..., object], w: FloatArray, *of: int
    ) -> tuple[float, FloatArray]:
        """What the oracle says at w, of an example or of all; before it the time limit is met."""
        self.deadline.check()
        self.watch.lap("model")
        answer = oracle(*of, w.copy())
        self.watch.lap("oracle")
        return self.checked(answer, w)

    def checked(self, answer: object, w: FloatArray) -> tuple[float, FloatArray]:
        """What an oracle said at w, if it can be: a bound made from anything else would be none."""
        risk, slope = _as_answer(answer, len(w))
        least = self.least
        if least is not None and risk < least:
            # The terms of its sum are as large as the scores, and as the risk without any.
            terms = abs(least) + abs(self._zero()) + float(np.abs(slope) @ np.abs(w))
            if risk < least - BELOW_LEAST * terms:
                raise ValueError(f"oracle must not return a risk below {least:g}, got {risk}")
        return risk, slope

    def offer(self, w: FloatArray, risk: float) -> float:
        """Keep the weights if none were better; their objective."""
        if self.risk_at_zero is None and not w.any():
            self.risk_at_zero = risk
        objective = 0.5 * float(w @ w) + self.C * risk
        if objective < self.value:
            self._incumbent = w.copy(), objective
        return objective

    def know(self, lower: float, size: float) -> None:
        """Keep a lower bound if it is the best one; ``size`` as in ``end_round``.

        A difference of large numbers, of which rounding has left little, counts without that.
        """
        rounding = ROUNDING * size
        if rounding > HIDDEN * abs(lower):
            lower -= rounding
        if lower > self._bound[0]:
            self._bound = lower, size

    def end_round(self, lower: float, size: float) -> bool:
        """Write a round down; True if it was the last.

        ``lower`` is its lower bound, ``size`` the magnitude of the terms that were summed for it.
        """
        self.know(lower, size)
        seconds = perf_counter() - self._start
        gap = self.value - self.bound
        share = relative_gap(gap, self.room, self.rounding)
        progress = Progress(len(self.rounds) + 1, self.value, self.bound, share, seconds)
        self.rounds.append(progress)
        self.deadline.armed = True  # from now on there is an answer
        if stops(self.callback, progress):
            self.interrupted = share > self.tol
            return True
        return share <= self.tol or len(self.rounds) == self.limit or self._stands_still(gap)

    def end_round_of_blocks(self, heights: FloatArray, w: FloatArray) -> bool:
        """The same for a dual with a block an example: the bound is sum(heights) - 1/2 |w|^2."""
        squares = 0.5 * float(w @ w)
        size = float(np.abs(heights).sum()) + squares
        return self.end_round(float(heights.sum()) - squares, size)

    def _stands_still(self, gap: float) -> bool:
        if len(self.rounds) <= self._patience:
            return False
        before = self.rounds[-1 - self._patience]
        return gap > _PROGRESS * (before.value - before.bound)

    def interrupt(self) -> None:
        """Ctrl-C, or the time limit: what there is stands, unless there is nothing yet."""
        if not self.rounds:
            raise KeyboardInterrupt
        self.interrupted = True

    def fit(self, learner: str, planes: Planes | None = None, dual: Dual | None = None) -> Fit:
        """The record of it all; without planes another fit starts from the weights alone."""
        if planes is None:
            planes = Planes(np.empty((0, len(self.best))), np.empty(0))
        return Fit(
            w=self.best,
            value=self.value,
            bound=self.bound,
            n_iter=len(self.rounds),
            converged=self.rounds[-1].relative_gap <= self.tol,
            interrupted=self.interrupted and not self.deadline.struck,
            history=History(*columns_of(self.rounds)),
            planes=planes,
            C=self.C,
            risk_at_zero=self._zero(),
            least_risk=self.least,
            rounding=self.rounding,
            size=self._bound[1],
            reason=self._reason(),
            timings=self.watch.timings("model"),
            learner=learner,
            dual=dual,
        )

    def _reason(self) -> str:
        """Why the fit ended."""
        if self.interrupted:
            struck = self.deadline.struck
            return self.deadline.sentence if struck else "a callback or Ctrl-C ended it"
        if self.rounds[-1].relative_gap <= self.tol:
            return f"the relative gap is within tol={self.tol:g}"
        if len(self.rounds) == self.limit:
            return f"max_iter={self.limit} rounds made"
        return "the gap stands still"


def _as_answer(answer: object, dimension: int) -> tuple[float, FloatArray]:
    """A risk and a subgradient, both finite, or one sentence on what is wrong with which."""
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise TypeError(
            f"oracle must return a pair (risk, subgradient), got {type(answer).__name__}"
        )
    told = as_array(answer[0], "the risk that oracle returns")
    slope = as_array(answer[1], "the subgradient that oracle returns")
    if told.size != 1 or told.dtype.kind not in "fiub" or slope.dtype.kind not in "fiub":
        raise TypeError(
            "oracle must return a number and an array of numbers, "
            f"got dtypes {told.dtype} and {slope.dtype}"
        )
    risk, slope = float(told.reshape(())), slope.astype(np.float64)
    if slope.shape != (dimension,):
        raise ValueError(
            f"oracle must return a subgradient of shape ({dimension},), got {slope.shape}"
        )
    if not (np.isfinite(risk) and np.isfinite(slope).all()):
        raise ValueError(f"oracle must return finite numbers, got a risk of {risk}")
    return risk, slope
