"""Where a price nearby is solved: weights and dual in turn, each for all sets at once."""

from __future__ import annotations

from math import inf, log

import numpy as np
from numpy.linalg import norm
from scipy.linalg.lapack import dpotrf

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Dual, Fit, PlaneShares
from setwise.learning._dual_blocks._element_blocks import PolymatroidBlocks, best_part
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.learning._room import room_of
from setwise.losses._families import Polymatroids

# How far a step goes beyond the middle of both: 1 is safe, 2 the limit.
_RELAXED = 1.8
# Slacks count at least as so much of the scores: all are 0 where every example is a support vector.
_LEAST_SLACKS = 0.1
# Of the tolerance: the gap is that of the weights and the dual but for rounding.
_ENOUGH = 0.98
# Passes before the first look at the gap, and over which their rate is measured.
_FIRST, _WINDOW = 6, 6
# The most passes: where more seem to be needed, steps set by set go on.
MOST_SPLITS = 64
# A matrix is factored where that takes no longer than so many passes, as far as operations tell.
_FACTOR_WORK = 40.0


def takes_splitting(sets: LinearSets) -> bool:
    """Whether all inner products have room, and their factor takes no longer than some passes."""
    if not (sets.by_label and sets.features.has_products):
        return False
    n, p, columns = sets.n, sets.p, sets.columns
    return n**3 / 3 <= _FACTOR_WORK * n * p * min(n, 2 * columns)


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

    A pass is a projection of each set and two triangular systems, O(n^2 p + n p log p); before the
    first, K is factored, O(n^3).

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

    def improve(self, passes: int, tol: float, room: float) -> None:
        """Passes, until a look at the gap shows that they are enough or would be too many."""
        end = self.passes + passes
        b, a = np.empty(self._shape), np.empty(self._shape)
        while self.passes < end:
            sizes = np.empty(end - self.passes)
            done = _core.split_passes(
                self._sets,
                self._factor,
                self._rho,
                _RELAXED,
                _FIRST - self.passes,
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
            target = _ENOUGH * tol * min(room, room_of(value, value - gap, self._zero))
            if gap <= target:
                break
            self._next = self._sizes[-1] * target / gap  # the gap is in proportion to the steps
            if self._left(target / gap) > MOST_SPLITS - self.passes:
                self.stuck = True
                break
        self.renew()
        self.inner = self.W + self._apart

    def candidates(self) -> tuple[FloatArray, ...]:
        """The weights of a, which are the better ones."""
        return (self.inner,)

    def dual(self, C: float) -> Dual:
        """b, divided by C; or what it started from, where passes had better go on from there."""
        if self._start is not None and (self.passes == 0 or (self.stuck and self._is_worse(C))):
            return self._start
        return super().dual(C)

    def _is_worse(self, C: float) -> bool:
        """Whether the dual is lower than that of the start's shares, as far as they are best."""
        start = self._start
        if not isinstance(start, np.ndarray):
            return False
        W = self.features.weights(C * self._y * start.reshape(self._shape))
        total, squares = C * float(start.sum()), float(np.vdot(W, W))
        part = float(best_part(np.array(total), np.array(squares)))
        now = self.total - 0.5 * float(np.vdot(self.W, self.W))
        return now < part * (total - 0.5 * part * squares)

    def _measured(self, a: FloatArray, b: FloatArray) -> tuple[float, float]:
        """P - D of the weights of a and the dual b, and P, nearly: W itself proves them later."""
        step = self._y * a - b
        slacks = (self._z + (1.0 - _RELAXED) * step - b) / self._rho
        scores = self._y * (1.0 - slacks)
        values, _ = self._linear.surrogate._of_labels(self._linear.labels, scores)
        paid = float(self._prices @ np.asarray(values))
        self._apart = self.features.weights(self._y * step)
        gap = paid - float(np.vdot(b, slacks)) + 0.5 * float(np.vdot(self._apart, self._apart))
        return gap, paid + 0.5 * float(np.vdot(a, scores))

    def _left(self, share: float) -> float:
        """How many passes take the gap down to a share of it, as it went lately."""
        sizes = self._sizes[-1 - _WINDOW :]
        if len(sizes) < 2 or not (0.0 < sizes[-1] < sizes[0] and share > 0.0):
            return inf
        return -log(share) * (len(sizes) - 1) / log(sizes[0] / sizes[-1])


def _factored(products: FloatArray, added: float) -> tuple[FloatArray, bool]:
    """U of K + added = U'U, above the diagonal and on it; whether rounding left none."""
    square = products.copy()
    square[np.diag_indices(len(square))] += added
    lower, failed = dpotrf(square.T, lower=1, clean=0, overwrite_a=1)
    return np.ascontiguousarray(lower.T), failed != 0
