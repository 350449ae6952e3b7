"""Measures over pixels of superpixel labels: IoU, accuracy, precision at equal recall."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import setwise as sw
from experiments.struct_boost._horse_graphs import Horse

# A function that maps a constant, which is added to the foreground's score, to labels.
Label = Callable[[float], list[np.ndarray]]


def confusion(horses: Sequence[Horse], labels: Sequence[np.ndarray]) -> np.ndarray:
    """Count pixels by image, truth and answer, (n, 2, 2)."""
    return np.array(
        [
            np.stack([one.counts[z == k].sum(axis=0) for k in (0, 1)], axis=1)
            for one, z in zip(horses, labels, strict=True)
        ],
        float,
    )


def unions(counts: np.ndarray) -> np.ndarray:
    """Return intersection over union of all pixels: foreground, background."""
    total = counts.sum(axis=0)
    return np.array(
        [total[k, k] / (total[k].sum() + total[:, k].sum() - total[k, k]) for k in (1, 0)]
    )


def accuracies(counts: np.ndarray) -> np.ndarray:
    """Return the share of each class's pixels that are right: foreground, background."""
    total = counts.sum(axis=0)
    return np.array([total[k, k] / total[k].sum() for k in (1, 0)])


def precision(counts: np.ndarray) -> float:
    """Return the share of foreground among all pixels that are labelled foreground."""
    total = counts.sum(axis=0)
    return float(total[1, 1] / max(total[:, 1].sum(), 1))


def even_out(horses: Sequence[Horse], label: Label) -> np.ndarray:
    """Return the counts at the constant at which precision equals recall.

    At that constant, as many pixels are labelled foreground as belong to it.
    """
    there = sum(one.counts[:, 1].sum() for one in horses)
    low, high = -20.0, 20.0
    for _ in range(25):
        middle = 0.5 * (low + high)
        found = confusion(horses, label(middle))[:, :, 1].sum()
        low, high = (middle, high) if found < there else (low, middle)
    return confusion(horses, label(high))


def of_scores(scores: Sequence[np.ndarray]) -> Label:
    """Return a classifier that thresholds each superpixel's score by itself."""
    return lambda constant: [(of + constant > 0).astype(int) for of in scores]


def of_model(model: sw.FieldSVM | sw.FieldBoost, X: Sequence[tuple]) -> Label:
    """Return a classifier by a learnt field; the constant is added to the foreground's unary."""
    fields = [model.to_field(x) for x in X]

    def label(constant: float) -> list[np.ndarray]:
        shift = np.array([0.0, -constant])
        return [sw.solve_map(field.with_unary(field.unary + shift)).labels for field in fields]

    return label
