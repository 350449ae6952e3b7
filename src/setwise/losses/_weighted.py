"""Ratios of modular functions: Jaccard and F-beta with a weight for each element."""

from __future__ import annotations

import math

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.functions import Ratio, SetFunction


class RatioOfModular(SetFunction):
    r"""The function F(A) = (a N + Q) / (c M - d N + Q) with sums of weights instead of counts.

    N = w(A and P), Q = w(A - P), M = w(P). With d = 0 (Jaccard) it is submodular, as with counts:
    another element of P gains w_i / (M + Q) and another of the rest
    w_i (M - N) / ((M + Q) (M + Q + w_i)), and neither grows with N or Q. A greedy pass is O(m),
    with steps in closed form.
    """

    ratio: Ratio
    positive: BoolArray
    weights: FloatArray

    def __init__(self, ratio: Ratio, positive: BoolArray, weights: FloatArray) -> None:
        self._set(n=len(weights), ratio=ratio, positive=positive, weights=weights)

    def _values(self, masks: BoolArray) -> FloatArray:
        return weighted_values(self.ratio, self.weights, self.positive[None], masks)

    def _gains(self, order: IntArray) -> FloatArray:
        total = self.weights @ self.positive
        return weighted_gains(self.ratio, total, self.weights[order], self.positive[order])

    @property
    def is_submodular(self) -> bool | None:
        return True if self.ratio.beta is None else None

    @property
    def is_increasing(self) -> bool:
        return True


def without_unit(weights: FloatArray) -> FloatArray:
    """Return the weights times a power of two, so that they are at most 1. Ratios do not change."""
    return np.ldexp(weights, -math.frexp(weights.max(initial=0.0))[1])


def weighted_values(
    ratio: Ratio, weights: FloatArray, positive: BoolArray, mistakes: BoolArray
) -> FloatArray:
    """Return the ratios (n,) of sets of mistakes (n, p) for the truths (n, p)."""
    a, _, d = ratio._constants
    missed, added = (mistakes & positive) @ weights, (mistakes & ~positive) @ weights
    kept = (positive & ~mistakes) @ weights
    with np.errstate(divide="ignore", invalid="ignore"):
        values = (a * missed + added) / (a * (missed + kept) + d * kept + added)
    return np.where(missed + kept == 0, added > 0, values)


def weighted_gains(
    ratio: Ratio, total: FloatArray | float, steps: FloatArray, hits: BoolArray
) -> FloatArray:
    """Return the gains along chains, which run along the last axis.

    ``steps`` are the weights of the elements, ``hits`` says which of them are positive, and
    ``total`` is the weight of all positives of the set.
    """
    a, c, d = ratio._constants
    missed, added = _sums_before(steps * hits), _sums_before(steps * ~hits)
    kept = np.maximum(total - missed, 0.0)
    above, below = a * missed + added, a * total + d * kept + added
    with np.errstate(divide="ignore", invalid="ignore"):
        negatives = (a * below + d * above) / (below - d * steps)
        gains = steps / below * np.where(hits, negatives, c * kept / (below + steps))
    return np.where(total == 0, (steps > 0) & (added == 0), gains)


def _sums_before(steps: FloatArray) -> FloatArray:
    """Return the sum of all earlier steps for each step, along the last axis."""
    sums = np.zeros_like(steps)
    np.cumsum(steps[..., :-1], axis=-1, out=sums[..., 1:])
    return sums
