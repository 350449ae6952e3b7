"""The state of a dual with a block per set, and stages of passes with a proximal term."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Dual
from setwise.learning._dual_blocks._acceleration import Acceleration
from setwise.learning._dual_blocks._features import BlockFeatures

# The target of passes as a share of the allowed gap. It is below 1 because the gap that a pass
# measures set by set changes with the later steps of the same pass.
ENOUGH = 0.8
# The most passes of a stage, and of the first stage, which has no target for its gap. These numbers
# were chosen by the trials of _learn_linear.py.
_STAGE, _FIRST = 50, 3
# If the weights are nearly known, stages are short during the first _FEW passes.
_FEW = 80


class Blocks(ABC):
    """Dual variables, their weights W, and the linear part of the dual objective.

    Attributes
    ----------
    W : array of shape (p, D)
    total : float
        The linear part of the dual, which is total - 1/2 |W|^2.
    inner : array of shape (p, D)
        The primal weights to which the steps lead, which are W or near W.
    passes : int
        The number of passes so far.
    stuck : bool
        Whether further passes would change nothing.
    begin_warm : int
        The number of passes in the first round of a fit with a warm start.
    """

    name: ClassVar[str]
    begin_warm: ClassVar[int] = 16
    features: BlockFeatures
    W: FloatArray
    total: float
    inner: FloatArray
    passes: int = 0
    stuck: bool = False

    @abstractmethod
    def renew(self) -> None:
        """Recompute W and total, so that rounding errors of many small steps do not accumulate."""

    @abstractmethod
    def improve(self, passes: int, tol: float, gap_scale: float) -> None:
        """Make at most ``passes`` passes, until the gap is small enough, and recompute W."""

    @abstractmethod
    def excess(self) -> float:
        """Return the factor by which the dual must shrink to be feasible: 1 up to rounding."""

    @abstractmethod
    def dual(self, C: float) -> Dual:
        """Return the dual as a warm start for any other C."""

    def candidates(self) -> tuple[FloatArray, ...]:
        """Return weights whose objective may be the best so far."""
        return (self.inner,) if self.inner is self.W else (self.inner, self.W)


class PulledBlocks(Blocks):
    """Passes over all sets, in stages with a proximal term if C is large."""

    _acceleration: Acceleration
    _short: int = 2
    _trust = 1.0

    @abstractmethod
    def _stage(self, most: int, target: float) -> None:
        """Make at most ``most`` passes, until the gap to their weights is within the target."""

    @abstractmethod
    def _gap_met(self) -> float:
        """Return the gap between the weights and the dual that the last pass measured."""

    def candidates(self) -> tuple[FloatArray, ...]:
        """Return the weights of the stages, because with a pull W itself is much worse."""
        return (self.inner,) if self._acceleration.pull else super().candidates()

    def improve(self, passes: int, tol: float, gap_scale: float) -> None:
        """Make stages of passes, each with its proximal term."""
        end = self.passes + passes
        pulled = self._acceleration
        while self.passes < end:
            most, target = end - self.passes, ENOUGH * tol * gap_scale
            near = pulled.pull > 0.0 and pulled.near and self.passes < _FEW
            if pulled.pull:
                target = pulled.accuracy
                most = min(most, _STAGE if target else _FIRST)
                if near:
                    # This stage ends by its number of passes.
                    most, target = min(most, self._short), 0.0
            self._stage(most, target)
            if near:
                self._renew_near()
            else:
                self.renew()
            self.inner = pulled.end(self.W)
            if not pulled.pull:
                break
            # An estimate of the objective of the weights minus the dual of W. A pass measures sets
            # before its last steps. So the true gap may be a tenth smaller, or larger if sets were
            # skipped.
            apart = self.W - self.inner
            gap = self._gap_met() + 0.5 * float(np.vdot(apart, apart))
            if near:
                gap = self._mixed(gap)
            if gap <= self._trust * tol * min(gap_scale, self._gap_scale()):
                self._trust /= 2  # the estimate may have been too small
                break
        self._end_stages()

    def _renew_near(self) -> None:
        """Update W and total after a short stage; their rounding errors are removed at the end."""
        self.renew()

    def _mixed(self, gap: float) -> float:
        """Return the gap to the best mixture of the stages' duals, given that to the last dual."""
        return gap

    def _gap_scale(self) -> float:
        """Return the present scale of the relative gap, which may have become smaller."""
        return np.inf

    def _end_stages(self) -> None:
        """Replace the dual by the mixture if that is better."""
