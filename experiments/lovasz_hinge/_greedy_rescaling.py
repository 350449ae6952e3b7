"""Margin and slack rescaling with the greedy search of the Lovász hinge paper.

The search is one pass over the labels in index order; each label is flipped if that does not lower
the objective. The library does the same with ``maximizer="greedy"``; this module does it for all
sets at once.

With ``published=True`` the search differs in two ways, as in the program that the authors
published. The first label is always flipped, because the value to exceed starts at minus infinity.
The search for slack rescaling maximises l(I) (1 + sum of y~ g), which omits the score of the true
labels; that score is not constant, because l(I) multiplies it. The value of the set that was found
is then computed correctly, and counts only if it is positive.
"""

from __future__ import annotations

import numpy as np

import setwise as sw


class GreedyRescaling:
    """A greedy search in place of a surrogate, for losses whose set function is the same for all y.

    Parameters
    ----------
    loss : sw.losses.Loss
    slack : bool
        Slack rescaling if true, otherwise margin rescaling.
    published : bool
        Whether to follow the published program where it differs.
    """

    def __init__(self, loss: sw.losses.Loss, *, slack: bool, published: bool = False) -> None:
        self.loss, self.slack, self.published = loss, slack, published

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return values (n,) and gradient (n, p) for y in {-1, +1} and scores, both (n, p)."""
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
        # The published slack search computes 1 + sum y~ g = 1 + sum y g - 2 sum over I of y g.
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
