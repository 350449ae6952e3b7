"""The two arguments of every search for weak learners: rows of features, weights of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_array, issparse

from setwise.functions._arguments import FloatArray, as_array, as_float64, as_numbers


def as_rows(X: Any) -> Any:
    """Finite features (m, d), m and d at least 1: float64, C-ordered and not copied if they were.

    A sparse matrix comes back as a CSC array of its own, without stored zeros.
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
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"X must have shape (m, d), both at least 1, got {rows.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"X must be finite, got {values[~np.isfinite(values)][0]}")
    return rows


def as_segments(weights: Any, m: int) -> FloatArray:
    """Finite weights as (n_segments, m), from one flat vector or from that shape."""
    array = as_array(weights, "weights")
    if array.size == 0 or array.size % m or (array.ndim == 2 and array.shape[1] != m):
        raise ValueError(
            f"weights must have a multiple of {m} entries, one for each row and segment, "
            f"got shape {array.shape}"
        )
    return as_numbers(array.reshape(-1, m), "weights", shape=(None, m))
