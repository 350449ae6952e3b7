"""Where a price nearby is solved: weights and dual in turn, each for all sets at once."""

from __future__ import annotations

from math import inf, log

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Fit, PlaneShares
from setwise.learning._dual_blocks._blocks import ENOUGH
from setwise.learning._dual_blocks._element_blocks import PolymatroidBlocks
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.losses._families import Polymatroids

# How far a step goes beyond the middle of both: 1 is safe, 2 the limit.
_RELAXED = 1.8
# Slacks count at least as so much of the scores: all are 0 where every example is a support vector.
_LEAST_SLACKS = 0.1
# Passes before the first look at the gap, and over which their rate is measured.
_FIRST, _WINDOW = 6, 6
# The most passes: where more seem to be needed, steps set by set go on.
MOST_SPLITS = 64
# A matrix is factored where that takes no longer than so many passes, as far as operations tell.
_FACTOR_WORK = 40.0


def takes_splitting(sets: LinearSets) -> bool:
    """Whether the matrix of a split is small beside the passes that it saves."""
    if not sets.by_label:
        return False
    rows = sets.n if sets.features.gram else sets.columns
    return rows**3 / 3 <= _FACTOR_WORK * sets.n * sets.p * min(sets.n, 2 * sets.columns)


class SplitBlocks(PolymatroidBlocks):
    r"""Douglas and Rachford's splitting of 1/2 |W|^2 and of the hinges of all sets.

    With K the inner products of the examples and a price :math:`\rho` of the slacks that the hinges
    see being apart from those of the weights, a pass over :math:`z = b + \rho s` is

    .. math:: b = \Pi_P(z), \qquad a = (K + 1/\rho)^{-1}\, y * (1 + (2 b - z) / \rho), \qquad
        z \leftarrow z + 1.8\, (y * a - b).

    b is in its polymatroids all the while; the weights :math:`\sum_i a_i x_i^T` are those that suit
    all sets together. Steps set by set have a dual that is far better than its weights: near the
    end the gap is what these pay for slacks that are not quite tied, the square root of what the
    dual lacks. Here both are about as good. How many passes there are depends on :math:`\rho`,
    which ought to be as large as b is beside the slacks: a fit of a price nearby tells.

    A pass is a projection of each set and two triangular solutions, O(n^2 p), or O(n d p + d^2 p)
    where the features are few; before the first comes a factor of K or X'X.

    P.-L. Lions, B. Mercier, Splitting algorithms for the sum of two nonlinear operators, 1979.
    """

    name = "splitting"

    def __init__(
        self, sets: LinearSets, found: Polymatroids, scales: FloatArray, C: float, init: Fit
    ) -> None:
        super().__init__(sets, found, scales)
        self._prices = C * sets.weights
        self._linear = sets
        self.inner = init.w.reshape(self.W.shape)
        self._y = self._signs.reshape(self._shape)
        scores = self.features.scores(self.inner)
        slacks = 1.0 - self._y * scores
        start = init.dual
        if isinstance(start, PlaneShares):
            start = self._of_planes(start)
        b = np.zeros(self._shape) if start is None else init.C * start.reshape(self._shape)
        apart = max(float(np.linalg.norm(slacks)), _LEAST_SLACKS * float(np.linalg.norm(scores)))
        self._rho = float(np.linalg.norm(b)) / max(apart, 1e-300)
        self.stuck = not 0.0 < self._rho < inf
        self._z = b + self._rho * slacks
        self._sizes: list[float] = []
        self._next = inf
        if not self.stuck:
            square = self.features.square.copy()
            square[np.diag_indices(len(square))] += 1.0 / self._rho
            self._factor = cho_factor(square, True, True, False)

    def improve(self, passes: int, tol: float, room: float) -> None:
        """Passes, until a look at the gap shows that they are enough or would be too many."""
        y, rho = self._y, self._rho
        last = self.passes + passes
        while self.passes < last:
            z = self._z
            b = self._inside(z.ravel()).reshape(z.shape)
            toward = (2.0 * b - z) / rho
            a = self._solved(y * (1.0 + toward))
            step = y * a - b
            self._z = z + _RELAXED * step
            self.b = b.ravel()
            self.passes += 1
            self._sizes.append(float(np.linalg.norm(step)))
            if self.passes < _FIRST or self._sizes[-1] > self._next:
                continue
            gap, value = self._measured(a, b, y * a / rho - toward, step)
            target = ENOUGH * tol * min(room, value)
            if gap <= target:
                break
            self._next = self._sizes[-1] * target / gap  # the gap is in proportion to the steps
            if self._left(target / gap) > MOST_SPLITS - self.passes:
                self.stuck = True
                break
        self.renew()
        self.inner = self.features.weights(a)

    def _solved(self, right: FloatArray) -> FloatArray:
        """(K + 1 / rho)^-1 of it."""
        if self.features.gram:
            return np.asarray(cho_solve(self._factor, right, True, False))
        inner = cho_solve(self._factor, self.features.weights(right).T, True, False)
        return self._rho * (right - self.features.scores(inner.T))

    def _measured(
        self, a: FloatArray, b: FloatArray, slacks: FloatArray, step: FloatArray
    ) -> tuple[float, float]:
        """P - D of the weights of a and the dual b, and P: no bound, which comes from W itself."""
        scores = self._y * (1.0 - slacks)
        values, _ = self._linear.surrogate._of_labels(self._linear.labels, scores)
        paid = float(self._prices @ np.asarray(values))
        apart = self.features.weights(self._y * step)
        gap = paid - float(np.vdot(b, slacks)) + 0.5 * float(np.vdot(apart, apart))
        return gap, paid + 0.5 * float(np.vdot(a, scores))

    def _left(self, share: float) -> float:
        """How many passes take the gap down to a share of it, as it went lately."""
        sizes = self._sizes
        before = sizes[max(len(sizes) - 1 - _WINDOW, 0)]
        rate = log(before / sizes[-1]) / min(_WINDOW, len(sizes) - 1) if sizes[-1] > 0.0 else inf
        return -log(share) / rate if rate > 0.0 else inf
