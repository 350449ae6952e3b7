"""The tables of the search for stumps: the features of one matrix, sorted once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._arguments import FloatArray

# Features with at most this number of values get one sum per value, which fits into the cache of a
# processor. For more values, a pass over the sorted rows is as fast.
FEW_VALUES = 4096
# The most categories, including that of missing values: codes have 16 bits.
MOST_CATEGORIES = 1 << 16
_MARK = np.uint32(1 << 31)  # the bit that marks the last row of a run of equal values
_NONE = np.empty(0, np.uint32)  # the list of no rows


def add_dense(search: _core.StumpSearch, values: FloatArray, trend: int) -> bool:
    """Add a feature with one value per row. Return whether values are missing."""
    order = np.argsort(values, kind="stable").astype(np.uint32)  # NaN comes last
    n_missing = int(np.count_nonzero(np.isnan(values)))
    present, missing = np.split(order, [len(order) - n_missing])
    lasts = _last_of_runs(values[present])
    n_values = int(np.count_nonzero(lasts))
    if n_values > min(FEW_VALUES, len(values) // 2):
        lasts[-1] = False  # above the largest value there is no threshold
        search.add_rows(present | (_MARK * lasts), _NONE, missing, trend)
    else:
        codes = np.full(len(values), n_values, np.uint16)
        codes[present] = np.cumsum(lasts) - lasts
        search.add_codes(_small(codes, n_values + 1), present[lasts].astype(np.int32), trend)
    return n_missing > 0


def add_sparse(search: _core.StumpSearch, X: Any, feature: int, trend: int) -> bool:
    """Add a feature of a CSC array. Return whether values are missing.

    All zeros are handled in one step, between the negative and the positive values.
    """
    entries = slice(X.indptr[feature], X.indptr[feature + 1])
    rows, values = X.indices[entries], X.data[entries]
    order = np.argsort(values, kind="stable")
    rows, values = rows[order].astype(np.uint32), values[order]
    zeros = X.shape[0] - len(rows)
    stored = len(rows) - int(np.count_nonzero(np.isnan(values)))
    missing, rows, values = rows[stored:], rows[:stored], values[:stored]
    below = int(np.searchsorted(values, 0.0)) if zeros else stored
    up = rows[:below] | _MARK * _last_of_runs(values[:below])
    down = rows[below:][::-1] | _MARK * _last_of_runs(values[below:][::-1])
    if not zeros and stored:
        up[-1] &= ~_MARK
    search.add_rows(up, down, missing, trend)
    return len(missing) > 0


def add_categories(search: _core.StumpSearch, values: FloatArray, feature: int) -> FloatArray:
    """Add a categorical feature. Return its sorted categories, with NaN for missing values last."""
    categories, codes = np.unique(values, return_inverse=True)
    if len(categories) > MOST_CATEGORIES:
        raise ValueError(
            f"feature {feature} of X must have at most {MOST_CATEGORIES} categories, "
            f"got {len(categories)}"
        )
    search.add_categories(_small(codes.astype(np.uint16), len(categories)), len(categories))
    return categories


def _small(codes: NDArray[np.uint16], below: int) -> NDArray[np.uint8] | NDArray[np.uint16]:
    return codes.astype(np.uint8) if below <= 256 else codes


def _last_of_runs(values: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the last entries of runs of equal values."""
    lasts = np.ones(len(values), np.bool_)
    lasts[:-1] = values[1:] != values[:-1]
    return lasts
