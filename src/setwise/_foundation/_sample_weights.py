"""Readers for the weights of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_numbers


def as_sample_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return finite nonnegative weights (n,). A number is for every sample, None means 1."""
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
    """Raise an error unless some weight is positive."""
    if not weights.any():
        raise ValueError("sample_weight must not be zero for every sample, got only zeros")


def without_unit(weights: FloatArray) -> FloatArray:
    """Return the weights divided by a power of two, with the largest in [1/2, 1) unless all are 0.

    This causes no rounding errors, and sums and products then cannot overflow for any unit.
    """
    _, exponent = np.frexp(weights.max(initial=0.0))
    scaled: FloatArray = np.ldexp(weights, -exponent)
    return scaled
