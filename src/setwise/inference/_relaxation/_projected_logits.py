"""Passes of projected logits over a relaxation, with momentum that cannot diverge."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, gap_over_value
from setwise.inference._relaxation._block_groups import rounding_of_blocks
from setwise.inference._relaxation._relaxation import Relaxation

# Groups with less than this multiple of an even share of the gap take turns. With 1 instead, a
# field of ten labels and two layers of regions needs 61 sweeps instead of 16
# (benchmarks/problems/marginals.py).
_LIGHT = 0.5


class Descent:
    r"""The minimisation of a relaxation, with its blocks and their bounds.

    With momentum a pass starts at :math:`y = s_k + \beta_k (s_k - s_{k-1})` with Nesterov's
    :math:`\beta_k = (\theta_k - 1) / \theta_{k+1}`; y may lie outside the base polytope, its
    projections do not. Convergence is not proved for cyclic passes, so a pass that raises the
    objective is undone, and the next pass has no momentum, so that it cannot raise the objective.

    A pass is as expensive for a group that has almost converged as for any other. When the gap is
    measured, groups with a small part of it are selected. Until the next measurement each pass
    sweeps only one of them, without momentum, before the other groups are extrapolated.

    The kernel receives unaries whose least entry in each row is 0: a constant for all labels of a
    variable would cost digits and changes nothing.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        temperature: float,
        n_threads: int,
        blocks: FloatArray | None = None,
        *,
        dtype: str = "float64",
        unit: float = 1.0,
    ) -> None:
        """``dtype`` is the blocks' type, ``unit`` the least denominator of the relative gap."""
        self._relaxation = relaxation
        self._dtype = np.dtype(dtype)
        self._unit = unit
        # on a few thousand entries a thread costs more than it saves
        small = relaxation.unary.size * (1 + len(relaxation.groups)) < 20_000
        self._threads = 1 if small else n_threads
        self._offsets: FloatArray = relaxation.unary.min(axis=1)
        self._least = float(self._offsets.sum())
        kind = _core.RelaxationState32 if self._dtype == np.float32 else _core.RelaxationState
        self._state: Any = relaxation.fill(kind, self._unary(temperature), self._threads)
        self._p: FloatArray = np.empty(relaxation.unary.shape, self._dtype)
        if blocks is not None:
            self._state.set_blocks(np.ascontiguousarray(blocks, self._dtype), self._threads)
        self.temperature = temperature
        self.n_iter = 0
        self.best_bound = -inf
        self.set_temperature(temperature)

    @property
    def is_integral(self) -> bool:
        """Whether the bound of the relaxation equals the least energy."""
        return self._relaxation.is_integral

    def set_blocks(self, blocks: FloatArray) -> None:
        """Continue from other blocks, at the same temperature."""
        self._state.set_blocks(np.ascontiguousarray(blocks, self._dtype), self._threads)
        self.set_temperature(self.temperature)

    def set_temperature(self, temperature: float) -> None:
        """Continue from the same blocks at another temperature, with no momentum."""
        changes = not np.isfinite(self._relaxation.unary).all()
        self.temperature = temperature
        if changes:
            self._state.set_unary(self._unary(temperature), self._threads)
        self._theta = 1.0
        self._restarted = True
        self.gap = self.relative_gap = inf
        self._evaluate()
        self.history = [self.objective]

    def _unary(self, temperature: float) -> FloatArray:
        unary: FloatArray = self._relaxation.finite_unary(temperature) - self._offsets[:, None]
        return unary

    @property
    def objective(self) -> float:
        """The smoothed objective at the current blocks, without the energy's constant."""
        return self._height - self._least

    def _evaluate(self) -> None:
        self._height: float
        self._height, bound = self._state.evaluate(self.temperature, self._threads)
        self.bound = bound + self._least + self._relaxation.constant
        self.best_bound = max(self.best_bound, self.bound)

    def sweep(self, momentum: bool = True) -> None:
        """Make one pass. With momentum, undo a pass that raises the objective."""
        theta = (1.0 + sqrt(1.0 + 4.0 * self._theta**2)) / 2.0
        beta = (self._theta - 1.0) / theta if momentum else 0.0
        before = self._height
        self._state.sweep(self.temperature, beta, self._threads)
        self.n_iter += 1
        self._evaluate()
        if beta > 0.0 and self._height > before:
            self._state.revert(self._threads)
            self._theta = 1.0
            self._evaluate()
            return
        self._theta = theta
        self.history.append(self.objective)

    def measure(self) -> None:
        """Measure the gap f(p) - <s, p> at p = softmax(-s / t), f the Lovász extension of F."""
        self._state.probabilities(self.temperature, self._p, self._threads)
        gaps = np.empty(len(self._relaxation.groups))
        self._state.gaps(self._p, gaps, self._threads)
        self.gap = max(0.0, float(gaps.sum()))
        self.relative_gap = gap_over_value(self.gap, self._height, self._unit)
        if self.n_iter > 0 and self.gap > 0:
            light = gaps < _LIGHT * self.gap / len(gaps)
            self._state.set_light(light.astype(np.uint8), self._threads)

    def look_again(self) -> None:
        """Recompute the objective, the history and the gap, which may be outdated after Ctrl-C."""
        self._evaluate()
        if self.objective != self.history[-1]:
            self.history.append(self.objective)
        self.measure()

    def slack(self, cooler: float = 1.0) -> tuple[float, float]:
        """Return f(p) - <s, p> and <s, p> - sum_i min_j s_ij, at p = softmax(-s / (cooler t)).

        No s has a bound above the current one plus the sum of the two.
        """
        self._state.probabilities(cooler * self.temperature, self._p, self._threads)
        undone = max(self._state.gap(self._p, self._threads), 0.0)
        scores = self.scores()
        scores -= scores.min(axis=1, keepdims=True)
        return undone, float(np.vdot(self._p, scores))

    def finish(self) -> None:
        """Release the memory that only further passes need."""
        self._state.finish()

    def scores(self) -> FloatArray:
        """Return s of shape (N, L), with infinite unaries replaced by finite ones."""
        scores: FloatArray = np.empty(self._p.shape)
        self._state.scores(scores)
        scores += self._offsets[:, None]
        return scores

    def rounding(self, blocks: FloatArray | None = None) -> float:
        """Return a bound on the rounding error of the objective, without that of its sums."""
        if not self._relaxation.groups:
            return 0.0
        scores: FloatArray = np.empty(self._p.shape)
        self._state.scores(scores)
        blocks = self.blocks() if blocks is None else blocks
        lost = rounding_of_blocks(self._relaxation.groups, scores, blocks, self.temperature)
        return lost * float(np.finfo(self._dtype).eps) / EPS

    def magnitude(self) -> float:
        """Return the sum of the absolute values of the terms of the bound."""
        scores: FloatArray = np.empty(self._p.shape)
        self._state.scores(scores)
        return float(np.abs(scores.min(axis=1)).sum()) + abs(self._relaxation.constant)

    def probabilities(self) -> FloatArray:
        """Return p of shape (N, L) at the current blocks."""
        p: FloatArray = np.empty_like(self._p)
        self._state.probabilities(self.temperature, p, self._threads)
        return p

    def blocks(self) -> FloatArray:
        """Return the summands of s, ordered by group."""
        blocks: FloatArray = np.empty(self._state.size(), self._dtype)
        self._state.blocks(blocks)
        return blocks
