"""AdaBoost.MH with confidence-rated stumps, the rival of the paper's Tables 2 and 3.

R. E. Schapire and Y. Singer, *Improved boosting algorithms using confidence-rated predictions*,
1999. scikit-learn's AdaBoostClassifier is SAMME, whose stumps predict one class for all.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array


class AdaBoostMH:
    r"""Boosts all pairs (example, class) with stumps that have a level for each class and side.

    With weights D of the pairs and signs Y, +1 at the class of an example and -1 elsewhere, a stump
    has the levels :math:`\frac12 \log (W_+ / W_-)` on each side, :math:`W_\pm` being the weights of
    the pairs of either sign there, and the stump of a round has the least
    :math:`Z = 2 \sum \sqrt{W_+ W_-}`. Thresholds lie between at most ``bins`` quantiles.
    """

    def __init__(self, n_estimators: int = 200, bins: int = 255) -> None:
        self.n_estimators, self.bins = n_estimators, bins

    def fit(self, X: np.ndarray, y: np.ndarray) -> AdaBoostMH:
        self.classes_, own = np.unique(y, return_inverse=True)
        n, d = X.shape
        signs = np.where(own[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self._cuts = [self._cut(X[:, j]) for j in range(d)]
        starts = np.concatenate([[0], np.cumsum([len(cuts) + 1 for cuts in self._cuts])])
        codes = [np.searchsorted(cuts, X[:, j]) for j, cuts in enumerate(self._cuts)]
        codes = np.stack(codes, axis=1)
        cells = (codes + starts[:-1]).ravel(), np.repeat(np.arange(n), d)
        bins = csr_array((np.ones(n * d), cells), shape=(starts[-1], n))
        weights = np.full(signs.shape, 1.0 / signs.size)
        tiny = 1.0 / signs.size  # smooths the levels, as in the paper of the method
        self.stumps_ = []
        self.bounds_ = []  # products of Z, which bound the training error over the pairs
        bound = 1.0
        for _ in range(self.n_estimators):
            mass = np.stack(
                [bins @ np.where(signs > 0, weights, 0.0), bins @ np.where(signs < 0, weights, 0.0)]
            )  # (2, cells, L)
            least, best = np.inf, None
            for j in range(d):
                part = mass[:, starts[j] : starts[j + 1]]
                below = part.cumsum(axis=1)[:, :-1]
                sides = np.stack(
                    [below, part.sum(axis=1, keepdims=True) - below]
                )  # (2, 2, cuts, L)
                sides = np.maximum(sides, 0.0)
                Z = 2.0 * np.sqrt(sides[:, 0] * sides[:, 1]).sum(axis=(0, 2))
                if len(Z) and Z.min() < least:
                    k = int(Z.argmin())
                    least, best = float(Z[k]), (j, k, sides[:, :, k])
            if best is None:
                break
            j, k, sides = best
            levels = 0.5 * np.log((sides[:, 0] + tiny) / (sides[:, 1] + tiny))  # (2, L)
            self.stumps_.append((j, self._cuts[j][k], levels))
            weights = weights * np.exp(-signs * levels[(codes[:, j] > k).astype(int)])
            bound *= float(weights.sum())
            weights /= weights.sum()
            self.bounds_.append(bound)
        return self

    def _cut(self, x: np.ndarray) -> np.ndarray:
        values = np.unique(x)
        if len(values) > self.bins:
            values = np.unique(np.quantile(x, np.linspace(0, 1, self.bins), method="nearest"))
        return (values[:-1] + values[1:]) / 2

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        scores = np.zeros((len(X), len(self.classes_)))
        for j, cut, levels in self.stumps_:
            scores += levels[(X[:, j] > cut).astype(int)]
        return scores

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[self.decision_function(X).argmax(axis=1)]
