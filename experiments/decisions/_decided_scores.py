"""Sets from stored scores, by several rules: thresholds, tuned thresholds, decisions."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import setwise as sw

SETS = ("rows", "columns", "cells")
MEASURES = [(loss, sets) for loss in ("jaccard", "dice") for sets in SETS]
# Candidates for a threshold: quantiles of the scores.
CUTS = np.linspace(0.02, 0.98, 97)


class Stored(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are known. X holds row numbers.

    While it is trained on a part of the training rows, its probabilities are those out of fold.
    Otherwise they are those of the model that was fitted to all training rows. ``SetDecision`` can
    thus be run without new fits.
    """

    def __init__(self, out_of_fold=None, fitted=None):
        self.out_of_fold = out_of_fold
        self.fitted = fitted

    def fit(self, X, y):
        self.classes_ = [np.array([0, 1])] * y.shape[1]
        self.whole_ = len(X) == len(self.out_of_fold)
        return self

    def predict_proba(self, X):
        rows = np.asarray(X)[:, 0].astype(int)
        return (self.fitted if self.whole_ else self.out_of_fold)[rows]


def score(truth: np.ndarray, predicted: np.ndarray, loss: str, sets: str) -> float:
    """Return 1 minus the mean loss of rows, of labels, or the loss of all cells."""
    loss_of = sw.losses.get(loss)
    if sets == "cells":
        return 1.0 - loss_of(truth.ravel(), predicted.ravel())
    turned = (truth.T, predicted.T) if sets == "columns" else (truth, predicted)
    return 1.0 - float(np.mean(loss_of(*turned)))


def one_threshold(p: np.ndarray, Y: np.ndarray, loss: str, sets: str) -> float:
    """Return the threshold that is best for the measure on scores out of fold."""
    cuts = np.append(CUTS, 0.5)
    return float(cuts[np.argmax([score(Y, p > cut, loss, sets) for cut in cuts])])


def thresholds_of_labels(p: np.ndarray, Y: np.ndarray, loss: str) -> np.ndarray:
    """Return the best threshold of each label by itself, on scores out of fold."""
    loss_of = sw.losses.get(loss)
    cuts = np.append(CUTS, 0.5)
    losses = np.array(
        [
            loss_of(np.tile(Y[:, j], (len(cuts), 1)), p[:, j] > cuts[:, None])
            for j in range(Y.shape[1])
        ]
    )
    return cuts[losses.argmin(axis=1)]


def decided(
    out_of_fold: np.ndarray,
    Y: np.ndarray,
    folds: list[tuple[np.ndarray, np.ndarray]],
    test: np.ndarray,
    loss: str,
    sets: str,
    **options: object,
) -> np.ndarray:
    """Return the predictions of ``SetDecision`` for the test rows."""
    n = len(Y)
    fitted = np.concatenate([out_of_fold, test])
    model = sw.SetDecision(
        Stored(out_of_fold, fitted), loss, sets=sets, cv=folds, n_jobs=1, **options
    ).fit(np.arange(n)[:, None], Y)
    return model.predict(np.arange(n, len(fitted))[:, None])
