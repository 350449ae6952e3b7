"""Weights of the samples, as the estimators take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_numbers


def as_sample_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """(n,) weights, not negative, the largest in [1/2, 1) unless all are 0; ones for None.

    They are divided by a power of two, which rounds nothing: neither sums nor products overflow
    then, whatever their unit.
    """
    if sample_weight is None:
        return np.ones(n)
    weights = as_numbers(
        sample_weight, "sample_weight", shape=(n,), nonnegative=True, largest=np.inf
    )
    _, exponent = np.frexp(weights.max(initial=0.0))
    scaled: FloatArray = np.ldexp(weights, -exponent)
    return scaled
