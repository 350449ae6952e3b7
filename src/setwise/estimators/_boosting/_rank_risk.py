"""The risk of a ranking by pairs of rows, and the thresholds between ordered levels."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from setwise import _core
from setwise._foundation._arguments import (
    FloatArray,
    as_array,
    as_numbers,
    as_sample_weights,
    without_unit,
)
from setwise.learning._weak_learners._one_feature import midway


class RankRisk:
    r"""The mean of :math:`(1 - (f_i - f_j))_+` over pairs with :math:`y_i > y_j`, equation (14).

    With two levels it is a convex upper bound of 1 - the area under the ROC curve. The pairs are
    never listed. One sort and two sweeps give each row's total weight of the violated pairs, f_i -
    1 < f_j, in O(m log m).

    Parameters
    ----------
    levels : array of shape (m,)
        y, real numbers.
    sample_weight : array of shape (m,) or number, optional
        The weight of a pair is the product of the weights of its rows. A weight of 2 is equivalent
        to a repeated row, and 0 to a removed row.
    groups : array of shape (m,), optional
        Only rows of the same group are compared (the answers to a query).
    """

    def __init__(
        self,
        levels: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        y = as_numbers(levels, "y")
        m = len(y)
        weights = without_unit(as_sample_weights(sample_weight, m))
        self._order, self._starts = by_group(groups, m)
        self._weights = weights[self._order]
        parts = np.split(y[self._order], self._starts[1:-1])
        ranks = [np.unique(part, return_inverse=True)[1] for part in parts]
        self._levels = np.concatenate(ranks).astype(np.int32)
        self._counter = _core.RankPairs(self._levels, self._weights, self._starts)
        self._grouped = groups is not None
        self.offsets = np.array([0, m])
        # With an infinite margin, all pairs are violated.
        self.n_pairs = self._active(np.zeros(m), np.inf)[0]
        if self.n_pairs == 0:
            where = "" if groups is None else " in one group"
            raise ValueError(
                "y must hold two classes or levels whose sample_weight is not zero"
                f"{where}, got fewer"
            )

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk and a subgradient, (m,)."""
        active, slopes = self._active(scores, 1.0)
        slopes /= self.n_pairs
        return active / self.n_pairs + float(slopes @ scores), slopes

    def each(self, scores: FloatArray) -> tuple[FloatArray, csr_array]:
        """Return the risk (n,) of each pair and its subgradient (n, m); n is of order m^2."""
        high, low, weights = self._pairs
        values = 1.0 - (scores[high] - scores[low])
        active = values > 0
        ends = np.concatenate([[0], 2 * np.cumsum(active)])
        columns = np.column_stack([high[active], low[active]]).ravel()
        entries = np.repeat(weights[active], 2) * np.tile([-1.0, 1.0], np.count_nonzero(active))
        shape = (len(high), len(scores))
        return weights * np.maximum(values, 0.0), csr_array((entries, columns, ends), shape=shape)

    def merit(self, scores: FloatArray) -> float:
        """Return the AUC: the share of pairs in the right order, ties counting half."""
        wrong, right = self._active(scores, 0.0)[0], self._active(-scores, 0.0)[0]
        share = 0.5 + 0.5 * (right - wrong) / self.n_pairs
        # The sums are rounded differently, because their orders differ.
        return min(max(share, 0.0), 1.0)

    def _active(self, scores: FloatArray, margin: float) -> tuple[float, FloatArray]:
        """Return the weight of pairs with f_i - margin < f_j, and the signed weight of each row."""
        slopes = np.empty(len(scores))
        own = scores[self._order] if self._grouped else np.ascontiguousarray(scores)
        active = self._counter.slopes(own, margin, slopes)
        if self._grouped:
            by_group, slopes = slopes, np.empty(len(scores))
            slopes[self._order] = by_group
        return active, slopes

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """The higher row, lower row and weight of every pair; the weights have the mean 1."""
        highs, lows = [], []
        for begin, end in zip(self._starts[:-1], self._starts[1:], strict=True):
            kept = np.flatnonzero(self._weights[begin:end] > 0) + begin
            high, low = np.nonzero(self._levels[kept][:, None] > self._levels[kept])
            highs.append(kept[high])
            lows.append(kept[low])
        high, low = np.concatenate(highs), np.concatenate(lows)
        weights = self._weights[high] * self._weights[low]
        return self._order[high], self._order[low], weights * (len(weights) / self.n_pairs)


def by_group(groups: ArrayLike | None, m: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows group by group, and where each group begins, with the end of the last."""
    array = as_groups(groups, m)
    if array is None:
        return np.arange(m), np.array([0, m])
    _, numbers, counts = np.unique(array, return_inverse=True, return_counts=True)
    return np.argsort(numbers, kind="stable"), np.concatenate([[0], np.cumsum(counts)])


def as_groups(groups: ArrayLike | None, m: int, name: str = "groups") -> NDArray[Any] | None:
    """Return the group of each row, (m,), with names of one type; None without groups."""
    if groups is None:
        return None
    array = as_array(groups, name)
    if array.shape != (m,):
        raise ValueError(f"{name} must have shape ({m},), got {array.shape}")
    missing = [group for group in array.tolist() if group is None or group != group]
    if missing:
        raise ValueError(f"{name} must name a group for every row, got {missing[0]}")
    try:
        np.unique(array)
    except TypeError:  # the names cannot be compared
        kinds = ", ".join(sorted({type(group).__name__ for group in array}))
        raise TypeError(f"{name} must hold names of one kind, got {kinds}") from None
    return array


def cut_points(
    scores: FloatArray, levels: NDArray[np.int64], weights: FloatArray, n_levels: int
) -> FloatArray:
    """Return thresholds (n_levels - 1,), not decreasing, of the least weight of misplaced rows.

    A row belongs to the level that equals the number of thresholds below its score. They are found
    by dynamic programming over the sorted scores, in O(m (log m + n_levels)). A threshold lies
    midway between two scores, or 1 beyond the last.
    """
    order = np.argsort(scores, kind="stable")
    values = scores[order]
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True)) + 1
    places = np.concatenate([[0], ends])  # possible numbers of rows below a threshold
    below = np.zeros((n_levels, len(places)))
    for level in range(n_levels):
        own = np.where(levels[order] == level, weights[order], 0.0)
        below[level] = np.concatenate([[0.0], np.cumsum(own)])[places]
    # best[k]: the largest correct weight if the last threshold is at k; choice: its position.
    best = below[0]
    choices = []
    for level in range(1, n_levels):
        gains = best - below[level]
        highest = np.maximum.accumulate(gains)
        fresh = np.append(True, gains[1:] > highest[:-1])
        choices.append(np.maximum.accumulate(np.where(fresh, np.arange(len(places)), 0)))
        best = highest + below[level]
    cuts = np.empty(n_levels - 1)
    place = len(places) - 1
    for level in range(n_levels - 1, 0, -1):
        place = int(choices[level - 1][place])
        cuts[level - 1] = _between(values, int(places[place]))
    return cuts


def _between(values: FloatArray, count: int) -> float:
    """Return a number above the first ``count`` sorted values and below the others."""
    if count == 0:
        return float(values[0]) - 1.0
    if count == len(values):
        return float(values[-1]) + 1.0
    return midway(float(values[count - 1]), float(values[count]))
