"""What a dual with a block for each set keeps, and stages of passes that are held back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Dual
from setwise.learning._dual_blocks._acceleration import Acceleration
from setwise.learning._dual_blocks._features import Features

# The passes see gaps that later steps of the same pass have changed.
ENOUGH = 0.8
# The most passes of a stage, and of the first, which has nothing to be measured by.
_STAGE, _FIRST = 50, 3
# Where the weights are nearly known, stages are short while all passes together are few.
_FEW = 80


class Blocks(ABC):
    """Dual variables, the weights W that they make, and what they add to the dual beside |W|^2.

    Attributes
    ----------
    W : array of shape (p, D)
    total : float
        The dual is total - 1/2 |W|^2.
    inner : array of shape (p, D)
        Where the steps have led, W or near it.
    passes : int
        Made so far.
    stuck : bool
        Whether more of them would change nothing.
    begin_warm : int
        The passes of the first round of a fit that starts from another.
    """

    name: ClassVar[str]
    begin_warm: ClassVar[int] = 16
    features: Features
    W: FloatArray
    total: float
    inner: FloatArray
    passes: int = 0
    stuck: bool = False

    @abstractmethod
    def renew(self) -> None:
        """W and total, summed anew: rounding of many small steps does not build up."""

    @abstractmethod
    def improve(self, passes: int, tol: float, room: float) -> None:
        """So many passes, or fewer if they are enough, and then W of the new dual."""

    @abstractmethod
    def excess(self) -> float:
        """By which factor the dual must shrink to be where it belongs: 1 but for rounding."""

    @abstractmethod
    def dual(self, C: float) -> Dual:
        """A start for any other C."""

    def candidates(self) -> tuple[FloatArray, ...]:
        """Weights whose objective may be the best so far."""
        return (self.inner,) if self.inner is self.W else (self.inner, self.W)


class PulledBlocks(Blocks):
    """Passes over all sets at once, in stages that are pulled back where the price is high."""

    _acceleration: Acceleration
    _short: int = 2
    _trust = 1.0

    @abstractmethod
    def _stage(self, most: int, target: float) -> None:
        """So many passes, or fewer if the gap to the weights they lead to is within the target."""

    @abstractmethod
    def _gap_met(self) -> float:
        """From the dual of the last stage to its weights, as the last pass met the sets."""

    def candidates(self) -> tuple[FloatArray, ...]:
        """Where the stages have led: W of a dual that is held back is far behind."""
        return (self.inner,) if self._acceleration.pull else super().candidates()

    def improve(self, passes: int, tol: float, room: float) -> None:
        """Stages of passes, each with its pull."""
        end = self.passes + passes
        pulled = self._acceleration
        while self.passes < end:
            most, target = end - self.passes, ENOUGH * tol * room
            near = pulled.pull > 0.0 and pulled.near and self.passes < _FEW
            if pulled.pull:
                target = pulled.accuracy
                most = min(most, _STAGE if target else _FIRST)
                if near:
                    most, target = min(most, self._short), self._unmeasured()
            self._stage(most, target)
            if near:
                self._renew_near()
            else:
                self.renew()
            self.inner = pulled.end(self.W)
            if not pulled.pull:
                break
            # The objective of w less the dual of W is this much, or a tenth less: the sets were met
            # before the last steps. It is more if many of them were left out.
            apart = self.W - self.inner
            gap = self._gap_met() + 0.5 * float(np.vdot(apart, apart))
            if near:
                gap = self._mixed(gap)
            if gap <= self._trust * tol * min(room, self._room()):
                self._trust /= 2  # if it was not enough
                break
        self._end_stages()

    def _renew_near(self) -> None:
        """W and total, after a short stage; what rounding adds is gone at the end of all stages."""
        self.renew()

    def _unmeasured(self) -> float:
        """The target of a stage that ends by its number of passes."""
        return 0.0

    def _mixed(self, gap: float) -> float:
        """The gap to a mixture of the duals of all stages, from that to the last."""
        return gap

    def _room(self) -> float:
        """What the gap may be measured against by now, if less than at the beginning."""
        return np.inf

    def _end_stages(self) -> None:
        """The dual is the mixture, where that is better."""
