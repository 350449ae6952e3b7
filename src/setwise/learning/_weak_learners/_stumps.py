"""Decision stumps, and the search for the best ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise.learning._boosting._problem import Column
from setwise.learning._weak_learners._category_stumps import CategoryStump
from setwise.learning._weak_learners._one_feature import (
    FeatureSearch,
    OneFeature,
    check_threshold,
    midway,
    ranks_of,
    rounding_of,
)
from setwise.learning._weak_learners._rows import (
    as_segments,
    check_missing,
    check_sign,
    feature_of,
)
from setwise.learning._weak_learners._tables import add_categories, add_dense, add_sparse
from setwise.learning._weak_learners._traits import as_categorical, as_trends


@dataclass(frozen=True)
class Stump(OneFeature):
    """A decision stump: ``sign`` if a feature exceeds a threshold, else ``-sign``.

    Parameters
    ----------
    feature : int
    threshold : float
        ``-inf`` makes the stump constant, except for missing values.
    sign : {1, -1}
    missing : {0, 1, -1}, default=0
        The response if the feature is missing (NaN). A search sets it to 0, so that the stump
        contributes nothing, if there was no missing value. A constant then still responds ``sign``.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> search = sw.learning.StumpSearch([[0.0, 0.0], [0.0, 1.0]])
    >>> stump = search(np.array([1.0, -1.0]))[0].learner
    >>> stump
    Stump(feature=1, threshold=0.5, sign=-1, missing=0)
    >>> stump.predict([[0.0, 0.2], [0.0, 0.7], [0.0, float("nan")]]).tolist()
    [1.0, -1.0, 0.0]
    """

    feature: int
    threshold: float
    sign: int
    missing: int = 0

    def __post_init__(self) -> None:
        check_threshold(self.feature, self.threshold)
        check_sign(self.sign)
        check_missing(self.missing)

    def _respond(self, X: Any) -> FloatArray:
        values = feature_of(X, self.feature)
        answers = np.where(values > self.threshold, float(self.sign), -float(self.sign))
        missing = np.isnan(values)
        if missing.any():
            one_sided = self.threshold == -np.inf and self.missing == 0
            answers[missing] = self.sign if one_sided else self.missing
        return answers

    @property
    def _constant(self) -> bool:
        return self.threshold == -np.inf and self.missing != -self.sign


class StumpSearch(FeatureSearch):
    r"""An exact search for the decision stumps h with the largest :math:`\sum_i U_{ki} h(x_i)`.

    The search covers all features, thresholds (midpoints between neighbouring values), signs and
    segments k of the weights U, and constants. Features are sorted once. A search then takes O(m d)
    additions per segment, for several segments in one pass: over the sorted rows of a feature, or
    with one sum per value if a feature has few values. The zeros of a sparse matrix are not
    visited, so that the cost is O(number of non-zeros).

    Missing values (NaN) of a feature go to the better of the two sides: with N the sum of their
    weights, every threshold gains :math:`|N|`. A stump on a categorical feature is any subset S of
    the categories, with response 1 inside and -1 outside. The gain is linear in the response of
    each category. Therefore the best S consists of the categories with a positive sum of weights,
    and gains :math:`\sum_c |\sum_{i: x_i = c} U_{ki}|`. Missing values are one more category.

    Of stumps with equal gain up to rounding (1e-12 of the sum of abs(U)), the one with the first
    feature, segment and threshold is taken, in this order. Therefore a repeated row and a row of
    weight 2 give the same answer, and so do sparse and dense rows.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
        Finite, or NaN for missing values. A C-ordered float64 array is not copied.
    n_columns : int, default=1
        The number of stumps to return, best first: at most one per pair of feature and segment, and
        at most ``ceil(n_columns / n_segments)`` per segment.
    categorical_features : array of bools (d,) or of indices, optional
        The features whose values are categories. A feature may have at most 65536 categories,
        including that of missing values.
    monotonic_cst : array of shape (d,), optional
        1 for features in which a stump may only increase, -1 for features in which it may only
        decrease, 0 for others. Constants and the side of missing values are not constrained.
    n_jobs : int, optional
        The number of threads. None means one, -1 all cores. The answer does not depend on it.

    Attributes
    ----------
    exact : bool
        True.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import StumpSearch
    >>> search = StumpSearch(np.array([[0.0], [1.0], [2.0]]))
    >>> best = search(np.array([1.0, -1.0, -1.0]))[0]
    >>> best.learner, best.response.tolist()
    (Stump(feature=0, threshold=0.5, sign=-1, missing=0), [1.0, -1.0, -1.0])
    >>> search = StumpSearch(np.array([[0.0], [1.0], [2.0]]), categorical_features=[0])
    >>> search(np.array([1.0, -1.0, 1.0]))[0].learner
    CategoryStump(feature=0, positive=(0.0, 2.0), negative=(1.0,), missing=0)
    """

    def __init__(
        self,
        X: Any,
        n_columns: int = 1,
        *,
        categorical_features: ArrayLike | None = None,
        monotonic_cst: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(X, n_columns, n_jobs)
        rows, features = self.X.shape
        self._categorical = as_categorical(categorical_features, features)
        self._trends = as_trends(monotonic_cst, self._categorical)
        self._search = _core.StumpSearch(rows)
        self._categories: dict[int, FloatArray] = {}
        self._missing = [self._add(f) for f in range(features)]

    def __call__(self, weights: FloatArray) -> list[Column]:
        """Return the best stumps for weights of shape (n_segments m,) or (n_segments, m)."""
        segments = as_segments(weights, self.X.shape[0])
        rounding = rounding_of(segments)
        pairs = self._best_pairs(self._ranks(segments))
        return [self._column(segments, rounding, *pair) for pair in pairs]

    def _settings(self) -> dict[str, Any]:
        return {"categorical_features": self._categorical, "monotonic_cst": self._trends}

    def _ranks(self, segments: FloatArray) -> FloatArray:
        """Return the best gain of each feature and segment, in multiples of the rounding error."""
        gains = np.empty((self.X.shape[1], len(segments)))
        self._search.gains(segments, gains, self._n_threads)
        return ranks_of(gains, rounding_of(segments))

    def _best_pairs(self, gains: FloatArray) -> list[tuple[int, int]]:
        """Return the best pairs of feature and segment, best first."""
        segments = gains.shape[1]
        if self.n_columns == 1:
            return [divmod(int(gains.argmax()), segments)]
        quota = -(-self.n_columns // segments)
        taken = np.zeros(segments, np.int64)
        pairs: list[tuple[int, int]] = []
        for place in np.argsort(-gains, axis=None, kind="stable").tolist():
            feature, segment = divmod(place, segments)
            if taken[segment] < quota:
                taken[segment] += 1
                pairs.append((feature, segment))
            if len(pairs) == self.n_columns:
                break
        return pairs

    def _column(self, segments: FloatArray, rounding: float, feature: int, segment: int) -> Column:
        find = self._subset if feature in self._categories else self._threshold
        stump = find(segments[segment], rounding, feature)
        return Column(stump, segment, stump._respond(self.X))

    def _threshold(self, weights: FloatArray, rounding: float, feature: int) -> Stump:
        gain, low, high, apart = self._search.locate(weights, feature, rounding)
        if low < 0 and high < 0:
            threshold = -np.inf
        else:
            threshold = midway(self._value(low, feature), self._value(high, feature))
        sign = 1 if gain >= 0 else -1
        missing = 0
        if self._missing[feature]:
            missing = sign if abs(apart) <= rounding else int(np.sign(apart))
        return Stump(feature, threshold, sign, missing)

    def _subset(self, weights: FloatArray, rounding: float, feature: int) -> Stump | CategoryStump:
        categories = self._categories[feature]
        sums = np.empty(len(categories))
        self._search.sums(weights, feature, sums)
        usual = 1 if sums.sum() >= 0 else -1  # the response for categories without gain
        answers = np.where(np.abs(sums) <= rounding, usual, np.sign(sums)).astype(np.int64)
        missing = int(answers[-1]) if self._missing[feature] else 0
        if (answers == answers[0]).all():
            return Stump(feature, -np.inf, int(answers[0]), missing)
        known = ~np.isnan(categories)
        positive, negative = (categories[known & (answers == side)].tolist() for side in (1, -1))
        return CategoryStump(feature, tuple(positive), tuple(negative), missing)

    def _value(self, row: int, feature: int) -> float:
        return float(self.X[row, feature]) if row >= 0 else 0.0

    def _add(self, feature: int) -> bool:
        """Add a feature to the tables. Return whether it has missing values."""
        trend = int(self._trends[feature])
        if self._categorical[feature]:
            values = feature_of(self.X, feature)
            self._categories[feature] = add_categories(self._search, values, feature)
            return bool(np.isnan(self._categories[feature][-1]))
        if issparse(self.X):
            return add_sparse(self._search, self.X, feature, trend)
        return add_dense(self._search, feature_of(self.X, feature), trend)
