"""Decision stumps, and the search for the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise import _core
from setwise._foundation._arguments import FloatArray, as_count, as_number
from setwise._foundation._threads import as_threads
from setwise.learning._boosting._problem import Column
from setwise.learning._weak_learners._rows import MOST_FEATURES, as_rows, as_segments, check_sign

# Sums of so many values stay in a processor's cache; beyond, a walk over sorted rows is as fast.
_FEW_VALUES = 4096
# Gains that differ by less, as a share of all weights, are equal: sums in another order differ so.
_ROUNDING = 1e-12
_MARK = np.uint32(1 << 31)


@dataclass(frozen=True)
class Stump:
    """A decision stump: ``sign`` where a feature exceeds a threshold, ``-sign`` elsewhere.

    Parameters
    ----------
    feature : int
    threshold : float
        ``-inf`` makes it constant.
    sign : {1, -1}

    Examples
    --------
    >>> from setwise.learning import Stump
    >>> Stump(feature=1, threshold=0.5, sign=-1).predict([[0.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, -1.0]
    """

    feature: int
    threshold: float
    sign: int

    def __post_init__(self) -> None:
        as_count(self.feature, "feature")
        threshold: object = self.threshold
        if not (isinstance(threshold, float) and threshold == -np.inf):
            as_number(threshold, "threshold", largest=np.inf)
        check_sign(self.sign)

    def predict(self, X: Any) -> FloatArray:
        """The responses, +1 or -1, on the rows of an array or a sparse matrix: shape (n,)."""
        rows = as_rows(X, least=0)
        if rows.shape[1] <= self.feature:
            raise ValueError(
                f"X must have more than {self.feature} columns, the stump's feature, "
                f"got {rows.shape[1]}"
            )
        return self._respond(rows)

    def _respond(self, X: Any) -> FloatArray:
        values = X[:, [self.feature]].toarray().ravel() if issparse(X) else X[:, self.feature]
        return np.where(values > self.threshold, float(self.sign), -float(self.sign))

    def importances(self, n_features: int) -> FloatArray:
        """The share of each feature, (n_features,): all is this one's; a constant has none."""
        least = self.feature + 1
        shares = np.zeros(as_count(n_features, "n_features", least=least, most=MOST_FEATURES))
        if self.threshold > -np.inf:
            shares[self.feature] = 1.0
        return shares


class StumpSearch:
    r"""Finds the decision stumps h with the largest :math:`\sum_i U_{ki} h(x_i)`.

    Over all features, thresholds (midways between neighbouring values; a constant is a stump too),
    signs and segments k of the weights U, exactly. Features are sorted once. A search then takes
    O(m d) additions for each segment, made for several segments in one pass: feature by feature
    over the sorted rows, or, where a feature has few values, into a sum for each. The zeros of a
    sparse matrix are not visited: O(number of non-zeros).

    Of stumps that are equally good, but for rounding (1e-12 of the sum of abs(U)), the first
    feature, segment and threshold win, in this order: so the answer is the same for a repeated row
    and one of weight 2, for sparse rows and dense ones.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
        Finite. A C-ordered float64 array is kept, not copied.
    n_columns : int, default=1
        How many stumps to give: the best of each pair of feature and segment, best first, but no
        more than ``ceil(n_columns / n_segments)`` of a segment.
    n_jobs : int, optional
        Threads; None is one, -1 all cores. The answer does not depend on it.

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
    (Stump(feature=0, threshold=0.5, sign=-1), [1.0, -1.0, -1.0])
    """

    exact = True

    def __init__(self, X: Any, n_columns: int = 1, *, n_jobs: int | None = None) -> None:
        self.X = as_rows(X)
        self.n_columns = as_count(n_columns, "n_columns", least=1)
        self.n_jobs = n_jobs
        self._n_threads = as_threads(n_jobs, default=1)
        rows, features = self.X.shape
        self._search = _core.StumpSearch(rows)
        if issparse(self.X):
            for f in range(features):
                self._add_sparse(f)
        else:
            for f in range(features):
                self._add_dense(np.ascontiguousarray(self.X[:, f]))

    def __reduce__(self) -> tuple[partial[StumpSearch], tuple[Any, int]]:
        """The compiled tables are made again from the rows."""
        return partial(type(self), n_jobs=self.n_jobs), (self.X, self.n_columns)

    def __call__(self, weights: FloatArray) -> list[Column]:
        """The best stumps for weights of shape (n_segments m,), flat or (n_segments, m)."""
        segments = as_segments(weights, self.X.shape[0])
        gains = np.empty((self.X.shape[1], len(segments)))
        self._search.gains(segments, gains, self._n_threads)
        rounding = _ROUNDING * float(np.abs(segments).sum(axis=1).max())
        ranks = np.round(gains / rounding) if rounding > 0 else gains
        pairs = self._best_pairs(ranks)
        return [self._column(segments, rounding, *pair) for pair in pairs]

    def _best_pairs(self, gains: FloatArray) -> list[tuple[int, int]]:
        """Pairs of feature and segment, best first."""
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
        gain, low, high = self._search.locate(segments[segment], feature, rounding)
        if low < 0 and high < 0:
            threshold = -np.inf
        else:
            threshold = midway(self._value(low, feature), self._value(high, feature))
        stump = Stump(feature, threshold, 1 if gain >= 0 else -1)
        return Column(stump, segment, stump._respond(self.X))

    def _value(self, row: int, feature: int) -> float:
        return float(self.X[row, feature]) if row >= 0 else 0.0

    def _add_dense(self, values: FloatArray) -> None:
        order = np.argsort(values, kind="stable").astype(np.uint32)
        lasts = _last_of_runs(values[order])
        n_values = int(np.count_nonzero(lasts))
        if n_values > min(_FEW_VALUES, len(values) // 2):
            lasts[-1] = False  # above the largest value there is no threshold
            self._search.add_rows(order | (_MARK * lasts), np.empty(0, np.uint32))
            return
        codes = np.empty(len(values), np.uint16)
        codes[order] = np.cumsum(lasts) - lasts
        small = codes.astype(np.uint8) if n_values <= 256 else codes
        self._search.add_codes(small, order[lasts].astype(np.int32))

    def _add_sparse(self, feature: int) -> None:
        """Zeros are met in one step, between the negative values and the positive ones."""
        entries = slice(self.X.indptr[feature], self.X.indptr[feature + 1])
        rows, values = self.X.indices[entries], self.X.data[entries]
        order = np.argsort(values, kind="stable")
        rows, values = rows[order].astype(np.uint32), values[order]
        zeros = self.X.shape[0] - len(rows)
        below = int(np.searchsorted(values, 0.0)) if zeros else len(rows)
        up = rows[:below] | _MARK * _last_of_runs(values[:below])
        down = rows[below:][::-1] | _MARK * _last_of_runs(values[below:][::-1])
        if not zeros:
            up[-1] &= ~_MARK
        self._search.add_rows(up, down)


def midway(low: float, high: float) -> float:
    """A number t with low <= t < high, in the middle if there is one; high > low."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


def _last_of_runs(values: FloatArray) -> NDArray[np.bool_]:
    """Where a run of equal values ends."""
    lasts = np.ones(len(values), np.bool_)
    lasts[:-1] = values[1:] != values[:-1]
    return lasts
