"""Weights of the samples, as the estimators take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_numbers


def as_sample_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """(n,) finite weights, not negative; a number is that of every sample, None is 1."""
    if sample_weight is None:
        return np.ones(n)
    weights = as_numbers(
        sample_weight, "sample_weight", shape=None, nonnegative=True, largest=np.inf
    )
    if weights.ndim == 0:
        return np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    return weights


def require_some(weights: FloatArray) -> None:
    """Raise unless some sample counts."""
    if not weights.any():
        raise ValueError("sample_weight must not be zero for every sample, got only zeros")


def without_unit(weights: FloatArray) -> FloatArray:
    """The weights divided by a power of two: the largest in [1/2, 1), unless all are 0.

    That rounds nothing, and neither sums nor products overflow then, whatever their unit.
    """
    _, exponent = np.frexp(weights.max(initial=0.0))
    scaled: FloatArray = np.ldexp(weights, -exponent)
    return scaled
