"""Block coordinate ascent in the dual, with an exact step for one set after the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._progress import Progress
from setwise.learning._cutting_planes._fit import Dual, Fit, Planes
from setwise.learning._cutting_planes._learner import Learner
from setwise.learning._dual_blocks._acceleration import Acceleration
from setwise.learning._dual_blocks._blocks import ENOUGH, Blocks, PulledBlocks
from setwise.learning._dual_blocks._central_path import hinge_path
from setwise.learning._dual_blocks._element_blocks import (
    ElementBlocks,
    PolymatroidBlocks,
    best_part,
)
from setwise.learning._dual_blocks._extrapolation import WIDE, Extrapolation, prefers_extrapolation
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.learning._dual_blocks._path_blocks import PathBlocks, dense, fits_steps
from setwise.learning._dual_blocks._plane_blocks import PlaneBlocks
from setwise.learning._dual_blocks._splitting import SplitBlocks
from setwise.losses._families import Polymatroids

T = TypeVar("T", bound=np.generic)

# The passes of the first round, and the most passes of a round. A round has half as many passes as
# all rounds before. These numbers were chosen by the trials of _learn_linear.py.
_BEGIN, _MOST = 4, 100
# The number of passes between extrapolations.
_STEPS = 6
# The weights of a fit whose C differs by at most this factor are nearly the weights to be found.
_NEAR = 12.0
# Labels that have not converged after this number of passes get Newton steps. Without them some
# fits take five times the work.
_BEFORE_STEPS = 300


class LabelBlocks(ElementBlocks):
    """The dual of a modular loss, a sum over the labels, each of which is learned separately."""

    _separable = True

    def __init__(self, sets: LinearSets, most: FloatArray) -> None:
        super().__init__(sets)
        self._flat = most
        self._executor = sets.executor
        self._most = self._by_label(most)
        self._truth = self._by_label(sets.labels.positive)
        self._left = np.ones(sets.p, np.bool_)
        self._share = ENOUGH
        self._sets = sets
        self._takes_steps = fits_steps(sets.columns, sets.n * sets.columns)

    def improve(self, passes: int, tol: float, gap_scale: float) -> None:
        """Make passes for each label that has not converged, over threads."""
        if not self._left.any():
            self._left[:] = True
            self._share /= 2
        b, state = self._by_label(self.b), self.features.label_state(self.W)
        rows, share, first = self.features.rows, self._share * tol, self.passes
        inner: dict[int, FloatArray] = {}
        steps = dense(self._sets) if self._takes_steps and first >= _BEFORE_STEPS else None

        def one(j: int) -> int:
            if steps is not None:
                signs = np.where(self._truth[j].view(np.bool_), 1.0, -1.0)
                b[j], inner[j] = hinge_path(steps, signs, self._most[j], share)
                return 1
            truth, most = self._truth[j], self._most[j]
            return _core.hinge_passes(rows, truth, most, share, passes, first, b[j], state[j])

        left = np.flatnonzero(self._left)
        done = self._executor.map(one, left.tolist())
        self.b = b.T.ravel()
        self._left[left] = np.array(done) == passes
        self._takes_steps &= steps is None
        self.passes += passes
        self.renew()
        self.inner = self.W
        if inner:  # the primal weights of the path are better than the W of its dual
            self.inner = self.W.copy()
            self.inner[list(inner)] = np.array(list(inner.values()))

    def _inside(self, b: FloatArray) -> FloatArray:
        return np.minimum(b, self._flat)

    def excess(self) -> float:
        """Return 1, because box constraints hold exactly."""
        return 1.0

    def _by_label(self, flat: NDArray[T]) -> NDArray[T]:
        """Return an array (n p,) as (p, n)."""
        return np.array(flat.reshape(self._shape).T, order="C")


class SetBlocks(PolymatroidBlocks, PulledBlocks):
    """The dual over general polymatroids, which processes the sets in turn, on one thread.

    If the weights are nearly known, and sets are rows whose polymatroids are not boxes, each stage
    has one pass. The duals of such stages oscillate about the best one as V moves. Therefore the
    best mixture of them is computed incrementally.
    """

    def __init__(
        self,
        sets: LinearSets,
        found: Polymatroids,
        scales: FloatArray,
        start: Dual | None = None,
        before: float = 1.0,
        C: float = 1.0,
        near: FloatArray | None = None,
        zero: float = np.inf,
    ) -> None:
        super().__init__(sets, found, scales)
        self._zero = zero
        labels = sets.labels
        self._of_labels = sets.by_label
        self._begin(start, before, C)
        squares = self.features.squares()
        price = float(scales.mean() * squares.mean()) if len(scales) else 0.0
        self._goes_straight = goes_straight(sets, found)
        pulled = 0.0 if self._goes_straight else price
        self._acceleration = Acceleration(pulled, sets.n, sets.columns, self.W, near=near)
        if near is not None and self._acceleration.pull:
            self.inner = near
        if not sets.by_label:
            squares = _largest(squares, labels.offsets)
        self._curvature = np.maximum(self._acceleration.gain * squares, 1e-300)
        self._gaps = np.full(labels.n, np.inf)
        self._rest = np.zeros((labels.n, 2), np.int32)
        self._path, self._trust = Extrapolation(_STEPS), 1.0
        self._mixes = sets.by_label and found.kind != Polymatroids.MODULAR
        self._short = 1 if self._mixes else 2
        self._mixture: tuple[FloatArray, FloatArray, float] | None = None
        self._met = np.inf

    def _gap_met(self) -> float:
        return float(self._gaps.sum())

    def _mixed(self, gap: float) -> float:
        if not self._mixes:
            return gap
        if self._mixture is None:
            self._mixture = self.b.copy(), self.W, self.total
            return self._after(gap)
        b, W, total = self._mixture
        toward = self.W - W
        gain = self.total - total - float(np.vdot(W, toward))
        part = float(best_part(np.array(gain), np.array(float(np.vdot(toward, toward)))))
        b += part * (self.b - b)
        self._mixture = b, W + part * toward, total + part * (self.total - total)
        return self._after(gap + _dual(self.W, self.total) - _dual(*self._mixture[1:]))

    def _after(self, met: float) -> float:
        """Estimate the gap after a pass, assuming that it decreases by the same factor again."""
        before, self._met = self._met, met
        return met * min(met / before, 1.0) if before < np.inf else met

    def _gap_scale(self) -> float:
        return self._zero - _dual(self.W, self.total)

    def _renew_near(self) -> None:
        if self.features.keeps_weights:
            self.W = self._acceleration.undo(self._state.reshape(self.W.shape))
            self.total = float(self.b.sum())
        else:
            self.renew()

    def _end_stages(self) -> None:
        if self._mixture is not None and _dual(*self._mixture[1:]) > _dual(self.W, self.total):
            self.b = self._mixture[0].copy()
        if self._acceleration.near:
            self.renew()

    def _stage(self, most: int, target: float) -> None:
        state = self.features.state(self._acceleration.begin(self.W)).ravel()
        if self._goes_straight:
            self._extrapolated(most, target, state)
        else:
            self._pass(most, target, self.passes, state)
            self._state = state

    def _pass(self, most: int, target: float, order: int, state: FloatArray) -> None:
        """Make at most ``most`` passes, until the measured gap is within the target."""
        if target > 0.0:  # without a target, the passes of several calls belong together
            self._rest[:, 0] = 0
        self.passes += _core.set_passes(
            self.features.rows,
            self._sets,
            self._of_labels,
            target,
            most,
            order,
            self._acceleration.gain,
            self.b,
            state,
            self._gaps,
            self._curvature,
            self._rest.ravel(),
        )

    def _extrapolated(self, most: int, target: float, state: FloatArray) -> None:
        """Make passes in a fixed order, with extrapolations that are kept if the dual is higher."""
        end = self.passes + most
        path = self._path
        if not path.begun:
            path.begin(self.b)
        while self.passes < end:
            self._pass(1, target, 0, state)
            full = path.add(self.b)
            if self._gaps.sum() <= self._trust * target:
                self._trust /= 2  # the measured gap may have been too small
                break
            if not full:
                continue
            limit = path.limit()
            if limit is not None:
                before, dual, higher = self.b, self._dual_at(state), False
                try:
                    self.b = limit
                    moved = self.features.state_of(self._signed()).ravel()
                    self._pass(1, target, 0, moved)
                    higher = self._dual_at(moved) >= dual
                finally:  # the limit is feasible only after all sets are projected
                    if not higher:
                        self.b = before
                if higher:
                    state = moved
                    np.maximum(self.b, 0.0, out=self.b)  # skipped steps may leave negative entries
            path.begin(self.b)

    def _dual_at(self, state: FloatArray) -> float:
        """Return the dual objective of b, given its state."""
        return float(self.b.sum()) - 0.5 * self.features.squared(self._signed(), state)


def dual_blocks(
    sets: LinearSets,
    C: float,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[Progress], object] | None,
    time_limit: float | None = None,
    init: Fit | None = None,
    most_passes: int = 1 << 40,
    by: Literal["passes", "steps", "splitting"] = "passes",
) -> Fit:
    r"""Minimise 1/2 |W|^2 + C risk(W) by exact steps of the dual, set by set.

    For an increasing submodular F_i the Lovász hinge is a maximum over a polymatroid, and the dual

    .. math:: \max_b\ \sum_i b_i(V) - \tfrac12 \Bigl| \sum_i (y_i * b_i) x_i^T \Bigr|^2,
        \qquad b_i \in C c_i\, \{b \ge 0,\ b(A) \le F_i(A)\},

    where the best :math:`b_i`, with all others fixed, is the projection of :math:`b_i + (1 - y_i *
    W x_i) / |x_i|^2`, computed by sorting and pooling. For a modular loss the polymatroid is a box,
    and this is dual coordinate descent for each label. A round makes some passes over the sets in a
    reproducible random order, and then recomputes W, the risk and the bound. A pass costs
    O(n d p + n p log p).

    Any other convex surrogate of the labels of a row has a dual over planes below it, some of which
    are kept for each set (``PlaneBlocks``). ``init`` is a fit of the same risk at any C, whose dual
    is a warm start. ``most_passes`` limits the passes as ``max_iter`` limits the rounds. With
    ``by="steps"``, Newton steps for all sets together replace the passes (``PathBlocks``); their
    number hardly depends on C. With ``by="splitting"``, weights and dual are updated in turn,
    starting from a fit with a similar C (``SplitBlocks``).
    """
    learner = _DualBlocks(sets.dimension, C, tol, max_iter, callback, time_limit=time_limit)
    learner.start(sets, init, most_passes, by)
    return learner.fit()


class _DualBlocks(Learner):
    """The learner that makes passes over the blocks of the dual and measures the gap."""

    def start(
        self,
        sets: LinearSets,
        init: Fit | None,
        most_passes: int,
        by: Literal["passes", "steps", "splitting"],
    ) -> None:
        """Set up the blocks, with the dual of an earlier fit."""
        if by == "steps":
            start = None if init is None else init.dual
            self._blocks: Blocks = PathBlocks(sets, self.C, start, _gap_at(init, self.C))
        else:
            self._blocks = _blocks(sets, self.C, init, by == "splitting")
        self.name = self._blocks.name
        self._sets, self._init, self._most = sets, init, most_passes
        self._excess: float | None = None
        self._is_first = True

    def step(self) -> bool:
        blocks, init = self._blocks, self._init
        if not self._is_first:
            begin = _BEGIN if init is None else blocks.begin_warm
            passes = min(max(begin, blocks.passes // 2), _MOST, self._most - blocks.passes)
            self._excess = None
            blocks.improve(passes, self.tol, self.gap_scale)
        elif init is not None:
            self.offer(np.zeros(self._sets.dimension), init.risk_at_zero)
            if not np.shares_memory(blocks.inner, init.w):
                self._try(init.w)
            if init.C == self.C:
                self.know(init.bound, init.size)
        for W in blocks.candidates():
            self._try(W.ravel())
        total, squares = blocks.total, 0.5 * float(np.vdot(blocks.W, blocks.W))
        self._excess = blocks.excess()
        shrink = 1.0 / self._excess
        self.know(shrink * (total - shrink * squares), total + squares)
        self._is_first = False
        return blocks.passes >= self._most or blocks.stuck

    def _try(self, w: FloatArray) -> None:
        """Evaluate the risk of the weights, and store them if they are the best."""
        risk, _ = self.ask(self._sets.risk, w)
        self.offer(w, risk)

    def planes(self) -> Planes:
        """Return the dual as a plane, which proves the same bound at C and a bound at any other C.

        If the fit was interrupted before the excess of the dual was computed, it is computed here.
        """
        blocks = self._blocks
        if self._excess is None:
            blocks.renew()
            self._excess = blocks.excess()
        share = 1.0 / (self._excess * self.C)
        return Planes(-share * blocks.W.reshape(1, -1), np.array([share * blocks.total]))

    def dual(self) -> Dual | None:
        return self._blocks.dual(self.C)


def _gap_at(init: Fit | None, C: float) -> float:
    """Return an upper bound on the gap that an earlier fit has at this C."""
    if init is None:
        return 0.0
    ratio = max(C / init.C, init.C / C)
    return ratio * init.gap + (ratio - 1.0) * min(C, init.C) * init.risk_at_zero


def goes_straight(sets: LinearSets, found: Polymatroids) -> bool:
    """Return whether passes converge in few rounds without a proximal term."""
    if found.kind == Polymatroids.MODULAR:
        return sets.n <= WIDE * sets.columns
    return sets.by_label and prefers_extrapolation(sets)


def _blocks(sets: LinearSets, C: float, init: Fit | None, splits: bool = False) -> Blocks:
    start, before = (None, C) if init is None else (init.dual, init.C)
    answer = sets.surrogate._polymatroids(sets.labels)
    near = None
    if init is not None and is_near(init, C):
        near = init.w.reshape(sets.p, sets.columns)
    if answer is None:
        return PlaneBlocks(sets, C, start, before, near)
    found, factor = answer
    scales = C * factor * sets.weights
    if found.kind == Polymatroids.MODULAR and goes_straight(sets, found):
        most = np.repeat(scales, sets.labels.sizes) * found.tables
        blocks = LabelBlocks(sets, most)
        blocks._begin(start, before, C)
        return blocks
    if splits and init is not None:
        return SplitBlocks(sets, found, scales, C, init)
    zero = np.inf if init is None else C * init.risk_at_zero
    return SetBlocks(sets, found, scales, start, before, C, near, zero)


def is_near(init: Fit, C: float) -> bool:
    """Return whether the weights of a fit with another C are close to those at C."""
    return C != init.C and 1.0 / _NEAR <= C / init.C <= _NEAR


def _dual(W: FloatArray, total: float) -> float:
    return total - 0.5 * float(np.vdot(W, W))


def _largest(squares: FloatArray, offsets: IntArray) -> FloatArray:
    """Return the largest |x|^2 of each set, as the first estimate of its curvature."""
    return np.array([squares[a:b].max(initial=1e-300) for a, b in pairwise(offsets)])
