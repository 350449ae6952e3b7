"""The linear program over a fixed pool of trees, and the choice of its C."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._clock import Deadline
from setwise._foundation._threads import one_thread
from setwise.estimators._boosting._class_risk import ClassRisk
from setwise.estimators._boosting._path_of_c import PATH_TOLERANCE
from setwise.estimators._thinning._pool import TreePool
from setwise.learning import struct_boost
from setwise.learning._boosting._boost_fit import BoostFit
from setwise.learning._relative_gap import share_left

# The ratio of consecutive values of C, about that of the path of a booster, and the largest number
# of values, whose last is 6561 times the least useful C.
_FACTOR, _MOST_VALUES = 3.0, 8


@dataclass(frozen=True, eq=False)
class Thinning:
    """Weights of the columns, (n_ids,), with their certificate.

    ``value`` is the objective of these weights, after small weights were dropped within the
    tolerance. ``bound`` is the bound of the fit.
    """

    weights: FloatArray
    value: float
    relative_gap: float
    fit: BoostFit

    @cached_property
    def kept(self) -> IntArray:
        return np.flatnonzero(self.weights)


@dataclass(frozen=True, eq=False)
class ThinningProblem:
    r"""The problem min 1'w + C R(f) over w >= 0, where f is the weighted sum of a pool's columns.

    R is the mean over the rows of :math:`\max_y \Delta(y_i, y) + f_y(x_i) - f_{y_i}(x_i)`.
    """

    pool: TreePool
    y: IntArray
    weight: FloatArray
    cost: FloatArray
    shared: bool

    @property
    def n_scores(self) -> int:
        return 1 if len(self.cost) == 2 else len(self.cost)

    @cached_property
    def risk(self) -> ClassRisk:
        two = self.n_scores == 1
        code = np.array([[-0.5], [0.5]]) if two else None
        return ClassRisk(self.y, self.cost, code, self.weight, one_segment=self.shared)

    def take(self, rows: IntArray) -> ThinningProblem:
        return replace(self, pool=self.pool.take(rows), y=self.y[rows], weight=self.weight[rows])

    @cached_property
    def threshold(self) -> float:
        """The smallest C above which w = 0 is not optimal."""
        _, slope = self.risk(np.zeros(self.n_scores * len(self.y)))
        column = self.pool(-slope)[0]
        begin = column.segment * len(column.response)
        edge = float(-slope[begin : begin + len(column.response)] @ column.response)
        return 1.0 / max(edge, 1e-12)

    def solve(
        self,
        C: float,
        tol: float,
        start: IntArray | None = None,
        deadline: Deadline | None = None,
    ) -> Thinning:
        """Find the weights to within ``tol``. Half of it is used for dropping small weights.

        The best weights of cutting planes lie between vertices and have more entries than a vertex.
        The smallest ones are dropped as long as the value allows it, by a binary search.
        """
        if start is not None:
            self.pool.start = start
        n = len(self.pool)
        with one_thread():  # sums in BLAS depend on the number of threads
            fit = struct_boost(
                self.risk,
                self.pool,
                C,
                tol=tol / 2,
                n_estimators=n + 1,
                columns_per_round=n,
                time_limit=None if deadline is None else deadline.inherited,
            )
            weights = np.zeros(self.pool.n_ids)
            weights[[column.learner for column in fit.columns]] = fit.w
            return self._sparse(weights, fit, C, tol)

    def limited(self, C: float, tol: float, T: int, most: int, deadline: Deadline) -> Thinning:
        """Keep at most ``most`` of the T trees, dropping a third per round, smallest weights first.

        The bound still holds for all trees and weights, so the gap includes the cost of the limit.
        At the time limit, all surplus trees are dropped at once, and the others keep their weights.
        """
        whole = thinning = self.solve(C, tol, deadline=deadline)
        while not thinning.fit.interrupted:
            kept = thinning.kept[thinning.kept < T]
            if len(kept) <= most:
                break
            order = np.argsort(-thinning.weights[kept], kind="stable")
            if deadline.over():
                weights = thinning.weights.copy()
                weights[kept[order[most:]]] = 0.0
                thinning = replace(thinning, weights=weights, value=self._value(weights, C))
                break
            trees = kept[order[: max(most, 2 * len(kept) // 3)]]
            constants = np.arange(T, self.pool.n_ids)
            some = replace(self, pool=self.pool.only(np.concatenate([trees, constants])))
            thinning = some.solve(C, tol, deadline=deadline)
        bound, zero = whole.fit.bound, whole.fit.zero
        gap = share_left(thinning.value, bound, zero, whole.fit.rounding)
        interrupted = thinning.fit.interrupted
        fit = replace(whole.fit, interrupted=interrupted)
        return Thinning(thinning.weights, thinning.value, gap, fit)

    def _sparse(self, weights: FloatArray, fit: BoostFit, C: float, tol: float) -> Thinning:
        order = np.argsort(weights, kind="stable")
        order = order[weights[order] > 0]
        best = Thinning(weights, fit.value, fit.relative_gap, fit)
        # Dropping `few` is known to be within tol, dropping `many` is not.
        few, many = 0, len(order)
        while many - few > 1 and not fit.interrupted:
            middle = (few + many) // 2
            some = weights.copy()
            some[order[:middle]] = 0.0
            value = self._value(some, C)
            gap = share_left(value, fit.bound, fit.zero, fit.rounding)
            if gap <= max(tol, best.relative_gap):
                few, best = middle, Thinning(some, value, gap, fit)
            else:
                many = middle
        return best

    def _value(self, weights: FloatArray, C: float) -> float:
        scores = self.pool.scores(weights, self.n_scores)
        return float(weights.sum()) + C * self.risk(scores.ravel())[0]

    def losses(self, weights: FloatArray) -> FloatArray:
        """Return the cost of each row for the class that the weighted columns predict."""
        scores = self.pool.scores(weights, self.n_scores)
        chosen = (scores[0] > 0).astype(np.int64) if len(scores) == 1 else scores.argmax(axis=0)
        costs: FloatArray = self.cost[self.y, chosen]
        return costs


@dataclass(frozen=True, eq=False)
class CostPath:
    """The values of C that were tried, their cross-validated loss and mean number of columns."""

    C: FloatArray
    loss: FloatArray
    n_kept: FloatArray

    @property
    def best(self) -> float:
        """The smallest C with the lowest loss."""
        return float(self.C[self.loss.argmin()])


def cross_validated(problem: ThinningProblem, cv: int, deadline: Deadline) -> CostPath:
    """Compute the cross-validated losses for values of C that grow by _FACTOR.

    The first value is the threshold at which a column enters. The path ends after the first
    value without a lower loss, or when the time is over. Each fold starts with the columns that it
    used at the previous C.
    """
    folds = folds_of(problem.y, cv)
    unseen = [np.flatnonzero(folds == k) for k in range(cv)]
    parts = [
        (problem.take(np.flatnonzero(folds != k)), problem.take(rows))
        for k, rows in enumerate(unseen)
    ]
    share = problem.weight / problem.weight.sum()
    kept: list[IntArray] = [np.empty(0, np.int64)] * cv
    tried: list[tuple[float, float, float]] = []
    least, lower, C = np.inf, True, problem.threshold
    while lower and len(tried) < _MOST_VALUES and not (tried and deadline.over()):
        C *= _FACTOR
        loss = 0.0
        for k, (learnt, unfitted) in enumerate(parts):
            with warnings.catch_warnings():
                # A C that is too small for any tree is not an error here.
                warnings.simplefilter("ignore", UserWarning)
                thinning = learnt.solve(C, PATH_TOLERANCE, kept[k])
            if thinning.fit.interrupted:
                raise KeyboardInterrupt
            kept[k] = thinning.kept
            loss += float(share[unseen[k]] @ unfitted.losses(thinning.weights))
        tried.append((C, loss, float(np.mean([len(own) for own in kept]))))
        lower, least = loss < least, min(loss, least)
    return CostPath(*np.array(tried).T.copy())


def folds_of(y: IntArray, cv: int) -> IntArray:
    """Return a fold for each row, stratified by class. Only ``y`` and ``cv`` determine it."""
    order = np.random.default_rng(0).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), np.int64)
    folds[order] = np.arange(len(y)) % cv
    return folds
