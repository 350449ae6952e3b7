"""Merging of equal examples, so that a weight of 2 and a repeated row give the same problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise._foundation._arguments import FloatArray, IntArray

# The number that replaces a missing value in a projection, for which any finite one is correct.
# Data are unlikely to contain this one, the root of cos x = x, so that few rows share a projection.
_STRANGE = 0.7390851332151607


def distinct_rows(X: Any, y: IntArray, weight: FloatArray) -> tuple[Any, IntArray, FloatArray]:
    """Merge equal rows of positive weight, sum their weights, and sort them in a fixed order.

    If weak learners are equally good, rounding errors decide which one is added. After merging, the
    result depends neither on the order of the rows nor on how they are repeated. Rows are sorted by
    a projection, so that equal rows are neighbours, in O(n d + n log n). Missing values (NaN) count
    as equal.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    y : (n,) integers
    weight : (n,), not negative
    """
    some = np.flatnonzero(weight)
    if len(some) < len(weight):
        X, y, weight = X[some], y[some], weight[some]
    order = np.lexsort((_projection(_filled(X, _STRANGE)), y))
    X, y, weight = X[order], y[order], weight[order]
    first = np.ones(len(y), np.bool_)
    # All present values are finite, so infinity can represent missing ones.
    first[1:] = (y[1:] != y[:-1]) | _differ(_filled(X, np.inf))
    starts = np.flatnonzero(first)
    if len(starts) == len(y):
        return X, y, weight
    return X[starts], y[starts], np.add.reduceat(weight, starts)


def _filled(X: Any, value: float) -> Any:
    """Return X with missing values replaced; X itself if none is missing."""
    missing = np.isnan(X.data if issparse(X) else X)
    if not missing.any():
        return X
    X = X.copy()
    (X.data if issparse(X) else X)[missing] = value
    return X


def _projection(X: Any) -> FloatArray:
    """Project each row to a number, with the same rounding errors for equal rows."""
    direction = np.random.default_rng(0).standard_normal(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is the same in equal rows
        if issparse(X):
            product: FloatArray = X @ direction
            return product
        total = np.zeros(X.shape[0])
        for feature, factor in enumerate(direction):
            total += factor * X[:, feature]
    return total


def _differ(X: Any) -> NDArray[np.bool_]:
    """Return whether each row differs from the one before it, (n - 1,)."""
    if issparse(X):
        apart = X[1:] != X[:-1]
        counts: NDArray[np.bool_] = np.diff(apart.tocsr().indptr) > 0
        return counts
    differ: NDArray[np.bool_] = (X[1:] != X[:-1]).any(axis=1)
    return differ
