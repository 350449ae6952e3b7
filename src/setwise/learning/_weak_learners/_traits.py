"""Readers for the traits of features: which are categorical, and which are monotonic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BoolArray, as_array


def as_categorical(features: Any, n_features: int) -> BoolArray:
    """Return a mask (n_features,) of categorical features, given a mask, indices or None."""
    mask = np.zeros(n_features, np.bool_)
    if features is None:
        return mask
    array = as_array(features, "categorical_features")
    if array.ndim != 1:
        raise ValueError(
            "categorical_features must be a mask or a list of features, (n,), "
            f"got shape {array.shape}"
        )
    if array.dtype.kind == "b":
        if len(array) != n_features:
            raise ValueError(
                f"categorical_features must have a bool for each of {n_features} features, "
                f"got {len(array)}"
            )
        return array.astype(np.bool_)
    if array.size == 0:
        return mask
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"categorical_features must hold bools, or indices of features, got dtype {array.dtype}"
        )
    if array.min() < 0 or array.max() >= n_features:
        wrong = array[(array < 0) | (array >= n_features)][0]
        raise ValueError(
            f"categorical_features must hold indices between 0 and {n_features - 1}, got {wrong}"
        )
    mask[array] = True
    return mask


def as_trends(monotonic_cst: Any, categorical: BoolArray) -> NDArray[np.int8]:
    """Return 1, -1 or 0 per feature, (n_features,), given such numbers or None."""
    n_features = len(categorical)
    if monotonic_cst is None:
        return np.zeros(n_features, np.int8)
    array = as_array(monotonic_cst, "monotonic_cst")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"monotonic_cst must hold 1, 0 and -1, got dtype {array.dtype}")
    if array.shape != (n_features,):
        raise ValueError(
            f"monotonic_cst must have one entry for each of {n_features} features, "
            f"got shape {array.shape}"
        )
    unknown = array[~np.isin(array, (-1, 0, 1))]
    if unknown.size:
        raise ValueError(f"monotonic_cst must hold 1, 0 and -1, got {unknown[0]}")
    both = np.flatnonzero(categorical & (array != 0))
    if both.size:
        raise ValueError(
            f"monotonic_cst must be 0 for categories, which have no order, got {array[both[0]]} "
            f"for feature {both[0]}"
        )
    return array.astype(np.int8)
