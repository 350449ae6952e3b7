"""Batches of scores with their ground truths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray, IntArray, as_array
from setwise.losses._labels import Labels

Scores = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class ScoredRows:
    """A batch of sets: labels and flat scores, float32 or float64."""

    labels: Labels
    scores: Scores

    @property
    def n(self) -> int:
        """The number of sets."""
        return self.labels.n

    def run(self, kernel: Callable[..., None], *arguments: object) -> tuple[FloatArray, Scores]:
        """Run a kernel that takes the sets first, and return the value per set and the gradient."""
        values, gradient = np.empty(self.n), np.empty_like(self.scores)
        labels = self.labels
        kernel(labels.positive, self.scores, labels.offsets, *arguments, values, gradient)
        return values, gradient

    def take(self, members: IntArray) -> ScoredRows:
        """Return the given sets, all of one size."""
        offsets = self.labels.offsets
        where = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in members])
        size = len(where) // len(members)
        labels = Labels(
            self.labels.positive[where],
            np.arange(len(members) + 1) * size,
            "rows",
            (len(members), size),
        )
        return ScoredRows(labels, self.scores[where])

    def margins(self, i: int) -> FloatArray:
        """Return g y of set i, in double precision."""
        here = slice(self.labels.offsets[i], self.labels.offsets[i + 1])
        scores = self.scores[here].astype(np.float64)
        return np.where(self.labels.positive[here].view(np.bool_), scores, -scores)

    def signs(self, i: int) -> FloatArray:
        """Return y of set i in {-1, +1}."""
        return np.where(self.labels.row(i), 1.0, -1.0)

    def shifted(self, weights: FloatArray) -> ScoredRows:
        """Return the same sets with every margin g y lowered by its weight."""
        signs = np.where(self.labels.positive.view(np.bool_), 1.0, -1.0)
        return ScoredRows(self.labels, self.scores.astype(np.float64) - signs * weights)


def read_rows(labels: Labels, scores: ArrayLike) -> ScoredRows:
    """Read scores: float32 is kept, other types become float64; NaN and infinity are errors."""
    array = as_array(scores, "scores")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"scores must be real numbers, got dtype {array.dtype}")
    if array.shape != labels.shape:
        raise ValueError(f"scores must have the shape of y, {labels.shape}, got {array.shape}")
    flat: Scores
    if array.dtype == np.float32:
        flat = np.ascontiguousarray(array, np.float32).reshape(-1)
    else:
        flat = np.ascontiguousarray(array, np.float64).reshape(-1)
    if not _core.all_finite(flat):
        raise ValueError(f"scores must be finite, got {flat[~np.isfinite(flat)][0]}")
    return ScoredRows(labels, flat)
