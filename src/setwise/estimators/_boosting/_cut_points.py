"""From scores to ordered levels: the thresholds with the fewest mistakes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray
from setwise.learning._weak_learners._one_feature import midway


def cut_points(
    scores: FloatArray, levels: NDArray[np.int64], weights: FloatArray, n_levels: int
) -> FloatArray:
    """Thresholds (n_levels - 1,), not decreasing, of the least weight of misplaced rows.

    A row belongs to the level that equals the number of thresholds below its score. Dynamic
    programming over the sorted scores, O(m (log m + n_levels)); a threshold lies midway between two
    scores, or 1 beyond the last.
    """
    order = np.argsort(scores, kind="stable")
    values = scores[order]
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True)) + 1
    places = np.concatenate([[0], ends])  # how many rows may lie below a threshold
    below = np.zeros((n_levels, len(places)))
    for level in range(n_levels):
        own = np.where(levels[order] == level, weights[order], 0.0)
        below[level] = np.concatenate([[0.0], np.cumsum(own)])[places]
    # best[k]: the most weight in place if thresholds so far end there; choice: where the last lies.
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
    """A number above the first ``count`` sorted values and below the others."""
    if count == 0:
        return float(values[0]) - 1.0
    if count == len(values):
        return float(values[-1]) + 1.0
    return midway(float(values[count - 1]), float(values[count]))
