"""Regions: one layer of disjoint sets of variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import IntArray, as_array


def as_regions(regions: ArrayLike) -> IntArray:
    """Return regions (N,), renumbered 0..R-1 in the order of their numbers, -1 for none."""
    array = as_array(regions, "regions")
    if array.ndim == 0:
        raise ValueError("regions must have shape (N,) or that of an image, got ()")
    array = array.ravel()
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"regions must hold integers, got dtype {array.dtype}")
    if array.min() < -1:
        raise ValueError(f"regions must hold numbers from 0 on, or -1 for none, got {array.min()}")
    numbers, compact = np.unique(array, return_inverse=True)
    none = int(numbers[0] == -1) if array.dtype.kind == "i" else 0
    return compact.astype(np.int64) - none


def check_regions(regions: IntArray, n_variables: int) -> None:
    """Raise a ``ValueError`` if the regions are of another number of variables."""
    if len(regions) != n_variables:
        raise ValueError(
            f"regions must have an entry for each of the field's {n_variables} variables, "
            f"got {len(regions)}"
        )


def members_of(regions: IntArray) -> tuple[IntArray, IntArray]:
    """Return the variables sorted by region, and where each region begins and ends, (R + 1,)."""
    order = np.argsort(regions, kind="stable")
    sizes = np.bincount(regions[regions >= 0])
    outside = len(regions) - int(sizes.sum())
    return order[outside:], np.concatenate([[0], np.cumsum(sizes)])
