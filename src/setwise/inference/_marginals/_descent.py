"""Upper bounds on log Z, lowered pass by pass: when the gap is measured, and when a search ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import gap_over_value
from setwise._foundation._progress import stops
from setwise.fields._field import Field
from setwise.inference._map._largest_energy import rounding_of_logs
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._relaxation._expected_passes import Schedule


class Descent(ABC):
    """A bound that passes lower, with the largest value of its dual that was seen.

    Every bound on the way holds; the least is kept.
    """

    constant: float
    """What every labelling pays beside, in the unit of the energy."""
    informations: FloatArray
    """(E,): of the ends of a pair about each other, in nats, at the marginals last measured"""
    _least: float
    """The sum of the least unaries over t: bounds are relative to what is above minus this."""
    _logs: FloatArray

    def __init__(self) -> None:
        self.n_iter = 0
        self.history: list[float] = []
        self.value = self._last = inf
        self._dual = -inf
        self.gap = self.relative_gap = inf

    @abstractmethod
    def begin(self) -> None:
        """The bound of the start, and nothing known about it."""

    @abstractmethod
    def sweep(self) -> None:
        """One pass."""

    @abstractmethod
    def measure(self) -> None:
        """The gap between the least bound and the largest value of the dual that were seen."""

    @abstractmethod
    def state(self) -> FloatArray:
        """What a search can go on from, or the gradient is taken at."""

    @abstractmethod
    def _measure_start(self, limit: int) -> int:
        """The gap of the start, where it is asked for; after which pass it is due next."""

    @abstractmethod
    def _pass(self, tol: float, limit: int, due: int) -> bool:
        """A pass, and what is due after it; whether the gap is to be measured."""

    @property
    def _is_settled(self) -> bool:
        """Whether nothing was tried that the next pass has to show the worth of."""
        return True

    def run(
        self, tol: float, max_iter: int | None, callback: Callable[[Descent], bool]
    ) -> tuple[bool, bool]:
        """Passes until the relative gap is at most ``tol``; whether it is, and whether interrupted.

        There is one at least: who watches sees something. The gap costs as much as a pass or two,
        so it is measured where it is expected to matter. Where it has not fallen by a tenth in half
        as many passes as there were before, and in a hundred, rounding has the last word.
        """
        limit = 10_000 if max_iter is None else max_iter
        first = self._measure_start(limit)
        schedule = Schedule(tol, self.relative_gap)
        schedule.next = first
        lowest, at = self.relative_gap, 0
        while self.n_iter < limit and (
            self.relative_gap > tol or not self._is_settled or self.n_iter == 0
        ):
            if self._pass(tol, limit, schedule.next):
                self.measure()
                schedule.measured(self.n_iter, self.relative_gap)
                if self.relative_gap <= 0.9 * lowest:
                    lowest, at = self.relative_gap, self.n_iter
                elif self.n_iter >= 1.5 * at + 100:
                    break
            if stops(callback, self):
                self.measure()
                return self.relative_gap <= tol, True
        if self.relative_gap == inf:
            self.measure()
        return self.relative_gap <= tol, False

    def probabilities(self) -> FloatArray:
        """(N, L): the marginals last measured."""
        p: FloatArray = np.exp(self._logs)
        p /= p.sum(axis=1, keepdims=True)
        return p

    def _forget(self) -> None:
        """Another bound from here on: nothing of the one before says anything about it."""
        self._last, self._dual = inf, -inf
        self.gap = self.relative_gap = inf

    def _saw(self, dual: float) -> None:
        """One more value of the dual."""
        self._dual = max(self._dual, dual)
        self.gap = max(0.0, self.value - self._dual)
        self.relative_gap = self._relative(self.gap)

    def _relative(self, nats: float) -> float:
        """Nats as a part of the bound's size."""
        return gap_over_value(nats, self.value + self._least)

    def _is_above_last(self, value: float) -> bool:
        return value > self._last + 1e-12 * max(1.0, abs(value))


def lowered(descent: Descent, field: Field, options: Options) -> Solution:
    """What a descent ends with, its bound in the unit of log Z and allowing for rounding."""
    descent.begin()
    t = options.temperature
    constant = descent.constant / t - rounding_of_logs(field, t)

    def report(now: Descent) -> bool:
        return options.report(now.n_iter, now.value - constant, now.relative_gap, now.gap)

    try:
        converged, interrupted = descent.run(options.tol, options.max_iter, report)
    except KeyboardInterrupt:
        descent.measure()
        converged, interrupted = descent.relative_gap <= options.tol, True
    history = [value - constant for value in descent.history]
    return Solution(
        probabilities=descent.probabilities(),
        upper=history[-1],
        gap=descent.gap,
        relative_gap=descent.relative_gap,
        n_iter=descent.n_iter,
        converged=converged,
        interrupted=interrupted,
        history=history,
        state=descent.state(),
        strengths=descent.informations,
    )
