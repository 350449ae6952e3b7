"""Scores with their ground truths, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise import _core
from setwise.functions._arguments import FloatArray
from setwise.losses._labels import Labels, read_labels

Scores = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Rows:
    """A batch of sets: labels and flat scores, float32 or float64."""

    labels: Labels
    scores: Scores

    @property
    def n(self) -> int:
        """How many sets."""
        return self.labels.n

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What every kernel takes first."""
        return self.labels.positive, self.scores, self.labels.offsets

    def outputs(self) -> tuple[FloatArray, Scores]:
        """Room for a value a set and for the gradient."""
        return np.empty(self.n), np.empty_like(self.scores)

    def margins(self, i: int) -> FloatArray:
        """g y of set i, in double precision."""
        here = slice(self.labels.offsets[i], self.labels.offsets[i + 1])
        scores = self.scores[here].astype(np.float64)
        return np.where(self.labels.positive[here].view(np.bool_), scores, -scores)

    def signs(self, i: int) -> FloatArray:
        """y of set i in {-1, +1}."""
        return np.where(self.labels.row(i), 1.0, -1.0)

    def shifted(self, weights: FloatArray) -> Rows:
        """The same sets with every margin g y lowered by its weight."""
        signs = np.where(self.labels.positive.view(np.bool_), 1.0, -1.0)
        return Rows(self.labels, self.scores.astype(np.float64) - signs * weights)


def read_rows(y: ArrayLike, scores: ArrayLike, offsets: ArrayLike | None) -> Rows:
    """float32 scores stay so; everything else becomes float64. NaN and infinity are errors."""
    array = np.asarray(scores)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"scores must be real numbers, got dtype {array.dtype}")
    labels = read_labels(y, offsets)
    if array.shape != labels.shape:
        raise ValueError(f"scores must have the shape of y, {labels.shape}, got {array.shape}")
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    flat = np.ascontiguousarray(array, dtype=dtype).reshape(-1)
    if not _core.all_finite(flat):
        raise ValueError(f"scores must be finite, got {flat[~np.isfinite(flat)][0]}")
    return Rows(labels, flat)
