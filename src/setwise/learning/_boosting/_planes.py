"""The planes of a booster, with their slopes in the scores for future weak learners."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray, IntArray


class ScorePlanes:
    """Affine lower bounds of slacks in the scores f: slack >= offset + <slope, f>.

    The slopes are rows of one sparse matrix, with entries for the violated examples only. Its
    storage grows by doubling. A product with all slopes costs O(entries).
    """

    def __init__(self, n_scores: int) -> None:
        self.n_scores = n_scores
        self.offsets: FloatArray = np.empty(0)
        self.slack: IntArray = np.empty(0, np.int64)
        self._ends: IntArray = np.zeros(1, np.int64)
        self._indices: IntArray = np.empty(1024, np.int64)
        self._values: FloatArray = np.empty(1024)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def slopes(self) -> csr_array:
        """The slopes (P, S), as a view of the storage."""
        used = self._ends[-1]
        parts = self._values[:used], self._indices[:used], self._ends
        return csr_array(parts, shape=(len(self), self.n_scores))

    def append(self, slack: IntArray, offsets: FloatArray, slopes: csr_array) -> None:
        """Add rows, slopes of shape (r, S)."""
        used = int(self._ends[-1])
        end = used + slopes.nnz
        if end > len(self._values):
            size = max(2 * len(self._values), end)
            self._values = np.concatenate([self._values[:used], np.empty(size - used)])
            self._indices = np.concatenate([self._indices[:used], np.empty(size - used, np.int64)])
        self._values[used:end] = slopes.data
        self._indices[used:end] = slopes.indices
        self._ends = np.concatenate([self._ends, used + slopes.indptr[1:].astype(np.int64)])
        self.offsets = np.concatenate([self.offsets, offsets])
        self.slack = np.concatenate([self.slack, slack])

    def keep(self, rows: IntArray) -> None:
        """Keep the given rows only."""
        kept = self.slopes[rows]
        self.offsets, self.slack = self.offsets[rows], self.slack[rows]
        self._ends, self._indices = kept.indptr.astype(np.int64), kept.indices.astype(np.int64)
        self._values = kept.data

    def columns(self, scores: FloatArray) -> FloatArray:
        """Return the changes of the planes, (P, r), for changes of the scores, (r, S)."""
        slopes = self.slopes
        return np.stack([slopes @ move for move in scores], axis=1)

    def descent(self, multipliers: FloatArray) -> FloatArray:
        """Return minus the weighted sum of the slopes, (S,)."""
        product: FloatArray = -(multipliers @ self.slopes)
        return product


def as_row(slope: FloatArray) -> csr_array:
    """Return a dense slope as one sparse row."""
    at = np.flatnonzero(slope)
    return csr_array((slope[at], at, np.array([0, len(at)])), shape=(1, len(slope)))
