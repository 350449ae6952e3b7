"""Blocks of the dual for any convex surrogate: a few planes per set, and their shares."""

from __future__ import annotations

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Dual, PlaneShares
from setwise.learning._dual_blocks._acceleration import Acceleration
from setwise.learning._dual_blocks._blocks import PulledBlocks
from setwise.learning._dual_blocks._extrapolation import WIDE, Extrapolation, prefers_extrapolation
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.learning._dual_blocks._path_blocks import MOST_KEPT

# The number of planes per set is _SPARE more than its elements, since the best mixture lies in a
# face with about as many planes as elements. It is at most MOST_KEPT.
_SPARE = 12
# The most numbers of all planes, which take 256 megabytes.
_MOST_NUMBERS = 1 << 25
# A value of C |x|^2 above _HIGH is reached in steps by factors of at most _RISE. Each step makes
# passes until the gap is at most the share _COARSE of the objective. Without these steps some fits
# take more than ten times the work.
_HIGH, _RISE, _COARSE = 300.0, 30.0, 0.05
# The least pull above WIDE examples per feature, but at most C |x|^2.
_PULL = 3.0


def takes_planes(sets: LinearSets) -> bool:
    """Return whether the surrogate is convex and there is memory for its planes."""
    if not (sets.by_label and sets.surrogate.is_convex):
        return False
    return sets.n * _kept(sets) * (sets.p + _kept(sets)) <= _MOST_NUMBERS


def _kept(sets: LinearSets) -> int:
    return min(sets.p + _SPARE, MOST_KEPT)


def _first_share(price: float) -> float:
    """Return the first share of C: 1, or less if C |x|^2 is above ``_HIGH``."""
    if not _HIGH < price < np.inf:
        return 1.0
    return float(_RISE ** -np.ceil(np.log(price / _HIGH) / np.log(_RISE)))


