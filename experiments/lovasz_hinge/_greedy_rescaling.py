"""Margin and slack rescaling with the greedy search of the Lovász hinge paper.

One pass over the labels in index order; each is flipped if that does not lower the objective. It is
what ``maximizer="greedy"`` does in the library, here for all sets at once.

The program that the authors published differs from that in two ways, which ``published=True``
follows: the first label is always flipped (the value to beat starts at minus infinity), and the
search for slack rescaling maximises l(I) (1 + sum of y~ g), leaving out the score of the true
labels, which is no constant there because it is multiplied by l(I). The set found is then valued
correctly, and counts only if its value is positive.
"""

from __future__ import annotations

import numpy as np

import setwise as sw


class GreedyRescaling:
    """A search that stands for a surrogate, for losses whose set function does not depend on y.

    Parameters
    ----------
    loss : sw.losses.Loss
    slack : bool
        Slack rescaling, else margin rescaling.
    published : bool
        With the peculiarities of the published program.
    """

    def __init__(self, loss: sw.losses.Loss, *, slack: bool, published: bool = False) -> None:
        self.loss, self.slack, self.published = loss, slack, published

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values (n,) and gradient (n, p) for y in {-1, +1} and scores, both (n, p)."""
        margins = y * scores
        function = self.loss.set_function(y[0])
        chosen = self._search(function, margins)
        losses = function(chosen)
        violations = self._objective(losses, np.sum(chosen * margins, axis=1))
        factors = -2.0 * (losses if self.slack else np.ones(len(y)))
        if self.published:
            factors = np.where(violations > 0, factors, 0.0)
            violations = np.maximum(violations, 0.0)
        return violations, factors[:, None] * y * chosen

    def _search(self, function: sw.functions.SetFunction, margins: np.ndarray) -> np.ndarray:
        n, p = margins.shape
        chosen, sums = np.zeros((n, p), np.bool_), np.zeros(n)
        best = np.full(n, -np.inf if self.published else 0.0)
        # The published slack search sees 1 + sum y~ g = 1 + sum y g - 2 sum over I of y g.
        shift = margins.sum(axis=1) if self.published and self.slack else 0.0
        for i in range(p):
            flipped = chosen.copy()
            flipped[:, i] = True
            candidate = sums + margins[:, i]
            values = self._objective(function(flipped), candidate, shift)
            better = values >= best
            best = np.where(better, values, best)
            sums = np.where(better, candidate, sums)
            chosen[better, i] = True
        return chosen

    def _objective(
        self, losses: np.ndarray, sums: np.ndarray, shift: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return losses * (1.0 + shift - 2.0 * sums) if self.slack else losses - 2.0 * sums
