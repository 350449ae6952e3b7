"""Jaccard and F-beta with elements that count more than once, or less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise.functions import Ratio, SetFunction
from setwise.losses._base import Loss

if TYPE_CHECKING:
    from setwise.losses._ratio import OfRatio


class RatioOfModular(SetFunction):
    r"""F(A) = (a N + Q) / (c M - d N + Q) with weights in the place of counts.

    N = w(A and P), Q = w(A - P), M = w(P). With d = 0 (Jaccard) it is submodular, as with counts.
    A greedy pass is O(m), with steps in closed form.
    """

    ratio: Ratio
    positive: BoolArray
    weights: FloatArray

    def __init__(self, ratio: Ratio, positive: BoolArray, weights: FloatArray) -> None:
        self._set(n=len(weights), ratio=ratio, positive=positive, weights=weights)

    @property
    def _total(self) -> float:
        return float(self.weights[self.positive].sum())

    def _values(self, masks: BoolArray) -> FloatArray:
        a, _, d = self.ratio._constants
        positive = self.weights * self.positive
        missed, kept = masks @ positive, ~masks @ positive
        added = masks @ (self.weights * ~self.positive)
        if self._total == 0:
            return np.where(added > 0, 1.0, 0.0)
        values: FloatArray = (a * missed + added) / (a * (missed + kept) + d * kept + added)
        return values

    def _gains(self, order: IntArray) -> FloatArray:
        a, c, d = self.ratio._constants
        step, hit = self.weights[order], self.positive[order]
        missed = np.cumsum(step * hit) - step * hit
        added = np.cumsum(step * ~hit) - step * ~hit
        if self._total == 0:
            return np.where((step > 0) & (added == 0), 1.0, 0.0)
        below = c * self._total - d * missed + added
        above = a * missed + added
        gains: FloatArray = np.where(
            hit,
            step * (a * below + d * above) / (below * (below - d * step)),
            step * (below - above) / (below * (below + step)),
        )
        return gains

    @property
    def is_submodular(self) -> bool | None:
        return True if self.ratio.beta is None else None

    @property
    def is_increasing(self) -> bool:
        return True


class WeightedRatio(Loss):
    """A ratio loss of one set whose element i counts weights[i] times.

    A weight of 2 is a repeated element, a weight of 0 a removed one.
    """

    loss: OfRatio
    weights: FloatArray

    def __init__(self, loss: OfRatio, weights: ArrayLike) -> None:
        self._set(loss=loss, weights=as_numbers(weights, "weights", nonnegative=True))

    def _set_function(self, positive: BoolArray) -> RatioOfModular:
        if len(positive) != len(self.weights):
            raise ValueError(
                f"y must have {len(self.weights)} elements, one for each weight of the loss, "
                f"got {len(positive)}"
            )
        return RatioOfModular(self.loss._ratio(1), positive, self.weights)

    @property
    def is_submodular(self) -> bool | None:
        return self.loss.is_submodular

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"{self.loss!r} with {len(self.weights)} weights"
