r"""How the edges from a variable to later ones share out 1, and how they come to share it better.

With :math:`\sum_e \rho_e = 1` over the edges from each variable to later ones any shares give a
bound, and its derivative with respect to one is minus the information that the ends have about each
other: :math:`\rho_e \propto \rho_e \exp(\eta I_e)` is a step of mirror descent. On a grid each
pixel's edges to the right and down are weighed against each other, as contrast would have it.
"""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray

STEP = 2.0  # eta, in shares a nat
LEAST = 0.05  # of an even share
ROUNDS = 3


class Shares:
    """The shares of edges under one order of elimination, and the rounds that move them."""

    def __init__(self, first: IntArray, n: int) -> None:
        """``first`` (E,) is the end of each edge that is eliminated first, of n variables."""
        self._first = first
        self._counts: IntArray = np.bincount(first, minlength=n)
        self.now: FloatArray = np.asarray(1.0 / self._counts[first])
        """(E,)"""
        self.before = self.now
        self.is_forest = not (self._counts > 1).any()
        """Whether all shares are 1, and the bound is log Z."""
        self.rounds = 0 if self.is_forest else ROUNDS
        """How many are to come."""

    def move(self, informations: FloatArray) -> float:
        """More to the edges whose ends say more about each other (E,), in nats.

        By how much the bound would fall, in nats, if it were linear.
        """
        self.rounds -= 1
        self.before = self.now
        powers = self._sharing(self.now * np.exp(STEP * informations))
        self.now = self._sharing(np.maximum(powers, LEAST / self._counts[self._first]))
        return float((self.now - self.before) @ informations)

    def take_back(self) -> None:
        """The shares before the last move, for good."""
        self.now, self.rounds = self.before, 0

    def set(self, shares: FloatArray) -> None:
        """Those of an earlier search, lowered where they share out more than 1, for good."""
        shares = np.clip(shares.astype(np.float64), LEAST / self._counts[self._first] / 2, 1.0)
        sums = np.bincount(self._first, shares, minlength=len(self._counts))
        self.now, self.rounds = shares / np.maximum(sums, 1.0)[self._first], 0

    def _sharing(self, heights: FloatArray) -> FloatArray:
        """Shares in proportion to heights, that sum to 1 for each variable."""
        sums = np.bincount(self._first, heights, minlength=len(self._counts))
        return np.minimum(heights / sums[self._first], 1.0)
