"""A classifier of pixels with probabilities: a small network and randomised trees."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

LEAST = 1e-4  # the probability of a label that no tree voted for


class PixelClassifier:
    """The geometric mean of a network with one hidden layer and of extremely randomised trees.

    The network is trained on all pixels, the trees on a sample. Labels are 0 to ``labels`` - 1. A
    label that is missing in training gets the probability LEAST.
    """

    def __init__(self, labels: int, *, seed: int, jobs: int, epochs: int, trees: int) -> None:
        self.labels, self.seed, self.rows_of_trees = labels, seed, 60_000
        self.network = MLPClassifier(
            (128,),
            alpha=5.0,
            batch_size=256,
            learning_rate_init=5e-4,
            max_iter=epochs,
            random_state=seed,
        )
        self.trees = ExtraTreesClassifier(
            trees, max_features=60, min_samples_leaf=3, random_state=seed, n_jobs=jobs
        )

    def fit(self, X: np.ndarray, y: np.ndarray) -> PixelClassifier:
        """Learn from features (n, d), float32, and labels (n,)."""
        self.mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.deviation = X.std(axis=0, dtype=np.float64).astype(np.float32) + np.float32(1e-6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # early stopping regularises
            self.network.fit((X - self.mean) / self.deviation, y)
        order = np.random.default_rng(self.seed).permutation(len(y))[: self.rows_of_trees]
        self.trees.fit(X[order], y[order])
        return self

    def log_probabilities(self, X: np.ndarray) -> np.ndarray:
        """Return log probabilities (n, labels), float32."""
        scores = np.zeros((len(X), self.labels), np.float32)
        for model, given in ((self.network, (X - self.mean) / self.deviation), (self.trees, X)):
            p = np.full(scores.shape, LEAST, np.float32)
            p[:, model.classes_] = np.maximum(model.predict_proba(given), LEAST)
            scores += np.log(p) / 2
        return log_softmax(scores, axis=1)


def calibrate(log_p: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Return slope a and offsets b (L,) with the least weighted log loss of softmax(a log p + b).

    A fit to held-out predictions corrects overconfidence, and the bias of a sample that favoured
    rare labels. A small penalty on the offsets regularises those of labels that hardly occur.
    """
    rows, share = np.arange(len(y)), weights / weights.sum()
    hits = np.zeros(log_p.shape)
    hits[rows, y] = 1

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = parameters[0], parameters[1:]
        q = log_softmax(a * log_p + b, axis=1)
        residual = (np.exp(q) - hits) * share[:, None]
        gradient = np.concatenate([[np.sum(residual * log_p)], residual.sum(axis=0) + 2e-3 * b])
        return -float(share @ q[rows, y]) + 1e-3 * float(b @ b), gradient

    start = np.concatenate([[1.0], np.zeros(log_p.shape[1])])
    best = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return float(best[0]), best[1:]
