"""The risk of a linear model under a surrogate, and its subgradient, shard by shard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.learning import tree_sum
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.learning._executors import Executor
from setwise.losses._labels import Labels, read_labels
from setwise.losses._scoring._layout import Arrangement
from setwise.surrogates import Surrogate

# The number of scores per shard. Scores and gradients of a shard fit into a processor's cache, and
# a large sample has work for every thread. Shards depend on the data only, so that sums do not
# depend on the number of threads.
_SHARD_SCORES = 1 << 17


@dataclass(frozen=True, eq=False)
class Shard:
    """Some sets: their features, truths and weights, and the rows of W that score them.

    ``outputs`` are the rows of W. If the sets are columns, scores are transposed.
    """

    X: Any
    labels: Labels
    weights: FloatArray
    outputs: slice
    across: bool


class LinearRisk:
    r"""The risk :math:`\sum_i c_i\, S(y_i, X_i W^T)` as an oracle with a subgradient.

    For the rows, columns and cells of a matrix, W has a row of d weights for each of p labels; for
    groups and samples, one row shared by all. The last weight of each row is the intercept, if
    there is one. CSR features stay CSR. A call costs two products with X and one surrogate. The
    first call also computes what depends on the truths only.
    """

    def __init__(
        self, X: Any, sets: Arrangement, surrogate: Surrogate, intercept: bool, executor: Executor
    ) -> None:
        self.rows: int = sets.n_outputs
        self.columns: int = X.shape[1] + intercept
        self._surrogate, self._intercept, self._executor = surrogate, intercept, executor
        if not _is_identity(sets.order, X.shape[0]):
            X = X[sets.order]
        self._X, self._sets = X, sets
        self._shards = executor.place(cut(X, sets))

    @cached_property
    def _linear_sets(self) -> LinearSets:
        sets = self._sets
        offsets = None if sets.kind == "rows" else sets.offsets
        labels = replace(read_labels(sets.positive, offsets), kept={})
        return LinearSets(
            self._X, labels, sets.weights, self._surrogate, self._intercept, self, self._executor
        )

    def linear_sets(self) -> LinearSets:
        """Return the risk as linear sets; inner products are computed once for all C."""
        return self._linear_sets

    @property
    def dimension(self) -> int:
        """The length of w."""
        return self.rows * self.columns

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk and a subgradient."""
        W = w.reshape(self.rows, self.columns)
        part = ShardRisk(self._surrogate, self._intercept)
        if self._sets.kind != "columns":
            risk, gradient = self._executor.sums(part, self._shards, W)[0]
            return risk, gradient.ravel()
        # Each column has its own weights, so their slopes are concatenated.
        answers = self._executor.map(part, self._shards, W)
        gradient = np.concatenate([own for _, own in answers])
        return tree_sum(value for value, _ in answers), gradient.ravel()


@dataclass(frozen=True, eq=False)
class ShardRisk:
    """A function from (shard, W) to the risk of its sets and a subgradient in its rows of W."""

    surrogate: Surrogate
    intercept: bool

    def __call__(self, shard: Shard, W: FloatArray) -> tuple[float, FloatArray]:
        W = W[shard.outputs]
        scores = linear_scores(shard.X, W, self.intercept)
        labels = shard.labels
        given = scores.T if shard.across else scores
        if labels.layout == "rows":
            values, slopes = self.surrogate._of_labels(labels, given)
            weights = shard.weights[:, None]
        else:
            values, slopes = self.surrogate._of_labels(labels, given.reshape(-1))
            slopes = slopes.reshape(given.shape)
            weights = np.repeat(shard.weights, labels.sizes).reshape(given.shape)
        # The product overwrites the scores, which are no longer needed and are in the cache.
        slopes = np.multiply(slopes, weights, out=given)
        gradient = slope_of(shard.X, slopes.T if shard.across else slopes, self.intercept)
        return float(shard.weights @ np.asarray(values)), gradient


def slope_of(X: Any, slopes: NDArray[Any], intercept: bool) -> FloatArray:
    """Return the slope in W, (rows of W, columns), from slopes in the scores, (n, rows of W)."""
    features = X.shape[1]
    gradient = np.empty((slopes.shape[1], features + intercept))
    gradient[:, :features] = (X.T @ slopes).T
    if intercept:
        gradient[:, features] = slopes.sum(axis=0)
    return gradient


def linear_scores(X: Any, W: FloatArray, intercept: bool) -> FloatArray:
    """Return X times each row of W, plus the intercept in its last column: (n, rows of W)."""
    features = X.shape[1]
    scores = np.asarray(X @ np.ascontiguousarray(W[:, :features].T))
    if intercept:
        scores += W[:, features]
    return scores


def cut(X: Any, sets: Arrangement) -> list[Shard]:
    """Cut X into shards of whole sets, of about equal numbers of scores."""
    # Offsets count rows if there is a matrix of labels, otherwise elements.
    cost = np.diff(sets.offsets) * (sets.positive.shape[1] if sets.positive.ndim == 2 else 1)
    ends = np.cumsum(cost)
    count = max(1, int(ends[-1]) // _SHARD_SCORES) if len(ends) else 1
    # A shard ends with the first set at which the total cost reaches a multiple of the mean.
    cuts = np.unique(np.searchsorted(ends, ends[-1] * np.arange(1, count) / count) + 1)
    bounds = np.unique(np.concatenate([[0], cuts, [sets.n_sets]]))
    across = sets.kind == "columns"
    shards = []
    for begin, end in pairwise(bounds.tolist()):
        here = slice(sets.offsets[begin], sets.offsets[end])
        offsets = None
        if sets.positive.ndim == 1:
            offsets = sets.offsets[begin : end + 1] - sets.offsets[begin]
        labels = replace(read_labels(sets.positive[here], offsets), kept={})
        # Sets of columns and cells contain all samples.
        features = X if across or sets.kind == "cells" else X[here]
        outputs = here if across else slice(sets.n_outputs)
        shards.append(Shard(features, labels, sets.weights[begin:end], outputs, across))
    return shards


def _is_identity(order: IntArray, n: int) -> bool:
    return len(order) == n and bool(np.array_equal(order, np.arange(n)))
