"""The options, the driver and the solutions of methods for marginals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp, inf, log
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._clock import Deadline, Stopwatch
from setwise._foundation._search import Control, Search, drive
from setwise.fields._field import Field
from setwise.inference._conditioning._magnitude import difference_above, difference_below
from setwise.inference._marginals._result import MarginalsProgress


@dataclass(frozen=True, eq=False)
class MarginalsOptions:
    """The arguments of ``marginals``, checked."""

    tol: float
    max_iter: int | None
    temperature: float
    n_threads: int
    dtype: str
    callback: Callable[[MarginalsProgress], object] | None
    random: np.random.Generator
    start: FloatArray | None = None
    """Probabilities (N, L) of an earlier result."""
    state: FloatArray | None = None
    """The ``state`` of an earlier result of the same method."""
    offset: float = 0.0
    """log Z of the method's field minus log Z of the caller's field."""
    margin: float = 0.0
    """A bound on the rounding error of the offset."""
    from_below: bool = False
    """Whether intermediate values are lower bounds, as in mean field."""
    deadline: Deadline = field(default_factory=Deadline)
    watch: Stopwatch = field(default_factory=Stopwatch)
    began: float = field(default_factory=perf_counter)

    def above(self, value: float) -> float:
        """Convert an upper bound on log Z of the method's field into one for the caller's field."""
        return difference_above(value + self.margin, self.offset)

    def below(self, value: float) -> float:
        """Convert a lower bound on log Z of the method's field into one for the caller's field."""
        return difference_below(value - self.margin, self.offset)

    def outwards(self, value: float) -> float:
        """Convert a value of the history into a bound on log Z of the caller's field."""
        return self.below(value) if self.from_below else self.above(value)

    def progress(self, n_iter: int, standing: Standing, seconds: float) -> MarginalsProgress:
        """Return the record for the callback, with bounds rounded as in the result."""
        value = self.outwards(standing.value)
        bound = difference_below(value, standing.gap) if standing.gap < inf else -inf
        return MarginalsProgress(n_iter, value, bound, standing.relative_gap, seconds)

    def run(self, search: MarginalsSearch) -> MarginalsSolution:
        """Drive a search to its end, and return its solution."""
        control = Control(self.tol, search.limit, self.callback, self.deadline, began=self.began)
        ending = drive(search, control)
        return replace(
            search.solution(),
            n_iter=search.earlier + ending.n_iter,
            converged=ending.converged,
            cut_short=ending.cut_short,
        )


@dataclass(frozen=True, eq=False)
class MarginalsSolution:
    """The answer of a method, with bounds on log Z in nats."""

    probabilities: FloatArray
    upper: float
    gap: float
    relative_gap: float
    history: list[float]
    state: FloatArray | None = None
    lower: float = -inf
    strengths: FloatArray | None = None
    """The information of the edges (``pairs_of``), by which lower bounds choose their trees."""
    n_iter: int = 1
    converged: bool = True
    cut_short: bool = False
    """Whether a callback, Ctrl-C or the time limit ended the search early."""


class Standing(NamedTuple):
    """The state of a search, in nats."""

    value: float
    gap: float = inf
    relative_gap: float = inf


class MarginalsSearch(Search[MarginalsProgress]):
    """A method for marginals, which ``MarginalsOptions.run`` drives."""

    most = 10_000
    """The default of ``max_iter``."""
    has_answer = True
    earlier = 0
    """The number of passes before the search."""

    def __init__(self, options: MarginalsOptions) -> None:
        self.options = options
        self.limit: float = self.most if options.max_iter is None else options.max_iter

    @abstractmethod
    def standing(self) -> Standing:
        """Return the bound of the last step, and its gap if that is known."""

    @abstractmethod
    def solution(self) -> MarginalsSolution:
        """Return the answer. The driver knows the number of passes and how the search ended."""

    def progress(self, n_iter: int, seconds: float) -> MarginalsProgress:
        return self.options.progress(self.earlier + n_iter, self.standing(), seconds)


