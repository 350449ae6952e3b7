"""What weak learners that look at one feature share, and the searches for them."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np

from setwise._foundation._arguments import FloatArray, as_count, as_number
from setwise._foundation._threads import as_threads
from setwise.learning._weak_learners._rows import MOST_FEATURES, as_rows, check_width

# Gains that differ by less, as a share of all weights, are equal: sums in another order differ so.
_ROUNDING = 1e-12


class OneFeature:
    """A weak learner that looks at one feature."""

    feature: int

    def predict(self, X: Any) -> FloatArray:
        """The responses on the rows of an array or a sparse matrix: shape (n,)."""
        rows = as_rows(X, least=0, allow_nan=True)
        check_width(rows, self.feature)
        return self._respond(rows)

    def importances(self, n_features: int) -> FloatArray:
        """The share of each feature, (n_features,): all is this one's; a constant has none."""
        least = self.feature + 1
        shares = np.zeros(as_count(n_features, "n_features", least=least, most=MOST_FEATURES))
        if not self._constant:
            shares[self.feature] = 1.0
        return shares

    @property
    def _constant(self) -> bool:
        """Whether it says the same of all rows."""
        raise NotImplementedError

    def _respond(self, X: Any) -> FloatArray:
        """What ``predict`` says of rows that were checked."""
        raise NotImplementedError


class FeatureSearch:
    """A search over the cuts of every feature, by compiled tables that are made once.

    Of equal gains, but for rounding, the first wins, so that the answer is the same for a repeated
    row and one of weight 2, for sparse rows and dense ones.
    """

    exact = True

    def __init__(self, X: Any, n_columns: int, n_jobs: int | None) -> None:
        self.X = as_rows(X, allow_nan=True)
        self.n_columns = as_count(n_columns, "n_columns", least=1)
        self.n_jobs = n_jobs
        self._n_threads = as_threads(n_jobs, default=1)

    def __reduce__(self) -> tuple[partial[Self], tuple[Any, int]]:
        """The compiled tables are made again from the rows."""
        make = partial(type(self), n_jobs=self.n_jobs, **self._settings())
        return make, (self.X, self.n_columns)

    def _settings(self) -> dict[str, Any]:
        """The words of the search beside rows, columns and threads."""
        raise NotImplementedError


def check_threshold(feature: object, threshold: object) -> None:
    """Raise unless they are a place and a number, or -inf for a constant."""
    as_count(feature, "feature")
    if not (isinstance(threshold, float) and threshold == -np.inf):
        as_number(threshold, "threshold", largest=np.inf)


def rounding_of(segments: FloatArray) -> float:
    """What gains may differ by and still be equal."""
    return _ROUNDING * max(float(np.abs(own).sum()) for own in segments)


def ranks_of(gains: FloatArray, rounding: float) -> FloatArray:
    """Gains in units of their rounding: equal where that alone tells them apart."""
    return np.round(gains / rounding) if rounding > 0 else gains


def midway(low: float, high: float) -> float:
    """A number t with low <= t < high, in the middle if there is one; high > low."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low
