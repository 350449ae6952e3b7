"""Steps, which are stumps with their own levels, and the search for the best one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise import _core
from setwise._foundation._arguments import (
    FloatArray,
    as_choice,
    as_number,
    as_sample_weights,
    require_some,
    without_unit,
)
from setwise.learning._boosting._problem import Column
from setwise.learning._weak_learners._one_feature import (
    FeatureSearch,
    OneFeature,
    check_threshold,
    midway,
    ranks_of,
    rounding_of,
)
from setwise.learning._weak_learners._rows import as_segments, feature_of

Floats32 = NDArray[np.float32]


@dataclass(frozen=True)
class Step(OneFeature):
    """A weak learner with two levels: ``high`` above a threshold of a feature, else ``low``.

    Parameters
    ----------
    feature : int
    threshold : float
        ``-inf`` makes the step constant, except for missing values.
    low, high : float
    missing : float, default=0.0
        The response if the feature is missing (NaN).

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> search = sw.learning.StepSearch([[0.0, 0.0], [0.0, 1.0]])
    >>> step = search(np.array([-3.0, 4.0]))[0].learner
    >>> step
    Step(feature=1, threshold=0.5, low=-1.0, high=1.0, missing=0.0)
    >>> step.predict([[0.0, 0.2], [0.0, 0.7]]).tolist()
    [-1.0, 1.0]
    """

    feature: int
    threshold: float
    low: float
    high: float
    missing: float = 0.0

    def __post_init__(self) -> None:
        check_threshold(self.feature, self.threshold)
        for name in ("low", "high", "missing"):
            as_number(getattr(self, name), name)

    def _respond(self, X: Any) -> FloatArray:
        values = feature_of(X, self.feature)
        answers = np.where(values > self.threshold, float(self.high), float(self.low))
        answers[np.isnan(values)] = self.missing
        return answers

    @property
    def _constant(self) -> bool:
        return self.threshold == -np.inf and self.missing == self.high


class StepSearch(FeatureSearch):
    r"""An exact search for the steps of largest gain over all segments together.

    The gain of a step h is the norm over the segments k,

    .. math:: \Bigl( \sum_k \Bigl( \sum_i U_{ki} h(x_i) \Bigr)^2 \Bigr)^{1/2} ,

    as ``penalty="group"`` of ``struct_boost`` needs it for shared learners. The search covers all
    features and thresholds (midpoints between neighbouring values), and the constant step 1. The
    levels of a step are determined by its threshold. With p the weighted share of the rows above
    it, and :math:`\sigma = 2 \sqrt{p (1 - p)}`, they are

    .. math:: \text{high} = 2 (1 - p) / \sqrt\sigma, \qquad \text{low} = -2 p / \sqrt\sigma

    for ``levels="balanced"``: a centred stump, scaled such that its standard deviation over the
    rows is :math:`\sqrt\sigma`, between the :math:`\sigma` of a stump with levels -1 and 1 and the
    1 of a standardised column. ``levels="sign"`` has the levels -1 and 1. Levels have single
    precision. Missing values (NaN) get the better of the two levels, and may be alone on one side.

    A search costs O(m d) additions per segment, also for the zeros of a sparse matrix.

    Of steps with equal gain up to rounding, the one with the first feature and the lowest threshold
    is taken.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
        Finite, or NaN for missing values.
    n_columns : int, default=1
        The number of steps to return, at most one per feature, best first.
    levels : {"balanced", "sign"}, default="balanced"
    sample_weight : array of shape (m,) or number, optional
        The weights of the rows in p.
    n_jobs : int, optional
        The number of threads. None means one, -1 all cores. The answer does not depend on it.

    Attributes
    ----------
    exact : bool
        True.
    joint : bool
        True, because gains are for all segments together.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import StepSearch
    >>> search = StepSearch(np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]))
    >>> best = search(np.array([[2.0, -1.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0, 0.0]]))[0]
    >>> best.learner.threshold, best.response.round(2).tolist()
    (0.5, [-1.79, 0.45, 0.45, 0.45, 0.45])
    """

    joint = True

    def __init__(
        self,
        X: Any,
        n_columns: int = 1,
        *,
        levels: str = "balanced",
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(X, n_columns, n_jobs)
        self.levels = as_choice(levels, "levels", ("balanced", "sign"))
        rows, features = self.X.shape
        weight = as_sample_weights(sample_weight, rows)
        require_some(weight)
        self._weight = without_unit(weight)
        self._shares = self._weight / self._weight.sum()
        self._search = _core.StepSearch(rows)
        self._features = [self._add(f) for f in range(features)]

    def __call__(self, weights: FloatArray) -> list[Column]:
        """Return the best steps for weights of shape (n_segments m,) or (n_segments, m).

        The steps are for all segments, so their ``segment`` is always 0. If there is one segment,
        their sign makes the gain positive.
        """
        segments = as_segments(weights, self.X.shape[0])
        rounding = rounding_of(segments)
        gains = np.empty(self.X.shape[1])
        cuts = np.empty(self.X.shape[1], np.int64)
        self._search.gains(segments, rounding, gains, cuts, self._n_threads)
        ranks = ranks_of(gains, rounding)
        steps = [self._step(f, int(cuts[f])) for f in self._best_features(ranks)]
        rank = ranks_of(np.array([np.hypot.reduce(segments.sum(axis=1))]), rounding)
        whole = Step(0, -np.inf, 1.0, 1.0, 1.0)
        place = int(np.count_nonzero(-np.sort(-ranks)[: len(steps)] > rank))
        steps = [*steps[:place], whole, *steps[place:]][: self.n_columns]
        columns = [Column(step, 0, step._respond(self.X)) for step in steps]
        return [_upward(own, segments[0]) for own in columns] if len(segments) == 1 else columns

    def _settings(self) -> dict[str, Any]:
        return {"levels": self.levels, "sample_weight": self._weight}

    def _best_features(self, ranks: FloatArray) -> list[int]:
        order = np.argsort(-ranks, kind="stable")[: self.n_columns].tolist()
        return [f for f in order if self._features[f].n_cuts]

    def _step(self, feature: int, cut: int) -> Step:
        own = self._features[feature]
        low, high = float(own.low[cut]), float(own.high[cut])
        below = cut >= len(own.values)  # missing values are on the lower side
        place = cut - len(own.values) if below else cut
        missing = 0.0 if not own.missing else low if below else high
        if place == len(own.values) - 1:  # only missing values are on the upper side
            return Step(feature, -np.inf, low, low, missing)
        lower, upper = own.values[place : place + 2].tolist()
        return Step(feature, midway(lower, upper), low, high, missing)

    def _add(self, feature: int) -> _Cuts:
        """Add a feature to the tables."""
        values, codes = np.unique(feature_of(self.X, feature), return_inverse=True)
        values = values[~np.isnan(values)]
        missing = bool((codes == len(values)).any())
        by_value: FloatArray = np.bincount(codes, self._shares, len(values) + 1).astype(np.float64)
        below: FloatArray = np.cumsum(by_value[:-1])
        # The first cuts have missing values above, the others below. If values are missing, the
        # first group also has a cut at the largest value.
        if missing:
            below = np.concatenate([below, below[:-1] + by_value[-1]])
        else:
            below = below[:-1]
        low, high = _levels(below, balanced=self.levels == "balanced")
        self._search.add(codes.astype(np.int32), len(values), low, high)
        return _Cuts(values, low, high, missing)


@dataclass(frozen=True, eq=False)
class _Cuts:
    """The values of a feature, and the levels of the cuts between them."""

    values: FloatArray
    low: Floats32
    high: Floats32
    missing: bool

    @property
    def n_cuts(self) -> int:
        return len(self.low)


def _upward(column: Column, weights: FloatArray) -> Column:
    """Return the column, or its negation if that has the larger gain."""
    if weights @ column.response >= 0:
        return column
    own = column.learner
    step = Step(own.feature, own.threshold, -own.low, -own.high, -own.missing)
    return Column(step, 0, -column.response)


def _levels(below: FloatArray, *, balanced: bool) -> tuple[Floats32, Floats32]:
    """Return the levels of steps, given the share ``below`` of the rows below the threshold."""
    if not balanced:
        return np.full(len(below), -1, np.float32), np.ones(len(below), np.float32)
    inside = np.clip(below, 1e-9, 1.0 - 1e-9)  # limits the levels for rows of tiny weight
    root = np.sqrt(2.0 * np.sqrt(inside * (1.0 - inside)))
    low, high = -2.0 * (1.0 - inside) / root, 2.0 * inside / root
    return low.astype(np.float32), high.astype(np.float32)