class ExactSum(MarginalsSearch):
    """A method that computes log Z in one step, without a search."""

    has_answer = False

    def __init__(
        self,
        options: MarginalsOptions,
        compute: Callable[[], tuple[FloatArray, float, float]],
    ) -> None:
        """``compute`` returns the marginals, log Z, and a bound on its rounding error."""
        super().__init__(options)
        self._compute, self.limit = compute, 1

    def step(self) -> bool:
        probabilities, log_z, slack = self._compute()
        upper = log_z + slack
        self._found = MarginalsSolution(
            probabilities=probabilities,
            upper=upper,
            lower=log_z - slack,
            gap=0.0,
            relative_gap=0.0,
            history=[upper],
        )
        self.relative_gap = 0.0
        return True

    def standing(self) -> Standing:
        return Standing(self._found.upper, 0.0, 0.0)

    def solution(self) -> MarginalsSolution:
        return self._found


class MeasurableBound(Protocol):
    """A bound that is lowered by passes, and whose gap costs a pass or two to measure."""

    relative_gap: float

    def measure(self) -> None:
        """Measure the gap of the current bound."""


class MeasuredSearch(MarginalsSearch):
    """Passes over a bound whose gap is measured when it is expected to be small enough.

    The search ends if the gap has not decreased by a tenth in the last third of the passes, and in
    a hundred passes, because only rounding errors remain.
    """

    descent: MeasurableBound
    ending = "rounding hides what is left"

    def __init__(self, options: MarginalsOptions, tol: float | None = None) -> None:
        super().__init__(options)
        self.tol = options.tol if tol is None else tol
        self.n_passes = 0

    def begin(self, first: int) -> None:
        """Plan the first measurement of the gap, after pass ``first``."""
        relative_gap = self.descent.relative_gap
        self._schedule = Schedule(self.tol, relative_gap)
        self._schedule.next = first
        self._lowest, self._at = relative_gap, 0
        self._measured_at = 0 if relative_gap < inf else -1

    @abstractmethod
    def advance(self, due: int) -> bool:
        """Make a pass. Return whether to measure, which is due after that many passes."""

    def step(self) -> bool:
        self.n_passes += 1
        if not self.advance(self._schedule.next):
            return False
        self._measure()
        relative_gap = self.descent.relative_gap
        self._schedule.measured(self.n_passes, relative_gap)
        if relative_gap <= 0.9 * self._lowest:
            self._lowest, self._at = relative_gap, self.n_passes
            return False
        return self.n_passes >= 1.5 * self._at + 100

    def has_converged(self, tol: float) -> bool:
        return self.descent.relative_gap <= self.tol

    def finish(self) -> None:
        if self.n_passes >= self.limit and self.descent.relative_gap == inf:
            self._measure()

    def reassess(self) -> None:
        if self._measured_at != self.n_passes:
            self._measure()

    def _measure(self) -> None:
        self.descent.measure()
        self._measured_at = self.n_passes


class Schedule:
    """A plan of the passes after which the gap is measured, at the cost of a pass.

    Far from the minimum the gap decreases as a power of the number of passes (about the second),
    near it by a factor per pass. The last decrease predicts a number of passes by each of the two
    laws. The next measurement is halfway between them, but after at most ten more passes and at
    most twice the passes so far.
    """

    def __init__(self, tol: float, relative_gap: float) -> None:
        self._tol = tol
        self._last, self._measured = 0, relative_gap
        self.next = 1

    def measured(self, passes: int, relative_gap: float) -> None:
        """Plan the next measurement, from the gap after a number of passes."""
        ahead = self._ahead(passes, relative_gap)
        self._last, self._measured = passes, relative_gap
        self.next = passes + int(max(1, min(10, 2 * passes, ahead)))

    def _ahead(self, passes: int, relative_gap: float) -> float:
        """Return the predicted number of passes until the gap reaches ``tol``."""
        if not 0.0 < self._tol < relative_gap < self._measured or self._last == 0:
            return passes if self._tol == 0.0 else min(passes, 3)
        togo, fall = log(relative_gap / self._tol), log(self._measured / relative_gap)
        by_factor = togo * (passes - self._last) / fall
        by_power = passes * (exp(min(togo * log(passes / self._last) / fall, 10.0)) - 1.0)
        return (by_factor + by_power) / 2


def allowed(q: FloatArray, field: Field) -> FloatArray:
    """Return q without the labels that the field forbids, rows summing to 1."""
    q = np.where(np.isfinite(field.unary), q, 0.0)
    total = q.sum(axis=1, keepdims=True)
    q = np.where(total > 0, q, np.isfinite(field.unary))
    q /= q.sum(axis=1, keepdims=True)
    return q
