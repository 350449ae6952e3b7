"""Linear models under any surrogate: the risk with its subgradient, and a path of C.

``sw.SetClassifier`` does this for the surrogates that have a name. The experiments also compare
searches that stand for a surrogate, so they give ``sw.learning.one_slack`` its oracle themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

import setwise as sw
from setwise.learning import Fit, one_slack


class Surrogate(Protocol):
    """What an oracle needs: values (n,) and a gradient (n, p) for truths and scores (n, p)."""

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]: ...


class LabelRisk:
    """X (n, d), Y (n, p): one weight vector a label, sum over the rows of Y."""

    def __init__(self, surrogate: Surrogate, X: np.ndarray, Y: np.ndarray) -> None:
        self.surrogate, self.X, self.Y = surrogate, X, Y
        self.dimension = Y.shape[1] * X.shape[1]

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = self.surrogate.value_and_gradient(self.Y, self.scores(self.X, w))
        return float(np.sum(values)), (slopes.T @ self.X).ravel()

    @staticmethod
    def scores(X: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Of shape (n, p)."""
        return X @ w.reshape(-1, X.shape[1]).T


class BagRisk:
    """X (n, p, d), Y (n, p): bags of p points, one weight vector shared by all."""

    def __init__(self, surrogate: Surrogate, X: np.ndarray, Y: np.ndarray) -> None:
        self.surrogate, self.X, self.Y = surrogate, X, Y
        self.dimension = X.shape[2]

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = self.surrogate.value_and_gradient(self.Y, self.scores(self.X, w))
        return float(np.sum(values)), np.tensordot(slopes, self.X, 2)

    @staticmethod
    def scores(X: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Of shape (n, p)."""
        return X @ w


def path(risk: LabelRisk | BagRisk, Cs: Sequence[float], tol: float, max_iter: int) -> list[Fit]:
    """A fit for each C, from the smallest.

    The planes of one C hold for the next, unless the surrogate is a greedy search: where that
    misses the maximum, old planes lie above what it finds, and the fit would end at once. So those
    fits start afresh.
    """
    fits: list[Fit] = []
    for C in sorted(Cs):
        warm = fits[-1] if fits and isinstance(risk.surrogate, sw.surrogates.Surrogate) else None
        fits.append(one_slack(risk, risk.dimension, C, tol=tol, max_iter=max_iter, init=warm))
    return fits


def labels(scores: np.ndarray) -> np.ndarray:
    """Predictions in {-1, +1}: +1 where the score is above 0."""
    return np.where(scores > 0, 1, -1)
