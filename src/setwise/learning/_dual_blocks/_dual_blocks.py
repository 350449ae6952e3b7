"""Dual blocks: the exact step of one set after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._progress import Progress
from setwise.learning._cutting_planes._fit import Fit, Planes
from setwise.learning._cutting_planes._search import Search
from setwise.learning._dual_blocks._acceleration import Acceleration
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.losses._families import Polymatroids

T = TypeVar("T", bound=np.generic)

# The passes see gaps that later steps of the same pass have changed.
_ENOUGH = 0.8
# The most passes of a stage, and of the first, which has nothing to be measured by.
_STAGE, _FIRST = 50, 3
# The passes of the first round, and the most; in between half as many as all before.
_BEGIN, _MOST = 4, 100
# Of so many examples a feature at the most, a label by itself converges soon without a pull.
_WIDE = 3.0


class Blocks(ABC):
    """b in C c_i times the polymatroid of each set, and W = sum of (y * b) x'."""

    def __init__(self, sets: LinearSets, C: float, start: FloatArray | None) -> None:
        self.features = sets.features
        labels = sets.labels
        self._shape = (sets.n, sets.p)
        self._signs = np.where(labels.positive.view(np.bool_), 1.0, -1.0)
        self.b = np.zeros(len(labels.positive)) if start is None else start
        if start is not None:
            # As far along the ray as the dual rises: C where most elements are at their bounds.
            W = self.weights()
            squares = float(np.vdot(W, W))
            self.b = min(C, float(start.sum()) / squares if squares > 0.0 else C) * start
        self.passes = 0
        self.W = self.inner = self.weights()

    def weights(self) -> FloatArray:
        """W of the b at hand, summed anew: rounding of many small steps does not build up."""
        return self.features.weights((self._signs * self.b).reshape(self._shape))

    @abstractmethod
    def improve(self, passes: int, tol: float, room: float) -> None:
        """So many passes, or fewer if they are enough, and then W of the new b.

        ``inner`` is where the steps have led, W or near it.
        """

    @abstractmethod
    def excess(self) -> float:
        """By which factor b must shrink to be where it belongs: 1 but for rounding."""


class LabelBlocks(Blocks):
    """Boxes: a modular loss is a sum over the labels, and each is learned alone."""

    def __init__(
        self, sets: LinearSets, C: float, most: FloatArray, start: FloatArray | None
    ) -> None:
        super().__init__(sets, C, start)
        self._executor = sets.executor
        self._most = self._by_label(most)
        self._truth = self._by_label(sets.labels.positive)
        self._left = np.ones(sets.p, np.bool_)
        self._share = _ENOUGH

    def improve(self, passes: int, tol: float, room: float) -> None:
        """Each label that is not done yet, over threads."""
        if not self._left.any():
            self._left[:] = True
            self._share /= 2
        b, state = self._by_label(self.b), self.features.label_state(self.W)
        rows, share, first = self.features.rows, self._share * tol, self.passes

        def one(j: int) -> int:
            truth, most = self._truth[j], self._most[j]
            return _core.hinge_passes(rows, truth, most, share, passes, first, b[j], state[j])

        left = np.flatnonzero(self._left)
        done = self._executor.map(one, left.tolist())
        self.b = b.T.ravel()
        self._left[left] = np.array(done) == passes
        self.passes += passes
        self.W = self.inner = self.weights()

    def excess(self) -> float:
        """A box is kept to the last bit."""
        return 1.0

    def _by_label(self, flat: NDArray[T]) -> NDArray[T]:
        """(n p,) as (p, n)."""
        return np.array(flat.reshape(self._shape).T, order="C")


