"""The minimisation of upper bounds on log Z, with a dual that certifies them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import gap_over_value
from setwise.fields._field import Field
from setwise.inference._conditioning._magnitude import rounding_of_logs
from setwise.inference._marginals._search import (
    MarginalsOptions,
    MarginalsSolution,
    MeasuredSearch,
    Standing,
)


class BoundDescent(ABC):
    """An upper bound that is lowered by passes, with the largest value of its dual so far.

    All intermediate bounds are valid; the least is kept.
    """

    constant: float
    """The constant of the energy, in its unit."""
    informations: FloatArray
    """(E,): the mutual information of each pair, in nats, at the last measured marginals"""
    _least: float
    """The sum of the least unaries over t, which the size of a bound does not include."""
    _logs: FloatArray

    def __init__(self) -> None:
        self.n_iter = 0
        self.history: list[float] = []
        self.value = self._last = inf
        self._dual = -inf
        self.gap = self.relative_gap = inf

    @abstractmethod
    def begin(self) -> None:
        """Compute the bound of the start, and forget earlier bounds and duals."""

    @abstractmethod
    def sweep(self) -> None:
        """Make one pass."""

    @abstractmethod
    def measure(self) -> None:
        """Measure the gap between the least bound and the largest value of the dual so far."""

    @abstractmethod
    def state(self) -> FloatArray:
        """Return the state for a warm start, at which the gradient is computed too."""

    @abstractmethod
    def measure_start(self, limit: float) -> int:
        """Measure the gap of the start if needed. Return the pass of the next measurement."""

    @abstractmethod
    def advance(self, tol: float, limit: float, due: int) -> bool:
        """Make a pass and the steps after it. Return whether to measure the gap."""

    @property
    def is_settled(self) -> bool:
        """Whether no change has to be confirmed by the next pass."""
        return True

    def probabilities(self) -> FloatArray:
        """Return the last measured marginals, of shape (N, L)."""
        p: FloatArray = np.exp(self._logs)
        p /= p.sum(axis=1, keepdims=True)
        return p

    def _forget(self) -> None:
        """Forget the gap and the dual, because the bound has changed."""
        self._last, self._dual = inf, -inf
        self.gap = self.relative_gap = inf

    def _keep_dual(self, dual: float) -> None:
        """Store a value of the dual if it is the largest so far."""
        self._dual = max(self._dual, dual)
        self.gap = max(0.0, self.value - self._dual)
        self.relative_gap = self._relative(self.gap)

    def _relative(self, nats: float) -> float:
        """Return nats relative to the size of the bound."""
        return gap_over_value(nats, self.value + self._least)

    def _is_above_last(self, value: float) -> bool:
        return value > self._last + 1e-12 * max(1.0, abs(value))


def lowered(descent: BoundDescent, field: Field, options: MarginalsOptions) -> MarginalsSolution:
    """Lower a bound until its gap is small. Return it in nats, rounded up."""
    return options.run(_Lowering(descent, field, options))


class _Lowering(MeasuredSearch):
    descent: BoundDescent

    def __init__(self, descent: BoundDescent, field: Field, options: MarginalsOptions) -> None:
        super().__init__(options)
        self.descent = descent
        descent.begin()
        t = options.temperature
        self._constant = descent.constant / t - rounding_of_logs(field, t)
        self._is_over = False
        self.begin(descent.measure_start(self.limit))

    def advance(self, due: int) -> bool:
        return self.descent.advance(self.tol, self.limit, due)

    def has_converged(self, tol: float) -> bool:
        return super().has_converged(tol) and (self._is_over or self.descent.is_settled)

    def finish(self) -> None:
        self._is_over = True
        super().finish()

    def reassess(self) -> None:
        self._is_over = True
        super().reassess()

    def standing(self) -> Standing:
        descent = self.descent
        return Standing(descent.value - self._constant, descent.gap, descent.relative_gap)

    def solution(self) -> MarginalsSolution:
        descent = self.descent
        history = [value - self._constant for value in descent.history]
        return MarginalsSolution(
            probabilities=descent.probabilities(),
            upper=history[-1],
            gap=descent.gap,
            relative_gap=descent.relative_gap,
            history=history,
            state=descent.state(),
            strengths=descent.informations,
        )