class PlaneBlocks(PulledBlocks):
    r"""Shares of planes :math:`S_i(g) \ge h_k + \langle a_k, g \rangle`, in a simplex per set.

    .. math:: \max_\alpha\ \sum_i C c_i \langle \alpha_i, h_i \rangle - \tfrac12 |W|^2, \qquad
        W = -\sum_i C c_i \sum_k \alpha_{ik}\, a_{ik} x_i^T.

    A pass evaluates the surrogate of all sets at the present W, which adds a plane to each set
    (block Frank-Wolfe: N. Shah, V. Kolmogorov, C. H. Lampert, A multi-plane block-coordinate
    Frank-Wolfe algorithm, 2015). Then, set by set, shares move from the lowest plane to the highest
    until they are nearly optimal with all other sets fixed. The plane 0 is one of them, so that a
    dual for a smaller C is feasible for C, and a large C is reached in steps.
    """

    name = "kept_planes"
    _short = 8
    _gap: float

    def __init__(
        self,
        sets: LinearSets,
        C: float,
        start: Dual | None,
        before: float = 1.0,
        near: FloatArray | None = None,
    ) -> None:
        self.features = sets.features
        self._sets, self._shape = sets, (sets.n, sets.p)
        scales = C * sets.weights
        self._ratio = sets.n / max(sets.columns, 1)
        self._squares = self.features.squares()
        self._price = float(scales.mean() * self._squares.mean()) if sets.n else 0.0
        warm = isinstance(start, PlaneShares)
        # The present C as a share of the final C.
        self._share = 1.0 if warm else _first_share(self._price)
        self._planes = _core.KeptPlanes(sets.labels.offsets, self._share * scales, _kept(sets))
        self._near = near if warm and self._ratio > WIDE else None
        if isinstance(start, PlaneShares):
            self._begin(start, scales, C / before)
        self._hold()

    def _begin(self, start: PlaneShares, scales: FloatArray, ratio: float) -> None:
        """Begin with the shares of a fit at another C, its rescaled dual, or their best mixture."""
        start = _without_zero(start)
        shares = start.shares
        if ratio < 1.0:
            begins = np.cumsum(start.counts) - start.counts
            used = start.counts > 0
            sums = np.zeros(len(scales))
            sums[used] = np.add.reduceat(shares, begins[used])
            kept = shares * np.repeat(
                np.minimum(1.0 / ratio, 1.0 / np.maximum(sums, 1e-300)), start.counts
            )
            points = []
            for of in (shares, kept):
                v = np.zeros(self._shape)
                by_plane = of[:, None] * start.slopes.reshape(-1, self._shape[1])
                v[used] = np.add.reduceat(by_plane, begins[used])
                total = float(np.repeat(scales, start.counts) @ (of * start.heights))
                points.append((total, self.features.weights(-scales[:, None] * v)))
            (first, W), (second, V) = points
            gain = second - first - float(np.vdot(W, V - W))
            squares = float(np.vdot(V - W, V - W))
            part = min(max(gain / squares, 0.0), 1.0) if squares > 0.0 else 0.0
            shares = (1.0 - part) * shares + part * kept
        self._planes.begin_with(start.counts, shares, start.heights, start.slopes)
        self.renew()
        self._planes.raise_price(1.0, min(self._along(), 1.0))

    def _along(self) -> float:
        """Return the factor of the dual point that maximises the dual along its ray."""
        squares = float(np.vdot(self.W, self.W))
        return max(self.total / squares, 0.0) if squares > 0.0 else 1.0

    def _hold(self) -> None:
        """Recompute the weights and set up the acceleration for the present C."""
        self.renew()
        self.inner = self.W
        price = self._share * self._price
        self._acceleration = Acceleration(
            price,
            self._sets.n,
            self._sets.columns,
            self.W,
            least=min(_PULL, price) if self._ratio > WIDE else 0.0,
            near=self._near,
        )
        self._curvature = np.maximum(self._acceleration.gain * self._squares, 1e-300)

    def renew(self) -> None:
        """Recompute W and total from the shares, normalised to the sum 1."""
        v = np.empty(self._shape)
        self.total = self._planes.dual(v.ravel())
        self.W = self.features.weights(v)

    def improve(self, passes: int, tol: float, gap_scale: float) -> None:
        """Make passes at the present C, and increase it when the gap is small enough."""
        while self._share < 1.0:
            super().improve(passes, 0.0, 0.0)
            dual = self.total - 0.5 * float(np.vdot(self.W, self.W))
            if self._gap > _COARSE * (dual + self._gap):
                return
            rise = min(_RISE, 1.0 / self._share)
            self._share = 1.0 if rise < _RISE else rise * self._share
            self._planes.raise_price(rise, min(max(self._along(), 1.0), rise) / rise)
            self._hold()
        super().improve(passes, tol, gap_scale)

    def _gap_met(self) -> float:
        return self._gap

    def _stage(self, most: int, target: float) -> None:
        """Make at least one pass, until the gap at the present weights is small."""
        rows, gain = self.features.rows, self._acceleration.gain
        state = self.features.state(self._acceleration.begin(self.W)).ravel()
        scores = np.empty(self._shape)
        path = Extrapolation() if prefers_extrapolation(self._sets) else None
        for done in range(most):
            _core.plane_scores(rows, self._planes, state, scores.ravel())
            values, slopes = self._sets.surrogate._of_labels(self._sets.labels, scores)
            planes = np.asarray(values, np.float64), np.asarray(slopes, np.float64).ravel()
            self._gap = self._planes.add(scores.ravel(), *planes)
            if done and self._gap <= target:
                break
            if path is not None and not path.begun:
                path.begin(self._shares())
            order = self.passes if path is None else 0
            _core.plane_pass(rows, self._planes, order, gain, state, self._curvature)
            self.passes += 1
            if path is not None and path.add(self._shares()):
                state = self._extrapolated(path, state)

    def _extrapolated(self, path: Extrapolation, state: FloatArray) -> FloatArray:
        """Move to the extrapolated shares if the dual of the stage is higher there."""
        before, dual = self._shares(), self._dual_of(state)
        limit = path.limit()
        if limit is not None:
            self._planes.put_shares(limit)
            if self._stage_dual() > dual:
                state = self.features.state(self._acceleration.begin(self.W)).ravel()
            else:
                self._planes.put_shares(before)
        path.begin(self._shares())
        return state

    def _shares(self) -> FloatArray:
        shares = np.empty(self._shape[0] * _kept(self._sets))
        self._planes.copy_shares(shares)
        return shares

    def _dual_of(self, state: FloatArray) -> float:
        """Return the dual of the stage for the present shares, given their state."""
        if self._acceleration.pull:
            return self._stage_dual()
        v = np.empty(self._shape)
        total: float = self._planes.dual(v.ravel())
        return total - 0.5 * self.features.squared(v, state)

    def _stage_dual(self) -> float:
        """Return the dual objective of the stage, up to a constant."""
        self.renew()
        w = self._acceleration.begin(self.W)
        return self.total - 0.5 * float(np.vdot(w, w)) / self._acceleration.gain

    def excess(self) -> float:
        """Return 1, because shares sum to 1."""
        return 1.0

    def dual(self, C: float) -> Dual:
        """Return the shares, which do not depend on C."""
        if self._share < 1.0:
            self._planes.raise_price(1.0 / self._share, self._share)
        counts = np.empty(self._shape[0], np.int64)
        self._planes.count_used(counts)
        used = int(counts.sum())
        shares, heights = np.empty(used), np.empty(used)
        slopes = np.empty(used * self._shape[1])
        self._planes.copy_used(shares, heights, slopes)
        return PlaneShares(counts, shares, heights, slopes)


def _without_zero(start: PlaneShares) -> PlaneShares:
    """Return the planes without the plane 0, which every set has."""
    p = len(start.slopes) // max(len(start.shares), 1)
    slopes = start.slopes.reshape(len(start.shares), p)
    kept = slopes.any(axis=1) | (start.heights != 0.0)
    sets = np.repeat(np.arange(len(start.counts)), start.counts)[kept]
    counts = np.bincount(sets, minlength=len(start.counts))
    return PlaneShares(counts, start.shares[kept], start.heights[kept], slopes[kept].ravel())
