"""What every learner returns: the weights, and how far they can be from the best."""

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

MOST_WEIGHTS = 1 << 30  # eight gigabytes for one vector of them


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
        Whether the relative gap came down to the tolerance.
    interrupted : bool
        Whether a callback or Ctrl-C ended the fit; ``w`` is then the best so far all the same.
    history : History
        Primal, dual and seconds of each round.

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

    def __post_init__(self) -> None:
        self.w.flags.writeable = False

    @property
    def gap(self) -> float:
        """Value - bound, never negative."""
        return self.value - self.bound

    @property
    def relative_gap(self) -> float:
        """Gap / max(1, abs(value))."""
        return self.gap / max(1.0, abs(self.value))


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
        tol: float,
        max_iter: int,
        callback: Callable[[Progress], object] | None,
    ) -> None:
        self.tol = as_number(tol, "tol", nonnegative=True)
        self.limit = as_count(max_iter, "max_iter", least=1)
        check_callback(callback)
        self.callback = callback
        # One attribute for the two: Ctrl-C between them would leave the value of other weights.
        self._incumbent = np.zeros(dimension), np.inf
        self.bound = -np.inf
        self.rounds: list[Progress] = []
        self.interrupted = False
        self._start = perf_counter()

    @property
    def best(self) -> FloatArray:
        """The best weights so far; zero before there are any."""
        return self._incumbent[0]

    @property
    def value(self) -> float:
        """Their objective."""
        return self._incumbent[1]

    def offer(self, w: FloatArray, objective: float) -> None:
        """Keep the weights if none were better."""
        if objective < self.value:
            self._incumbent = w.copy(), objective

    def end_round(self, lower: float) -> bool:
        """Write a round and its lower bound down; True if it was the last."""
        self.bound = min(max(self.bound, lower), self.value)
        gap = (self.value - self.bound) / max(1.0, abs(self.value))
        seconds = perf_counter() - self._start
        progress = Progress(len(self.rounds) + 1, self.value, self.bound, gap, seconds)
        self.rounds.append(progress)
        answer = None if self.callback is None else self.callback(progress)
        if isinstance(answer, bool | np.bool_) and answer:
            self.interrupted = gap > self.tol
            return True
        return gap <= self.tol or len(self.rounds) == self.limit

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
        )


def checked_answer(answer: object, dimension: int, least: float | None) -> tuple[float, FloatArray]:
    """What an oracle said, if it can be: a bound made from anything else would be none."""
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
    if least is not None and risk < least - 1e-9 * max(1.0, abs(least)):
        raise ValueError(f"oracle must not return a risk below {least:g}, got {risk}")
    return risk, slope
