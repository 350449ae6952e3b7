"""What the methods for marginals are given, and what they hand back to ``marginals``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import perf_counter

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._deadline import Deadline
from setwise._foundation._progress import is_heard, stops
from setwise._foundation._timings import Stopwatch
from setwise.inference._map._ground import difference_above, difference_below
from setwise.inference._marginals._result import MarginalsProgress


@dataclass(frozen=True, eq=False)
class Options:
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
    """Its ``state``, where the method was the same."""
    offset: float = 0.0
    """By how much the method's log Z is above the one that the callback is told of."""
    margin: float = 0.0
    """By how much the offset may be rounded."""
    from_below: bool = False
    """Whether the values on the way are lower bounds, as those of mean field."""
    deadline: Deadline = field(default_factory=Deadline)
    watch: Stopwatch = field(default_factory=Stopwatch)
    began: float = field(default_factory=perf_counter)

    def told(self, value: float) -> float:
        """A value on the way, as one of the log Z in question: rounded outwards."""
        return self.below(value) if self.from_below else self.above(value)

    def above(self, value: float) -> float:
        """An upper bound on the method's log Z, as one on the log Z in question."""
        return difference_above(value + self.margin, self.offset)

    def below(self, value: float) -> float:
        """A lower bound on the method's log Z, as one on the log Z in question."""
        return difference_below(value - self.margin, self.offset)

    def report(
        self, n_iter: int, value: float, relative_gap: float = inf, gap: float = inf
    ) -> bool:
        """Tell the callback; whether it ends the search."""
        _core.poll()
        if not is_heard(self.callback):
            return False
        told = self.told(value)
        bound = difference_below(told, gap) if gap < inf else -inf
        seconds = perf_counter() - self.began
        return stops(self.callback, MarginalsProgress(n_iter, told, bound, relative_gap, seconds))


@dataclass(frozen=True, eq=False)
class Solution:
    """A method's answer; bounds on log Z, so divided by the temperature."""

    probabilities: FloatArray
    upper: float
    gap: float
    relative_gap: float
    n_iter: int
    converged: bool
    interrupted: bool
    history: list[float]
    state: FloatArray | None = None
    lower: float = -inf
    strengths: FloatArray | None = None
    """Of the edges (``pairs_of``): how much its ends say about each other, for trees from below."""

    @classmethod
    def exact(
        cls, probabilities: FloatArray, log_z: float, slack: float, options: Options
    ) -> Solution:
        """log Z itself, but for ``slack`` of its digits on either side."""
        upper = log_z + slack
        return cls(
            probabilities=probabilities,
            upper=upper,
            gap=0.0,
            relative_gap=0.0,
            n_iter=1,
            converged=True,
            interrupted=options.report(1, upper, 0.0, 0.0),
            history=[upper],
            lower=log_z - slack,
        )
