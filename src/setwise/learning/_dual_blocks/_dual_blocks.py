"""Dual blocks: the exact step of one set after the other."""

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
from setwise.learning._cutting_planes._search import Search
from setwise.learning._dual_blocks._acceleration import Acceleration
from setwise.learning._dual_blocks._blocks import ENOUGH, Blocks, PulledBlocks
from setwise.learning._dual_blocks._central_path import hinge_path
from setwise.learning._dual_blocks._element_blocks import (
    ElementBlocks,
    PolymatroidBlocks,
    best_part,
)
from setwise.learning._dual_blocks._extrapolation import LEAST, WIDE, Extrapolation
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.learning._dual_blocks._path_blocks import PathBlocks, dense
from setwise.learning._dual_blocks._plane_blocks import PlaneBlocks
from setwise.learning._dual_blocks._splitting import SplitBlocks
from setwise.losses._families import Polymatroids

T = TypeVar("T", bound=np.generic)

# The passes of the first round, and the most; in between half as many as all before.
_BEGIN, _MOST = 4, 100
# Passes between extrapolations.
_STEPS = 6
# Where weights are nearly known: passes before the first look at a gap, and what is left of a gap
# after the pass that met it, at the most.
_UNSEEN, _AFTER = 3, 2 / 3
# The weights of a price within this factor are nearly those of another.
_NEAR = 12.0
# Labels that are not done after so many passes get Newton's steps, where these have room.
_BEFORE_STEPS, _STEP_COLUMNS, _STEP_NUMBERS = 300, 1500, 1 << 22


class LabelBlocks(ElementBlocks):
    """Boxes: a modular loss is a sum over the labels, and each is learned alone."""

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
        self._takes_steps = sets.columns <= _STEP_COLUMNS and sets.n * sets.columns <= _STEP_NUMBERS

    def improve(self, passes: int, tol: float, room: float) -> None:
        """Each label that is not done yet, over threads."""
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
        if inner:  # the weights of the path are better than those of its dual
            self.inner = self.W.copy()
            self.inner[list(inner)] = np.array(list(inner.values()))

    def _inside(self, b: FloatArray) -> FloatArray:
        return np.minimum(b, self._flat)

    def excess(self) -> float:
        """A box is kept to the last bit."""
        return 1.0

    def _by_label(self, flat: NDArray[T]) -> NDArray[T]:
        """(n p,) as (p, n)."""
        return np.array(flat.reshape(self._shape).T, order="C")


