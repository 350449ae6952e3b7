"""Readers for the arguments of searches: rows of features, and weights of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csc_array, issparse

from setwise._foundation._arguments import (
    LARGEST,
    FloatArray,
    as_array,
    as_count,
    as_float64,
    as_numbers,
)
from setwise.learning._boosting._problem import Column


def check_sign(sign: object) -> None:
    """Raise an error unless ``sign`` is 1 or -1."""
    as_count(sign, "sign", least=-1, most=1)
    if sign == 0:
        raise ValueError("sign must be 1 or -1, got 0")


def check_missing(missing: object) -> None:
    """Raise an error unless ``missing`` is 1, -1 or 0."""
    as_count(missing, "missing", least=-1, most=1)


def respond(learner: Any, X: Any) -> FloatArray:
    """Return the responses of a weak learner on validated rows, without checks if possible."""
    response: FloatArray = getattr(learner, "_respond", learner.predict)(X)
    return response


def as_rows(X: Any, *, least: int = 1, allow_nan: bool = False) -> Any:
    """Return finite features (m, d) as C-ordered float64, without a copy if they have this form.

    A sparse matrix is copied to a CSC array without stored zeros. With ``allow_nan``, NaN stands
    for a missing value.
    """
    if issparse(X):
        if X.dtype.kind not in "fiub":
            raise TypeError(f"X must hold real numbers, got dtype {X.dtype}")
        rows = csc_array(X, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        values = rows.data
    else:
        rows = as_array(X, "X")
        if rows.dtype.kind not in "fiub":
            raise TypeError(f"X must hold real numbers, got dtype {rows.dtype}")
        if rows.dtype != np.float64 or not rows.flags.c_contiguous:
            rows = as_float64(rows)
        values = rows
    if rows.ndim != 2 or min(rows.shape) < least:
        some = ", both at least 1" if least else ""
        raise ValueError(f"X must have shape (m, d){some}, got {rows.shape}")
    if allow_nan and np.isinf(values).any():
        raise ValueError(f"X must be finite or NaN, got {values[np.isinf(values)][0]}")
    if not allow_nan and not np.isfinite(values).all():
        raise ValueError(f"X must be finite, got {values[~np.isfinite(values)][0]}")
    return rows


def feature_of(X: Any, feature: int) -> FloatArray:
    """Return one feature of validated rows, (m,)."""
    values = X[:, [feature]].toarray().ravel() if issparse(X) else X[:, feature]
    return np.ascontiguousarray(values)


def check_width(X: Any, feature: int) -> None:
    """Raise an error unless the rows have the feature of a stump."""
    if X.shape[1] <= feature:
        raise ValueError(
            f"X must have more than {feature} columns, the stump's feature, got {X.shape[1]}"
        )


def as_segments(weights: Any, m: int) -> FloatArray:
    """Return finite weights as (n_segments, m), which must not be modified."""
    array = as_array(weights, "weights")
    if array.size == 0 or array.size % m or (array.ndim == 2 and array.shape[1] != m):
        raise ValueError(
            f"weights must have a multiple of {m} entries, one for each row and segment, "
            f"got shape {array.shape}"
        )
    segments = array.reshape(-1, m)
    if segments.dtype == np.float64 and segments.flags.c_contiguous:
        most = max(float(segments.max()), -float(segments.min()))  # it is NaN if any weight is NaN
        if most <= LARGEST:
            return segments
    return as_numbers(segments, "weights", shape=(None, m))


def best_of_segments(
    segments: FloatArray, n_columns: int, fit: Callable[[int, FloatArray], Column]
) -> list[Column]:
    """Return the columns of largest gain, best first, from one fit per segment.

    The gain of a response in [-1, 1] is at most the sum of abs(weights). Segments are fitted in
    decreasing order of this bound, until the rest cannot be among the best.
    """
    bounds = np.abs(segments).sum(axis=1)
    found: list[tuple[float, Column]] = []
    for segment in np.argsort(-bounds, kind="stable").tolist():
        if len(found) == n_columns and bounds[segment] <= found[-1][0]:
            break
        column = fit(segment, segments[segment])
        found.append((float(segments[segment] @ column.response), column))
        found.sort(key=lambda pair: (-pair[0], pair[1].segment))
        del found[n_columns:]
    return [column for _, column in found]
