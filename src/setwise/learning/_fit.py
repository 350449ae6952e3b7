"""What every learner returns: the weights, and how far they can be from the best.

The gap is measured against what there is to gain over w = 0, P(0) - bound: against P itself, which
C times the number of sets makes large whatever the weights, w = 0 would pass for a minimum on rows
with few positives. Where little is left above the least that the risk can be, against that: at a
high price and with classes that can be told apart, P(0) is the large number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from setwise.functions._arguments import (
    FloatArray,
    as_array,
    as_count,
    as_number,
    check_callback,
)
from setwise.functions._certificate import relative_gap
from setwise.learning._room import CANCELLED, ROUNDING

MOST_WEIGHTS = 1 << 30  # eight gigabytes for one vector of them
# A gap that falls by less than 1 % in so many rounds, and one more for each weight, stands still.
_PATIENCE, _PROGRESS = 200, 0.99


@dataclass(frozen=True, eq=False)
class History:
    """How a fit went, one entry a round.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    >>> bool((fit.history.primal >= fit.history.dual).all())
    True
    """

    primal: FloatArray
    """The best objective so far."""
    dual: FloatArray
    """The best bound so far."""
    seconds: FloatArray
    """Since the start of the fit."""


@dataclass(frozen=True, eq=False)
class Planes:
    """Affine lower bounds of the risk, risk(w) >= offsets + slopes w: they hold for every C.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    >>> fit.planes.slopes.shape[1]
    1
    """

    slopes: FloatArray
    offsets: FloatArray


@dataclass(frozen=True, eq=False)
class Fit:
    """The minimiser of 1/2 |w|^2 + C risk(w) as far as it was found, with its certificate.

    Attributes
    ----------
    w : array of shape (d,)
        The best weights met.
    value : float
        Their objective (the primal).
    bound : float
        No weights have a lower objective (the dual).
    n_iter : int
        Rounds.
    converged : bool
        Whether the relative gap came down to the tolerance. A fit that neither did nor was
        interrupted met ``max_iter``, or made no progress any more.
    interrupted : bool
        Whether a callback or Ctrl-C ended the fit; ``w`` is then the best so far all the same.
    history : History
        Primal, dual and seconds of each round.
    C : float
        The price of the risk.
    risk_at_zero : float
        The risk of w = 0.
    least_risk : float or None
        The risk is nowhere lower, if that is known.
    rounding : float
        The rounding error of the sums that value and bound are: a smaller gap is none.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    >>> fit.value >= fit.bound, fit.relative_gap <= 1e-3
    (True, True)
    """

    w: FloatArray
    value: float
    bound: float
    n_iter: int
    converged: bool
    interrupted: bool
    history: History
    planes: Planes = field(repr=False)
    C: float
    risk_at_zero: float
    least_risk: float | None
    rounding: float

    def __post_init__(self) -> None:
        self.w.flags.writeable = False

    @property
    def gap(self) -> float:
        """Value - bound, never negative."""
        return self.value - self.bound

    @property
    def room(self) -> float:
        """What there is to gain over w = 0, P(0) - bound, or to lose, P - C least_risk.

        The smaller one: a gap that is small beside it is small beside both.
        """
        return _room(self.value, self.bound, self.C, self.risk_at_zero, self.least_risk)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of ``room``, in [0, 1]; 0 where it is within rounding.

        It changes neither with the unit of the risk or of the features nor with a constant added
        to the risk and to the least of it. w = 0 has 1, unless it is the minimum: then 0.
        """
        return 0.0 if self.gap <= self.rounding else relative_gap(self.gap, self.room)


@dataclass(frozen=True)
class Progress:
    """What a learner tells its callback after each round.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rounds = []
    >>> fit = sw.learning.one_slack(
    ...     lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, callback=rounds.append
    ... )
    >>> len(rounds) == fit.n_iter
    True
    """

    n_iter: int
    value: float
    bound: float
    relative_gap: float
    seconds: float


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
    ) -> None:
        self.least = None if least is None else as_number(least, "least_risk")
        self.C = as_number(C, "C", positive=True)
        self.tol = as_number(tol, "tol", nonnegative=True)
        self.limit = as_count(max_iter, "max_iter", least=1)
        check_callback(callback)
        self.callback = callback
        # One attribute for each pair: Ctrl-C between the two would leave the value of other
        # weights.
        self._incumbent = np.zeros(dimension), np.inf
        self._bound = -np.inf, 0.0
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
        return _room(self.value, self.bound, self.C, self._zero(), self.least)

    @property
    def rounding(self) -> float:
        """The rounding error of the sums that value and bound are."""
        squares = 0.5 * float(self.best @ self.best)
        paid = squares + abs(self.value - squares) + self._bound[1]
        return ROUNDING * paid + CANCELLED * self.C * abs(self._zero())

    def _zero(self) -> float:
        return 0.0 if self.risk_at_zero is None else self.risk_at_zero

    def checked(self, answer: object, w: FloatArray) -> tuple[float, FloatArray]:
        """What an oracle said at w, if it can be: a bound made from anything else would be none."""
        risk, slope = _as_answer(answer, len(w))
        least = self.least
        if least is not None and risk < least:
            # The terms of its sum are as large as the scores, and as the risk without any.
            terms = abs(least) + abs(self._zero()) + float(np.abs(slope) @ np.abs(w))
            if risk < least - 1e-9 * terms:
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

    def end_round(self, lower: float, size: float) -> bool:
        """Write a round down; True if it was the last.

        ``lower`` is its lower bound, ``size`` the magnitude of the terms that were summed for it.
        """
        if lower > self._bound[0]:
            self._bound = lower, size
        seconds = perf_counter() - self._start
        gap = self.value - self.bound
        share = 0.0 if gap <= self.rounding else relative_gap(gap, self.room)
        progress = Progress(len(self.rounds) + 1, self.value, self.bound, share, seconds)
        self.rounds.append(progress)
        if self.callback is not None and bool(self.callback(progress)):
            self.interrupted = share > self.tol
            return True
        return share <= self.tol or len(self.rounds) == self.limit or self._stands_still(gap)

    def _stands_still(self, gap: float) -> bool:
        if len(self.rounds) <= self._patience:
            return False
        before = self.rounds[-1 - self._patience]
        return gap > _PROGRESS * (before.value - before.bound)

    def interrupt(self) -> None:
        """Ctrl-C: what there is stands, unless there is nothing yet."""
        if not self.rounds:
            raise KeyboardInterrupt
        self.interrupted = True

    def fit(self, planes: Planes) -> Fit:
        """The record of it all."""
        columns = np.array([(row.value, row.bound, row.seconds) for row in self.rounds])
        return Fit(
            w=self.best,
            value=self.value,
            bound=self.bound,
            n_iter=len(self.rounds),
            converged=self.rounds[-1].relative_gap <= self.tol,
            interrupted=self.interrupted,
            history=History(*columns.T.copy()),
            planes=planes,
            C=self.C,
            risk_at_zero=self._zero(),
            least_risk=self.least,
            rounding=self.rounding,
        )


def _room(value: float, bound: float, C: float, at_zero: float, least: float | None) -> float:
    gain = C * at_zero - bound
    return gain if least is None else min(gain, value - C * least)


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