class SetBlocks(PolymatroidBlocks, PulledBlocks):
    """Polymatroids in general, one set after the other on one thread.

    Stages that pull towards weights which are nearly known have one pass each, where sets are rows
    and no boxes. Their duals swing about the best one as the pull moves on: what counts is the best
    mixture, found as it grows.
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

    def _unmeasured(self) -> float:
        """The first passes are never enough: their gaps are not asked for."""
        return -1.0 if self._mixes and self.passes < _UNSEEN else 0.0

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
        """The gap after a pass: what the next one would meet, if it fell as from the last."""
        before, self._met = self._met, met
        return met * (min(met / before, _AFTER) if before < np.inf else _AFTER)

    def _room(self) -> float:
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
        """So many passes, or fewer if the gap as it was met is within the target."""
        if target > 0.0:  # else the passes of one call are part of those of many
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
        """The same in one order, from where they seem to lead if the dual is higher after that."""
        end = self.passes + most
        path = self._path
        if not path.begun:
            path.begin(self.b)
        while self.passes < end:
            self._pass(1, target, 0, state)
            full = path.add(self.b)
            if self._gaps.sum() <= self._trust * target:
                self._trust /= 2  # if it was not enough
                break
            if not full:
                continue
            limit = path.limit()
            if limit is not None:
                before, dual = (self.b, state), self._dual_at(state)
                try:
                    self.b = limit
                    state = self.features.state_of(self._signed()).ravel()
                    self._pass(1, target, 0, state)
                    higher = self._dual_at(state) >= dual
                except KeyboardInterrupt:  # the limit is no dual before each set was projected
                    self.b = before[0]
                    raise
                if higher:
                    np.maximum(self.b, 0.0, out=self.b)  # a step that is rounding is not made
                else:
                    self.b, state = before
            path.begin(self.b)

    def _dual_at(self, state: FloatArray) -> float:
        """The dual of b, whose state this is."""
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

    where the best :math:`b_i`, all others fixed, is the projection of :math:`b_i + (1 - y_i * W
    x_i) / |x_i|^2`: sort and pool. For a modular loss the polymatroid is a box, and this is dual
    coordinate descent for each label. A round is some passes over the sets in random order, always
    the same, and then W anew, the risk there and the bound. A pass costs O(n d p + n p log p).

    Any other convex surrogate of the labels of a row has the dual over planes below it, of which
    some are kept for each set (``PlaneBlocks``). ``init`` is a fit of the same risk at any C, whose
    dual is a start; ``most_passes`` ends the fit as ``max_iter`` does. ``by`` steps: Newton's, for
    all sets together instead (``PathBlocks``), whose number hardly depends on C; by splitting:
    weights and dual in turn, from a fit of a price nearby (``SplitBlocks``).
    """
    search = Search(sets.dimension, C, tol, max_iter, callback, time_limit=time_limit)
    blocks: Blocks
    if by == "steps":
        start = None if init is None else init.dual
        blocks = PathBlocks(sets, search.C, start, _gap_at(init, search.C))
    else:
        blocks = _blocks(sets, search.C, init, by == "splitting")
    excess: float | None = None
    try:
        if init is not None:
            search.offer(np.zeros(sets.dimension), init.risk_at_zero)
            if not np.shares_memory(blocks.inner, init.w):
                _offer(init.w, sets, search)
            if init.C == search.C:
                search.know(init.bound, init.size)
        while True:
            for W in blocks.candidates():
                _offer(W, sets, search)
            total, squares = blocks.total, 0.5 * float(np.vdot(blocks.W, blocks.W))
            excess = blocks.excess()
            shrink = 1.0 / excess
            lower = shrink * (total - shrink * squares)
            if search.end_round(lower, total + squares):
                break
            if blocks.passes >= most_passes or blocks.stuck:
                break
            first = _BEGIN if init is None else blocks.begin_warm
            passes = min(max(first, blocks.passes // 2), _MOST, most_passes - blocks.passes)
            excess = None
            blocks.improve(passes, search.tol, search.room)
    except KeyboardInterrupt:
        search.interrupt()
    return search.fit(blocks.name, _plane(blocks, search.C, excess), blocks.dual(search.C))


def _gap_at(init: Fit | None, C: float) -> float:
    """How far an earlier fit can be from the best of this C."""
    if init is None:
        return 0.0
    ratio = max(C / init.C, init.C / C)
    return ratio * init.gap + (ratio - 1.0) * min(C, init.C) * init.risk_at_zero


def _offer(W: FloatArray, sets: LinearSets, search: Search) -> None:
    """The objective of the weights, for the search."""
    w = W.ravel()
    risk, _ = search.ask(sets.risk, w)
    search.offer(w, risk)


def _plane(blocks: Blocks, C: float, excess: float | None) -> Planes:
    """The dual is a plane below the risk, which proves the same bound at C, some at every other.

    Its excess, if it is known: a fit that was interrupted has a dual that was not summed yet.
    """
    if excess is None:
        blocks.renew()
        excess = blocks.excess()
    share = 1.0 / (excess * C)
    return Planes(-share * blocks.W.reshape(1, -1), np.array([share * blocks.total]))


def goes_straight(sets: LinearSets, found: Polymatroids) -> bool:
    """Whether passes converge soon without a pull; steps of labels are exact, of groups not."""
    if found.kind == Polymatroids.MODULAR:
        return sets.n <= WIDE * sets.columns
    return sets.by_label and LEAST <= sets.n / max(sets.columns, 1) <= WIDE


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
    """Whether the weights of another price are a place to be pulled to."""
    return C != init.C and 1.0 / _NEAR <= C / init.C <= _NEAR


def _dual(W: FloatArray, total: float) -> float:
    return total - 0.5 * float(np.vdot(W, W))


def _largest(squares: FloatArray, offsets: IntArray) -> FloatArray:
    """The largest |x|^2 of each set, the first guess of its curvature."""
    return np.array([squares[a:b].max(initial=1e-300) for a, b in pairwise(offsets)])
