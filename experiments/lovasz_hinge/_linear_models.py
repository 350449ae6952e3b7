"""Linear models under any surrogate: the risk with its subgradient, and a path over C.

``sw.SetClassifier`` fits the surrogates that have a name. The experiments also compare greedy
searches in place of a surrogate, so they pass ``sw.learning.one_slack`` an oracle of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

import setwise as sw
from setwise.learning import one_slack
from setwise.learning._cutting_planes._fit import Fit


class Surrogate(Protocol):
    """An object with values (n,) and a gradient (n, p) for truths and scores (n, p)."""

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]: ...


class LabelRisk:
    """The risk of X (n, d) and Y (n, p), summed over rows, with one weight vector per label."""

    def __init__(self, surrogate: Surrogate, X: np.ndarray, Y: np.ndarray) -> None:
        self.surrogate, self.X, self.Y = surrogate, X, Y
        self.dimension = Y.shape[1] * X.shape[1]

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = self.surrogate.value_and_gradient(self.Y, self.scores(self.X, w))
        return float(np.sum(values)), (slopes.T @ self.X).ravel()

    @staticmethod
    def scores(X: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return scores of shape (n, p)."""
        return X @ w.reshape(-1, X.shape[1]).T


class BagRisk:
    """The risk of bags of p points, X (n, p, d) and Y (n, p), with one shared weight vector."""

    def __init__(self, surrogate: Surrogate, X: np.ndarray, Y: np.ndarray) -> None:
        self.surrogate, self.X, self.Y = surrogate, X, Y
        self.dimension = X.shape[2]

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = self.surrogate.value_and_gradient(self.Y, self.scores(self.X, w))
        return float(np.sum(values)), np.tensordot(slopes, self.X, 2)

    @staticmethod
    def scores(X: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Return scores of shape (n, p)."""
        return X @ w


def path(risk: LabelRisk | BagRisk, Cs: Sequence[float], tol: float, max_iter: int) -> list[Fit]:
    """Return a fit for each C, in increasing order of C.

    Each fit starts with the planes of the previous one, unless the surrogate is a greedy search. A
    search that misses the maximum finds values below the old planes, so a warm start would end at
    once.
    """
    fits: list[Fit] = []
    for C in sorted(Cs):
        warm = fits[-1] if fits and isinstance(risk.surrogate, sw.surrogates.Surrogate) else None
        fits.append(one_slack(risk, risk.dimension, C, tol=tol, max_iter=max_iter, init=warm))
    return fits


def labels(scores: np.ndarray) -> np.ndarray:
    """Return predictions in {-1, +1}: +1 where the score is above 0."""
    return np.where(scores > 0, 1, -1)
