"""The area under the mean ROC curve of many labels, each against all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import auc, roc_curve

RATES = np.linspace(0, 1, 201)


@dataclass(frozen=True, eq=False)
class MeanRoc:
    """The mean over labels of the areas, and of the curves at the false positive rates RATES."""

    area: float
    curve: np.ndarray
    labels: int


def mean_roc(scores: np.ndarray, truth: np.ndarray) -> MeanRoc:
    """Return the mean ROC curve of scores (n, L) and true labels (n,), none void.

    Scores must increase with the probability. Pixels of all images are pooled. Labels that no pixel
    or every pixel has are left out; the area is NaN if none is left.
    """
    areas, curves = [], []
    for label in np.unique(truth):
        positive = truth == label
        if positive.all():
            continue
        false_rate, true_rate, _ = roc_curve(positive, scores[:, label])
        areas.append(auc(false_rate, true_rate))
        curves.append(np.interp(RATES, false_rate, true_rate))
    if not areas:
        return MeanRoc(float("nan"), np.full(len(RATES), np.nan), 0)
    curve = np.mean(curves, axis=0)
    curve[0] = 0
    return MeanRoc(float(np.mean(areas)), curve, len(areas))