class SetBlocks(Blocks):
    """Polymatroids in general, one set after the other on one thread."""

    def __init__(
        self,
        sets: LinearSets,
        C: float,
        found: Polymatroids,
        scales: FloatArray,
        start: FloatArray | None,
    ) -> None:
        super().__init__(sets, C, start)
        labels = sets.labels
        self._of_labels = sets.by_label
        self._sets = _core.SetBlocks(
            labels.positive, labels.offsets, scales, found.kind, found.tables, found.starts
        )
        squares = self.features.squares()
        price = float(scales.mean() * squares.mean()) if len(scales) else 0.0
        self._acceleration = Acceleration(price, sets.n, sets.columns, self.W)
        if not sets.by_label:
            squares = _largest(squares, labels.offsets)
        self._curvature = np.maximum(self._acceleration.gain * squares, 1e-300)
        self._gaps = np.zeros(labels.n)
        self._rest = np.zeros((labels.n, 2), np.int32)

    def improve(self, passes: int, tol: float, room: float) -> None:
        """Stages of passes, each with its pull."""
        end = self.passes + passes
        pulled = self._acceleration
        while self.passes < end:
            W = pulled.begin(self.W)
            self._rest[:, 0] = 0
            most, target = end - self.passes, _ENOUGH * tol * room
            if pulled.pull:
                most, target = min(most, _STAGE), pulled.accuracy
            done = _core.set_passes(
                self.features.rows,
                self._sets,
                self._of_labels,
                target,
                most if pulled.accuracy or not pulled.pull else min(most, _FIRST),
                self.passes,
                pulled.gain,
                self.b,
                self.features.state(W).ravel(),
                self._gaps,
                self._curvature,
                self._rest.ravel(),
            )
            self.passes += done
            self.W = self.weights()
            self.inner = pulled.end(self.W)
            if not pulled.pull:
                break

    def excess(self) -> float:
        """As the kernel of the family measures it."""
        return _core.largest_excess(self._sets, self.b)


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
) -> Fit:
    r"""Minimise 1/2 |W|^2 + C risk(W) by exact steps of the dual, set by set.

    For an increasing submodular F_i the Lovász hinge is a maximum over a polymatroid, and the dual

    .. math:: \max_b\ \sum_i b_i(V) - \tfrac12 \Bigl| \sum_i (y_i * b_i) x_i^T \Bigr|^2,
        \qquad b_i \in C c_i\, \{b \ge 0,\ b(A) \le F_i(A)\},

    where the best :math:`b_i`, all others fixed, is the projection of :math:`b_i + (1 - y_i * W
    x_i) / |x_i|^2`: sort and pool. For a modular loss the polymatroid is a box, and this is dual
    coordinate descent for each label. A round is some passes over the sets in random order, always
    the same, and then W anew, the risk there and the bound. A pass costs O(n d p + n p log p).

    The surrogate must be such a maximum. ``init`` is a fit of the same risk at any C, whose dual is
    a start; ``most_passes`` ends the fit as ``max_iter`` does.
    """
    search = Search(sets.dimension, C, tol, max_iter, callback, time_limit=time_limit)
    blocks = _blocks(sets, search.C, None if init is None else init.dual)
    known = -np.inf
    try:
        if init is not None:
            search.offer(np.zeros(sets.dimension), init.risk_at_zero)
            _offer(init.w, sets, search)
            known = init.bound if init.C == search.C else known
        while True:
            _offer(blocks.inner, sets, search)
            if blocks.inner is not blocks.W:
                _offer(blocks.W, sets, search)
            total, squares = float(blocks.b.sum()), 0.5 * float(np.vdot(blocks.W, blocks.W))
            shrink = 1.0 / blocks.excess()
            lower = shrink * (total - shrink * squares)
            if search.end_round(max(lower, known), total + squares):
                break
            if blocks.passes >= most_passes:
                break
            passes = min(max(_BEGIN, blocks.passes // 2), _MOST, most_passes - blocks.passes)
            blocks.improve(passes, search.tol, search.room)
    except KeyboardInterrupt:
        search.interrupt()
    return search.fit("dual_blocks", _plane(blocks, search.C), blocks.b / search.C)


def _offer(W: FloatArray, sets: LinearSets, search: Search) -> None:
    """The objective of the weights, for the search."""
    w = W.ravel()
    risk, _ = search.ask(sets.risk, w)
    search.offer(w, risk)


def _plane(blocks: Blocks, C: float) -> Planes:
    """b is a plane below the risk, which proves the same bound at C and some at every other."""
    share = 1.0 / (blocks.excess() * C)
    return Planes(-share * blocks.weights().reshape(1, -1), np.array([share * blocks.b.sum()]))


def _blocks(sets: LinearSets, C: float, start: FloatArray | None) -> Blocks:
    answer = sets.surrogate._polymatroids(sets.labels)
    assert answer is not None
    found, factor = answer
    scales = C * factor * sets.weights
    if found.kind == Polymatroids.MODULAR and sets.n <= _WIDE * sets.columns:
        most = np.repeat(scales, sets.labels.sizes) * found.tables
        return LabelBlocks(sets, C, most, start)
    return SetBlocks(sets, C, found, scales, start)


def _largest(squares: FloatArray, offsets: IntArray) -> FloatArray:
    """The largest |x|^2 of each set, the first guess of its curvature."""
    return np.array([squares[a:b].max(initial=1e-300) for a, b in pairwise(offsets)])
