"""An interior point method for the quadratic program over planes of many sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import PlaneShares

# The share of the distance to the boundary that a step may go, as usual for interior-point methods.
_NEAR = 0.99
# The least factor by which a step reduces the mean product: smaller ones ask for more than the
# linearisation of a step can give. Not tuned.
_CENTER = 0.01
# The slack of a new plane is at least this share of its violation, and its dual at most this share
# of C times the weight of the set, so that a new plane starts away from the boundary. Not tuned.
_PART = 0.3
# Rounding errors: the length of a step at which the path ends, and the share of the risk by which a
# new plane must be higher than all others.
_TINY = 1e-6
# The most steps. A dozen are usual for one label, so a path that reaches the limit has failed.
MOST_STEPS = 150


class _NewtonStep(NamedTuple):
    W: FloatArray
    scores: FloatArray
    tops: FloatArray
    slacks: FloatArray
    duals: FloatArray


class CentralPath:
    r"""Weights W (p, D), and for each set i a top :math:`\xi_i` and planes with slacks and duals.

    .. math:: \min_{W, \xi}\ \tfrac12 |W|^2 + \sum_i c_i \xi_i, \qquad
        s_{ik} = \xi_i - h_{ik} - \langle a_{ik}, W x_i \rangle \ge 0,

    with duals :math:`\lambda_{ik} \ge 0`, :math:`\sum_k \lambda_{ik} = c_i`,
    :math:`W = -\sum_{ik} \lambda_{ik} a_{ik} x_i^T`. A step aims at a point where all products
    :math:`s \lambda` have one value below their mean (Mehrotra's predictor-corrector method). All
    unknowns except W are eliminated set by set, which leaves the matrix

    .. math:: I + \sum_i B_i \otimes x_i x_i^T, \qquad B_i = \sum_k \tfrac{\lambda_{ik}}{s_{ik}}
        a_{ik} (a_{ik} - \bar a_i)^T,

    with p D rows. A step costs O(n p^2 D^2 + p^3 D^3) for any C, and the number of steps hardly
    depends on the problem. Planes are added at the present W after each step. The top of a set then
    rises above its new plane, so that the primal stays feasible.

    J. Gondzio, P. González-Brevis, P. Munari, New developments in the primal-dual column generation
    technique, 2013.
    """

    def __init__(self, X: FloatArray, prices: FloatArray, p: int, most: int) -> None:
        n, columns = X.shape
        # A set of weight 0 needs a positive dual too.
        self._X, self._prices = X, np.maximum(prices, 1e-9 * float(prices.mean()))
        self._given_prices = prices
        self.W = np.zeros((p, columns))
        self.scores = np.zeros((n, p))
        self._tops = np.zeros(n)
        self._counts = np.ones(n, np.int64)  # the plane 0 is each set's first
        self._slopes = np.zeros((n, most, p))
        self._heights = np.zeros((n, most))
        self._slacks = np.ones((n, most))
        self._duals = np.zeros((n, most))
        self._duals[:, 0] = self._prices

    @property
    def _most(self) -> int:
        return int(self._slacks.shape[1])

    def begin(self, risks: FloatArray, slopes: FloatArray) -> None:
        """Begin at W = 0 with the planes at this point, large slacks and equal duals."""
        self._tops = risks + max(float(risks.mean()), 1e-300)
        self._slacks[:, 0] = self._tops
        self._duals[:, :2] = 0.5 * self._prices[:, None]
        self._slacks[:, 1] = self._tops - risks
        self._slopes[:, 1], self._heights[:, 1] = slopes, risks
        self._counts[:] = 2

    def begin_with(self, start: PlaneShares, gap: float) -> None:
        """Begin with given planes, shares and gap. The plane 0 gets the remaining shares."""
        n, most, p = self._slopes.shape
        sets = np.repeat(np.arange(n), start.counts)
        order = np.lexsort((-start.shares, sets))
        rank = np.arange(len(sets)) - np.repeat(
            np.cumsum(start.counts) - start.counts, start.counts
        )
        order, sets = order[rank < most - 1], sets[rank < most - 1]
        at = 1 + rank[rank < most - 1]
        self._slopes[sets, at] = start.slopes.reshape(-1, p)[order]
        self._heights[sets, at] = start.heights[order]
        self._duals[sets, at] = self._prices[sets] * start.shares[order]
        self._duals[:, 0] = np.maximum(self._prices - self._duals[:, 1:].sum(axis=1), 0.0)
        self._counts = 1 + np.minimum(start.counts, most - 1)
        self.W = -np.einsum("ik,ikp->ip", self._duals, self._slopes).T @ self._X
        self.scores = self._X @ self.W.T
        mask = np.arange(most) < self._counts[:, None]
        along = np.einsum("ikp,ip->ik", self._slopes, self.scores)
        highest = np.where(mask, self._heights + along, -np.inf)
        product = gap / float(self._counts.sum())
        top, margin = highest.max(axis=1), product / (_PART * self._prices)
        self._tops = top + margin
        # In this order of additions, slacks stay positive even if scores of 1e10 would absorb the
        # second term.
        self._slacks = np.where(mask, (top[:, None] - highest) + margin[:, None], 1.0)
        self._duals = np.where(mask, np.maximum(self._duals, product / self._slacks), 0.0)

    def shares(self) -> FloatArray:
        """Return the duals, normalised to the sum 1 in each set, for the bound."""
        duals = self._duals[:, : int(self._counts.max())]
        shares: FloatArray = duals / duals.sum(axis=1, keepdims=True)
        return shares

    def dual(self) -> tuple[float, FloatArray]:
        """Return the linear part of the dual of the shares, and v with W = sum_i v_i x_i'."""
        shares = self.shares()
        K = shares.shape[1]
        total = float(self._given_prices @ np.einsum("ik,ik->i", shares, self._heights[:, :K]))
        v = np.einsum("ik,ikp->ip", shares, self._slopes[:, :K])
        return total, -self._given_prices[:, None] * v

    def used(self) -> PlaneShares:
        """Return the planes of each set with positive shares, the largest first."""
        shares = self.shares()
        order = np.argsort(-shares, axis=1, kind="stable")
        rows = np.arange(len(shares))[:, None]
        shares = shares[rows, order]
        kept = shares > 1e-9
        heights, slopes = self._heights[rows, order], self._slopes[rows, order]
        return PlaneShares(kept.sum(axis=1), shares[kept], heights[kept], slopes[kept].ravel())

    def add(self, risks: FloatArray, slopes: FloatArray) -> None:
        """Add planes at the present scores to the sets whose planes are all lower there."""
        K = int(self._counts.max())
        mask = np.arange(K) < self._counts[:, None]
        along = np.einsum("ikp,ip->ik", self._slopes[:, :K], self.scores)
        highest = np.where(mask, self._heights[:, :K] + along, -np.inf).max(axis=1)
        new = np.flatnonzero(risks > highest + _TINY * np.abs(risks) + 1e-12)
        if not len(new):
            return
        full = self._counts[new] == self._most
        at = np.where(full, 1 + np.argmin(self._duals[new, 1:], axis=1), self._counts[new])
        self._duals[new, at] = 0.0  # the plane at this place is replaced below
        self._counts[new] += ~full
        product = float(np.median((self._slacks[:, :K] * self._duals[:, :K])[mask]))
        left = self._tops[new] - risks[new]
        slacks = np.maximum(np.maximum(left, -_PART * left), product / (_PART * self._prices[new]))
        rise = np.maximum(slacks - left, 0.0)
        self._tops[new] += rise
        self._slacks[new] += rise[:, None]
        self._slopes[new, at] = slopes[new]
        self._heights[new, at] = risks[new] - np.einsum("ip,ip->i", slopes[new], self.scores[new])
        self._slacks[new, at], self._duals[new, at] = slacks, product / slacks

    def step(self) -> bool:
        """Step along the path, with positive slacks and duals. Return False if that fails."""
        with np.errstate(all="ignore"):
            try:
                return self._step()
            except LinAlgError:
                return False

    def _step(self) -> bool:
        K = int(self._counts.max())
        mask = np.arange(K) < self._counts[:, None]
        slopes, duals = self._slopes[:, :K], self._duals[:, :K]
        slacks = np.where(mask, self._slacks[:, :K], 1.0)
        along = np.einsum("ikp,ip->ik", slopes, self.scores)
        apart = np.where(mask, slacks - (self._tops[:, None] - self._heights[:, :K] - along), 0.0)
        owed = self._prices - duals.sum(axis=1)
        ratios = duals / slacks
        sums = ratios.sum(axis=1)
        center = np.einsum("ik,ikp->ip", ratios, slopes) / sums[:, None]
        bent = np.matmul((ratios[:, :, None] * slopes).transpose(0, 2, 1), slopes - center[:, None])
        factor = cho_factor(_newton(self._X, bent), True, True, False)
        astray = self.W + np.einsum("ik,ikp->ip", duals, slopes).T @ self._X

        def toward(products: FloatArray) -> _NewtonStep:
            """Return the Newton step that decreases the products by ``products``."""
            q = np.where(mask, -products / slacks + ratios * apart, 0.0)
            e = q.sum(axis=1) - owed
            v = np.einsum("ik,ikp->ip", q - ratios * (e / sums)[:, None], slopes)
            right = -astray - v.T @ self._X
            W = cho_solve(factor, right.ravel(), check_finite=False).reshape(right.shape)
            scores = self._X @ W.T
            moved = np.einsum("ikp,ip->ik", slopes, scores)
            tops = e / sums + np.einsum("ip,ip->i", center, scores)
            by = tops[:, None] - moved
            return _NewtonStep(W, scores, tops, np.where(mask, by - apart, 0.0), q - ratios * by)

        def reach(step: _NewtonStep) -> float:
            return min(1.0, _largest_step(slacks, step.slacks), _largest_step(duals, step.duals))

        count = float(self._counts.sum())
        product = float(np.vdot(slacks, duals)) / count
        first = toward(slacks * duals)
        t = reach(first)
        ahead = float(np.vdot(slacks + t * first.slacks, duals + t * first.duals)) / count
        aim = max((ahead / product) ** 3, _CENTER) * product
        bending = first.slacks * first.duals
        step = toward(np.where(mask, slacks * duals + bending - aim, 0.0))
        t = min(1.0, _NEAR * reach(step))
        if not (t > _TINY and all(np.isfinite(part).all() for part in step)):
            return False
        self.W = self.W + t * step.W
        self.scores = self.scores + t * step.scores
        self._tops = self._tops + t * step.tops
        self._slacks[:, :K] = slacks + t * step.slacks
        self._duals[:, :K] = duals + t * step.duals
        return True


def hinge_path(
    X: FloatArray, signs: FloatArray, most: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray]:
    """Return the dual b of the hinge of one label, 0 <= b <= most, and its weights."""
    path = CentralPath(X, most, 1, 2)
    path.begin(np.ones(len(X)), -signs[:, None])
    zero = float(most.sum())
    for _ in range(MOST_STEPS):
        if not path.step():
            break
        total, v = path.dual()
        bound = total - 0.5 * float(np.sum((v.T @ X) ** 2))
        slack = np.maximum(1.0 - signs * path.scores[:, 0], 0.0)
        value = 0.5 * float(np.sum(path.W**2)) + float(most @ slack)
        if value - bound <= tol * min(zero - bound, value):
            break
    return most * path.shares()[:, 1], path.W[0]


def _newton(X: FloatArray, bent: FloatArray) -> FloatArray:
    """Return I + the sum of the Kronecker products of B_i and x_i x_i', lower half only."""
    D, p = X.shape[1], bent.shape[1]
    if D == 1:
        return np.eye(p) + np.tensordot(X[:, 0] ** 2, bent, axes=1)
    matrix = np.zeros((p, D, p, D))
    across, by_pair = np.ascontiguousarray(X.T), np.ascontiguousarray(bent.transpose(1, 2, 0))
    for j in range(p):
        for k in range(j + 1):
            matrix[j, :, k] = (across * by_pair[j, k]) @ X
    square: FloatArray = matrix.reshape(p * D, p * D)
    square[np.diag_indices(p * D)] += 1.0
    return square


def _largest_step(x: FloatArray, step: FloatArray) -> float:
    """Return the largest t with x + t step >= 0."""
    falls = step < 0.0
    return float((x[falls] / -step[falls]).min(initial=np.inf))
