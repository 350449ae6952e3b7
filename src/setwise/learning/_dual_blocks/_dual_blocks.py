"""Dual blocks: the exact step of one set after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._progress import Progress
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._cutting_planes._search import Search
from setwise.learning._dual_blocks._features import Features
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.losses._families import Polymatroids

# The passes see gaps that later steps of the same pass have changed.
_ENOUGH = 0.8


class Blocks(ABC):
    """b in C c_i times the polymatroid of each set, and W = sum of (y * b) x'."""

    def __init__(self, sets: LinearSets, C: float, start: FloatArray | None) -> None:
        self.features = Features(sets)
        self._executor = sets.executor
        labels = sets.labels
        self._shape = (sets.n, sets.p)
        self._positive = labels.positive
        self._signs = np.where(labels.positive.view(np.bool_), 1.0, -1.0)
        self.b = np.zeros(len(labels.positive)) if start is None else C * start
        self.passes = 0

    def weights(self) -> FloatArray:
        """W of the b at hand, summed anew: rounding of many small steps does not build up."""
        return self.features.weights((self._signs * self.b).reshape(self._shape))

    @abstractmethod
    def improve(self, W: FloatArray, passes: int, tol: float, room: float) -> None:
        """Some passes, from the weights of the b at hand, or fewer if they were enough."""

    @abstractmethod
    def excess(self) -> float:
        """By which factor b must shrink to be where it belongs: 1 but for rounding."""


class Labels(Blocks):
    """Boxes: a modular loss is a sum over the labels, and each is learned alone."""

    def __init__(
        self, sets: LinearSets, C: float, most: FloatArray, start: FloatArray | None
    ) -> None:
        super().__init__(sets, C, start)
        n, p = self._shape
        self._most = _columns(most, n, p)
        self._truth = _columns(self._positive, n, p)
        self._left = np.ones(p, np.bool_)
        self._share = _ENOUGH

    def improve(self, W: FloatArray, passes: int, tol: float, room: float) -> None:
        """Each label that is not done yet, over threads."""
        if not self._left.any():
            self._left[:] = True
            self._share /= 2
        b, state = _columns(self.b, *self._shape), self.features.label_state(W)

        def one(j: int) -> int:
            return _core.hinge_passes(
                self.features.rows,
                self._truth[j],
                self._most[j],
                self._share * tol,
                passes,
                self.passes,
                b[j],
                state[j],
            )

        left = np.flatnonzero(self._left)
        try:
            done = self._executor.map(one, left.tolist())
        finally:
            self.b = b.T.ravel()
        self._left[left] = np.array(done) == passes
        self.passes += passes

    def excess(self) -> float:
        """A box is kept to the last bit."""
        return 1.0


class Sets(Blocks):
    """Polymatroids in general, one set after the other on one thread."""

    def __init__(
        self, sets: LinearSets, C: float, found: Polymatroids, scales: FloatArray, start: FloatArray | None
    ) -> None:
        super().__init__(sets, C, start)
        labels = sets.labels
        self._by_label = sets.by_label
        self._sets = _core.SetBlocks(labels.positive, labels.offsets, scales, *found.call)
        squares = self.features.squares()
        self._curvature = squares if sets.by_label else _largest(squares, labels.offsets)
        self._gaps = np.zeros(labels.n)
        self._rest = np.zeros((labels.n, 2), np.int32)

    def improve(self, W: FloatArray, passes: int, tol: float, room: float) -> None:
        self._rest[:, 0] = 0
        self.passes += _core.set_passes(
            self.features.rows,
            self._sets,
            self._by_label,
            _ENOUGH * tol * room,
            passes,
            self.passes,
            self.b,
            self.features.state(W).ravel(),
            self._gaps,
            self._curvature,
            self._rest.ravel(),
        )

    def excess(self) -> float:
        return _core.largest_excess(self._sets, self.b)


def dual_blocks(
    sets: LinearSets,
    C: float,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[Progress], object] | None,
    init: Fit | None = None,
) -> Fit | None:
    r"""Minimise 1/2 |W|^2 + C risk(W) by exact steps of the dual, set by set.

    For an increasing submodular F_i the Lovász hinge is a maximum over a polymatroid, and the dual

    .. math:: \max_b\ \sum_i b_i(V) - \tfrac12 \Bigl| \sum_i (y_i * b_i) x_i^T \Bigr|^2,
        \qquad b_i \in C c_i\, \{b \ge 0,\ b(A) \le F_i(A)\},

    where the best :math:`b_i`, all others fixed, is the projection of :math:`b_i + (1 - y_i * W
    x_i) / |x_i|^2`: sort and pool. For a modular loss the polymatroid is a box, and this is dual
    coordinate descent for each label. A round is some passes over the sets in random order, always
    the same, and then W anew, the risk there and the bound. A pass costs O(n d p + n p log p).

    None where the surrogate is no such maximum.
    """
    search = Search(sets.dimension, C, tol, max_iter, callback)
    start = None if init is None else init.dual
    blocks = _blocks(sets, search.C, start)
    if blocks is None:
        return None
    W = np.zeros((sets.p, sets.columns))
    if init is not None:
        search.offer(W.ravel(), init.risk_at_zero)
    if start is not None:
        W = blocks.weights()
    try:
        while True:
            w = W.ravel()
            risk, _ = search.checked(sets.risk(w.copy()), w)
            search.offer(w, risk)
            total, squares = float(blocks.b.sum()), 0.5 * float(w @ w)
            shrink = 1.0 / blocks.excess()
            if search.end_round(shrink * (total - shrink * squares), total + squares):
                break
            blocks.improve(W, max(1, blocks.passes // 3), search.tol, search.room)
            W = blocks.weights()
    except KeyboardInterrupt:
        search.interrupt()
    return search.fit(learner="dual_blocks", dual=blocks.b / search.C)


def _blocks(sets: LinearSets, C: float, start: FloatArray | None) -> Blocks | None:
    answer = sets.surrogate._polymatroids(sets.labels)
    if answer is None:
        return None
    found, factor = answer
    scales = C * factor * sets.weights
    if found.weights is not None:
        most = np.repeat(scales, sets.labels.sizes) * found.weights
        return Labels(sets, C, most, start)
    return Sets(sets, C, found, scales, start)


def _columns(flat: FloatArray, n: int, p: int) -> FloatArray:
    """(n p,) as (p, n): a row a label."""
    return np.array(flat.reshape(n, p).T, order="C")


def _largest(squares: FloatArray, offsets: IntArray) -> FloatArray:
    """The largest |x|^2 of each set, the first guess of its curvature."""
    ends = [squares[a:b].max(initial=1e-300) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    return np.array(ends)
