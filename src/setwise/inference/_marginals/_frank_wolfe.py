"""The least upper bound on log Z by the Frank-Wolfe method, which needs only greedy vertices."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, gap_over_value
from setwise.fields._field import Field
from setwise.inference._conditioning._magnitude import rounding_of_logs
from setwise.inference._marginals._search import (
    MarginalsOptions,
    MarginalsSearch,
    MarginalsSolution,
    Standing,
)
from setwise.inference._relaxation._relaxation import Relaxation


def frank_wolfe(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    r"""Run Algorithm 1: :math:`s \leftarrow s + \gamma_k (x - s)` with x the greedy vertex at p.

    .. math:: x = \arg\max_{x \in B(F)} \langle p, x \rangle, \qquad \gamma_k = 2 / (k + 2),
       \quad k = 0, 1, \dots

    The gap is :math:`\langle s - x, \nabla g(s) \rangle = \langle x - s, p \rangle`, which the
    paper prints with the opposite sign. It decreases as O(1 / (t k)) (Claim 3). The probabilities
    of a start determine the first vertex. Memory is 5 arrays of N L numbers, plus that of the
    groups.
    """
    return options.run(_FrankWolfe(field, options))


class _FrankWolfe(MarginalsSearch):
    """A point s in the base polytope, and the greedy vertex that s moves towards."""

    def __init__(self, field: Field, options: MarginalsOptions) -> None:
        super().__init__(options)
        self._relaxation = relaxation = Relaxation(field)
        self._t, self._threads = options.temperature, options.n_threads
        unary = relaxation.finite_unary(self._t)
        self._kernel = relaxation.fill(_core.FrankWolfeState, unary)
        shape = relaxation.unary.shape
        self._p: FloatArray = np.empty(shape)
        self._s: FloatArray = np.empty(shape)
        self._vertex: FloatArray = np.empty(shape)
        self._least = float(relaxation.unary.min(axis=1).sum())
        self._rounding = rounding_of_logs(field, self._t)
        self._n_steps = self._n_looks = 0
        self._gap, self._lost = inf, 0.0
        self._history: list[float] = []
        if options.start is not None:
            self._kernel.vertex(options.start, self._vertex, self._threads)
            self._kernel.set_scores(self._vertex)
        self._look()
        if self.relative_gap <= options.tol:
            self.limit = 0

    def step(self) -> bool:
        """Move to the vertex."""
        self._is_moving = True
        length = 2.0 / (self._n_steps + 2.0)
        self._kernel.shift(self._vertex - self._s, length, self._threads)
        self._n_steps += 1
        self._look()
        return False

    def reassess(self) -> None:
        if self._is_moving:
            self._look()

    def _look(self) -> None:
        """Compute p, the vertex x that maximises <p, x>, and the gap <s - x, grad> = <x - s, p>."""
        t, threads = self._t, self._threads
        objective, _ = self._kernel.evaluate(t, threads)
        self._n_looks += 1
        self._kernel.probabilities(t, self._p, threads)
        self._kernel.vertex(self._p, self._vertex, threads)
        self._kernel.scores(self._s)
        # the rounding errors of all steps accumulate
        sizes = np.maximum(np.abs(self._s), np.abs(self._vertex)).max(axis=1)
        self._lost = (FEW_ROUNDINGS + 4.0 * self._n_looks) * EPS * float(sizes.sum()) / t
        bound = (objective - self._relaxation.constant) / t
        self._history.append(bound + self._rounding + self._lost)
        slope = float(self._kernel.slope(self._vertex - self._s, 0.0, t, threads))
        self._gap = max(0.0, -slope)
        self.relative_gap = gap_over_value(self._gap, objective + self._least, t)
        self._is_moving = False

    def standing(self) -> Standing:
        return Standing(self._history[-1], self._gap / self._t + self._lost, self.relative_gap)

    def solution(self) -> MarginalsSolution:
        return MarginalsSolution(
            probabilities=self._p,
            upper=self._history[-1],
            gap=self._gap / self._t + self._lost,
            relative_gap=self.relative_gap,
            history=self._history,
        )
