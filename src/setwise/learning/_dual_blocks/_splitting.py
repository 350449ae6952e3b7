"""Douglas-Rachford splitting from a fit with a similar C: weights and dual in turn."""

from __future__ import annotations

from math import inf, log

import numpy as np
from numpy.linalg import norm
from scipy.linalg.lapack import dpotrf

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Dual, Fit, PlaneShares
from setwise.learning._dual_blocks._blocks import ENOUGH
from setwise.learning._dual_blocks._element_blocks import PolymatroidBlocks, best_part
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.learning._relative_gap import gap_scale_of
from setwise.losses._families import Polymatroids

# The relaxation factor of the splitting: it converges below 2, and 1 is the plain method. Values of
# 1.5 to 1.8 are usual.
_RELAXED = 1.8
# The least norm of the slacks relative to the scores, for the choice of rho: all slacks are 0 if
# every example is a support vector.
_LEAST_SLACKS = 0.1
# The number of passes before the gap is measured, and over which the rate is measured. Not tuned.
_WINDOW = 6
# The most passes from a fit with a similar C, split or set by set, which prove most fits. If more
# seem to be needed, other stages continue. Not tuned.
WARM_PASSES = 64
# The matrix is factored if that takes at most the operations of this number of passes.
_FACTOR_WORK = 40.0


def takes_splitting(sets: LinearSets) -> bool:
    """Return whether inner products fit into memory and factoring them is fast enough."""
    if not (sets.by_label and sets.features.has_products):
        return False
    n, p, columns = sets.n, sets.p, sets.columns
    return n**3 / 3 <= _FACTOR_WORK * n * p * min(n, 2 * columns)


class SplitBlocks(PolymatroidBlocks):
    r"""Douglas and Rachford's splitting of 1/2 |W|^2 and of the hinges of all sets.

    With K the inner products of the examples and a penalty :math:`\rho` for the difference between
    the slacks of the hinges and those of the weights, a pass over :math:`z = b + \rho s` is

    .. math:: b = \Pi_P(z), \qquad a = (K + 1/\rho)^{-1}\, y * (1 + (2 b - z) / \rho), \qquad
        z \leftarrow z + 1.8\, (y * a - b).

    b always stays in its polymatroids, and the weights :math:`\sum_i a_i x_i^T` are computed from
    all sets together. If a pass processes set by set, the dual is far better than its weights: near
    the optimum the primal error is about the square root of the dual error, because slacks that
    should be equal are not quite equal. Here both errors are similar. The number of passes depends
    on
    :math:`\rho`, which should be the ratio of the norms of b and the slacks. A fit with a similar C
    gives an estimate.

    A pass projects each set and solves two triangular systems, O(n^2 p + n p log p). Before the
    first pass, K is factored, O(n^3).

    P.-L. Lions, B. Mercier, Splitting algorithms for the sum of two nonlinear operators, 1979.
    """

    name = "splitting"
    begin_warm = 32

    def __init__(
        self, sets: LinearSets, found: Polymatroids, scales: FloatArray, C: float, init: Fit
    ) -> None:
        super().__init__(sets, found, scales)
        self._prices = C * sets.weights
        self._linear = sets
        self._zero = C * init.risk_at_zero
        self.inner = init.w.reshape(self.W.shape)
        self._y = self._signs.reshape(self._shape)
        scores = self.features.scores(self.inner)
        slacks = 1.0 - self._y * scores
        start = init.dual
        if isinstance(start, PlaneShares):
            start = self._of_planes(start)
        b = np.zeros(self._shape) if start is None else init.C * start.reshape(self._shape)
        apart = max(float(norm(slacks)), _LEAST_SLACKS * float(norm(scores)), 1e-300)
        self._rho = float(norm(b)) / apart
        self.stuck = not 0.0 < self._rho < inf
        self._z = b + self._rho * slacks
        self._sizes = np.empty(0)
        self._next = inf
        self._factor, self._start = np.empty((0, 0)), init.dual
        if not self.stuck:
            self._factor, failed = _factored(self.features.products, 1.0 / self._rho)
            self.stuck = failed

    def improve(self, passes: int, tol: float, gap_scale: float) -> None:
        """Make passes until the measured gap is small enough, or too many would be needed."""
        end = self.passes + passes
        b, a = np.empty(self._shape), np.empty(self._shape)
        while self.passes < end:
            sizes = np.empty(end - self.passes)
            done = _core.split_passes(
                self._sets,
                self._factor,
                self._rho,
                _RELAXED,
                _WINDOW - self.passes,
                self._next,
                self._z,
                b,
                a,
                sizes,
            )
            self.b = b.ravel()
            self.passes += done
            self._sizes = np.append(self._sizes, sizes[:done])
            gap, value = self._measured(a, b)
            target = ENOUGH * tol * min(gap_scale, gap_scale_of(value, value - gap, self._zero))
            if gap <= target:
                break
            self._next = self._sizes[-1] * target / gap  # the gap is proportional to the steps
            if self._left(target / gap) > WARM_PASSES - self.passes:
                self.stuck = True
                break
        self.renew()
        self.inner = self.W + self._apart

    def candidates(self) -> tuple[FloatArray, ...]:
        """Return the weights of a, which are better than those of b."""
        return (self.inner,)

    def dual(self, C: float) -> Dual:
        """Return b / C, or the initial dual if that is the better start."""
        if self._start is not None and (self.passes == 0 or (self.stuck and self._is_worse(C))):
            return self._start
        return super().dual(C)

    def _is_worse(self, C: float) -> bool:
        """Return whether the dual is lower than that of the start, scaled optimally."""
        start = self._start
        if not isinstance(start, np.ndarray):
            return False
        W = self.features.weights(C * self._y * start.reshape(self._shape))
        total, squares = C * float(start.sum()), float(np.vdot(W, W))
        part = float(best_part(np.array(total), np.array(squares)))
        now = self.total - 0.5 * float(np.vdot(self.W, self.W))
        return now < part * (total - 0.5 * part * squares)

    def _measured(self, a: FloatArray, b: FloatArray) -> tuple[float, float]:
        """Estimate P - D and P, for the weights of a and the dual b. Exact values follow later."""
        step = self._y * a - b
        slacks = (self._z + (1.0 - _RELAXED) * step - b) / self._rho
        scores = self._y * (1.0 - slacks)
        values, _ = self._linear.surrogate._of_labels(self._linear.labels, scores)
        risk = float(self._prices @ np.asarray(values))
        self._apart = self.features.weights(self._y * step)
        gap = risk - float(np.vdot(b, slacks)) + 0.5 * float(np.vdot(self._apart, self._apart))
        return gap, risk + 0.5 * float(np.vdot(a, scores))

    def _left(self, share: float) -> float:
        """Estimate the number of passes that reduce the gap to a share of it."""
        sizes = self._sizes[-1 - _WINDOW :]
        if len(sizes) < 2 or not (0.0 < sizes[-1] < sizes[0] and share > 0.0):
            return inf
        return -log(share) * (len(sizes) - 1) / log(sizes[0] / sizes[-1])


def _factored(products: FloatArray, added: float) -> tuple[FloatArray, bool]:
    """Return the Cholesky factor U of K + ``added`` I = U'U, and whether factoring failed."""
    square = products.copy()
    square[np.diag_indices(len(square))] += added
    lower, failed = dpotrf(square.T, lower=1, clean=0, overwrite_a=1)
    return np.ascontiguousarray(lower.T), failed != 0
