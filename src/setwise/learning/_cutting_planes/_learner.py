"""The state of every learner: the best weights, the best bound, and their gap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import (
    FloatArray,
    as_array,
    as_count,
    as_number,
    check_callback,
)
from setwise._foundation._certificate import HIDDEN, relative_gap
from setwise._foundation._clock import Deadline, Stopwatch
from setwise._foundation._progress import Progress
from setwise._foundation._search import Control, Search, drive
from setwise.learning._cutting_planes._fit import Dual, Fit, Planes
from setwise.learning._history import History, columns_of
from setwise.learning._relative_gap import BELOW_LEAST, CANCELLED, ROUNDING, gap_scale_of

# A fit ends if its gap does not improve for this number of rounds plus one per weight. Not
# tuned: it only ends fits that stand still.
_PATIENCE = 200


class Learner(Search[Progress]):
    """A method that minimises 1/2 |w|^2 + C risk(w), with its best weights and best bound."""

    name: str
    calls_user = True

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
        limit = as_count(max_iter, "max_iter", least=1)
        check_callback(callback)
        self.deadline = Deadline.of(time_limit, armed=False)
        self._control = Control(self.tol, limit, callback, self.deadline, keeps_history=True)
        self.watch = Stopwatch()
        # Weights and value are one attribute, so that they belong together even after Ctrl-C.
        self._incumbent = np.zeros(dimension), np.inf
        trivial = -np.inf if self.least is None else self.C * self.least
        self._bound = trivial, 0.0 if self.least is None else abs(trivial)
        self.risk_at_zero: float | None = None
        self.patience = _PATIENCE + dimension

    @property
    def best(self) -> FloatArray:
        """The best weights so far; initially zero."""
        return self._incumbent[0]

    @property
    def value(self) -> float:
        """The objective of the best weights."""
        return self._incumbent[1]

    @property
    def bound(self) -> float:
        """The best bound so far, never above the value."""
        return min(self._bound[0], self.value)

    @property
    def gap_scale(self) -> float:
        """The scale of the relative gap."""
        least = None if self.least is None else self.C * self.least
        return gap_scale_of(self.value, self.bound, self.C * self._zero(), least)

    @property
    def rounding(self) -> float:
        """The rounding error of value and bound."""
        squares = 0.5 * float(self.best @ self.best)
        magnitude = squares + abs(self.value - squares)
        rounding = ROUNDING * (magnitude + self._bound[1]) + CANCELLED * self.C * abs(self._zero())
        seen = magnitude if self.least is None else self.value - self.C * self.least
        return min(rounding, HIDDEN * seen)

    def _zero(self) -> float:
        return 0.0 if self.risk_at_zero is None else self.risk_at_zero

    def ask(
        self, oracle: Callable[..., object], w: FloatArray, *of: int
    ) -> tuple[float, FloatArray]:
        """Check the time limit and call the oracle at w, optionally for one example."""
        self.deadline.check()
        self.watch.lap("model")
        answer = oracle(*of, w.copy())
        self.watch.lap("oracle")
        return self.checked(answer, w)

    def checked(self, answer: object, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the answer of an oracle at w after checking it, because bounds rely on it."""
        risk, slope = _as_answer(answer, len(w))
        least = self.least
        if least is not None and risk < least:
            # The terms of the risk are of the size of the scores and of the risk at zero.
            terms = abs(least) + abs(self._zero()) + float(np.abs(slope) @ np.abs(w))
            if risk < least - BELOW_LEAST * terms:
                raise ValueError(f"oracle must not return a risk below {least:g}, got {risk}")
        return risk, slope

    def offer(self, w: FloatArray, risk: float) -> float:
        """Store the weights if they are the best so far. Return their objective."""
        if self.risk_at_zero is None and not w.any():
            self.risk_at_zero = risk
        objective = 0.5 * float(w @ w) + self.C * risk
        if objective < self.value:
            self._incumbent = w.copy(), objective
        return objective

    def know(self, lower: float, size: float) -> None:
        """Store a lower bound if it is the best so far.

        ``size`` is the magnitude of its terms. The rounding error is subtracted from the bound
        unless it is negligible.
        """
        rounding = ROUNDING * size
        if rounding > HIDDEN * abs(lower):
            lower -= rounding
        if lower > self._bound[0]:
            self._bound = lower, size

    def know_blocks(self, heights: FloatArray, w: FloatArray) -> None:
        """Store the bound of a dual with a block per example: sum(heights) - 1/2 |w|^2."""
        squares = 0.5 * float(w @ w)
        self.know(float(heights.sum()) - squares, float(np.abs(heights).sum()) + squares)

    @property
    def gap(self) -> float:  # type: ignore[override]
        """The value minus the bound."""
        return self.value - self.bound

    @property
    def relative_gap(self) -> float:  # type: ignore[override]
        """The gap as a share of ``gap_scale``."""
        return relative_gap(self.gap, self.gap_scale, self.rounding)

    def progress(self, n_iter: int, seconds: float) -> Progress:
        return Progress(n_iter, self.value, self.bound, self.relative_gap, seconds)

    def planes(self) -> Planes:
        """Return planes below the risk from which another fit can start; the default is none."""
        return Planes(np.empty((0, len(self.best))), np.empty(0))

    def dual(self) -> Dual | None:
        """Return the dual that another fit can start from, if there is one."""
        return None

    def fit(self) -> Fit:
        """Run the search, and return its record."""
        ending = drive(self, self._control)
        return Fit(
            w=self.best,
            value=self.value,
            bound=self.bound,
            n_iter=len(ending.history),
            converged=ending.converged,
            interrupted=ending.interrupted,
            history=History(*columns_of(ending.history)),
            planes=self.planes(),
            C=self.C,
            risk_at_zero=self._zero(),
            least_risk=self.least,
            rounding=self.rounding,
            size=self._bound[1],
            reason=ending.reason,
            timings=self.watch.timings("model"),
            learner=self.name,
            dual=self.dual(),
        )


def _as_answer(answer: object, dimension: int) -> tuple[float, FloatArray]:
    """Return a finite risk and subgradient. Raise an error that explains an invalid answer."""
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise TypeError(
            f"oracle must return a pair (risk, subgradient), got {type(answer).__name__}"
        )
    returned = as_array(answer[0], "the risk that oracle returns")
    slope = as_array(answer[1], "the subgradient that oracle returns")
    if returned.size != 1 or returned.dtype.kind not in "fiub" or slope.dtype.kind not in "fiub":
        raise TypeError(
            "oracle must return a number and an array of numbers, "
            f"got dtypes {returned.dtype} and {slope.dtype}"
        )
    risk, slope = float(returned.reshape(())), slope.astype(np.float64)
    if slope.shape != (dimension,):
        raise ValueError(
            f"oracle must return a subgradient of shape ({dimension},), got {slope.shape}"
        )
    if not (np.isfinite(risk) and np.isfinite(slope).all()):
        raise ValueError(f"oracle must return finite numbers, got a risk of {risk}")
    return risk, slope
