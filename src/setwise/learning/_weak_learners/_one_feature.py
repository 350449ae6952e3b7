"""Base classes of weak learners that use one feature, and of the searches for them."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np

from setwise._foundation._arguments import MOST_ENTRIES, FloatArray, as_count, as_number
from setwise._foundation._base_classes import Versioned
from setwise._foundation._threads import as_threads
from setwise.learning._weak_learners._rows import as_rows, check_width

# Gains that differ by less than this share of the sum of absolute weights are equal up to rounding.
_ROUNDING = 1e-12


class OneFeature(Versioned):
    """A weak learner that uses one feature."""

    feature: int

    def predict(self, X: Any) -> FloatArray:
        """Return the responses, (n,), on the rows of an array or a sparse matrix."""
        rows = as_rows(X, least=0, allow_nan=True)
        check_width(rows, self.feature)
        return self._respond(rows)

    def importances(self, n_features: int) -> FloatArray:
        """Return the importances (n_features,): 1 for its feature, or all 0 for a constant."""
        least = self.feature + 1
        shares = np.zeros(as_count(n_features, "n_features", least=least, most=MOST_ENTRIES))
        if not self._constant:
            shares[self.feature] = 1.0
        return shares

    @property
    def _constant(self) -> bool:
        """Whether the response is the same for all rows."""
        raise NotImplementedError

    def _respond(self, X: Any) -> FloatArray:
        """Return the responses on validated rows."""
        raise NotImplementedError


class FeatureSearch:
    """A search over the cuts of every feature, with compiled tables that are made once.

    Of gains that are equal up to rounding, the first is taken. Therefore a repeated row and a row
    of weight 2 give the same answer, and so do sparse and dense rows.
    """

    exact = True

    def __init__(self, X: Any, n_columns: int, n_jobs: int | None) -> None:
        self.X = as_rows(X, allow_nan=True)
        self.n_columns = as_count(n_columns, "n_columns", least=1)
        self.n_jobs = n_jobs
        self._n_threads = as_threads(n_jobs, default=1)

    def __reduce__(self) -> tuple[partial[Self], tuple[Any, int]]:
        """Pickle the rows, from which the compiled tables are made again."""
        make = partial(type(self), n_jobs=self.n_jobs, **self._settings())
        return make, (self.X, self.n_columns)

    def _settings(self) -> dict[str, Any]:
        """Return the keyword arguments of the search, without rows, columns and threads."""
        raise NotImplementedError


def check_threshold(feature: object, threshold: object) -> None:
    """Raise an error unless the arguments are an index and a number, or -inf for a constant."""
    as_count(feature, "feature")
    if not (isinstance(threshold, float) and threshold == -np.inf):
        as_number(threshold, "threshold", largest=np.inf)


def rounding_of(segments: FloatArray) -> float:
    """Return the largest difference of gains that count as equal."""
    return _ROUNDING * max(float(np.abs(own).sum()) for own in segments)


def ranks_of(gains: FloatArray, rounding: float) -> FloatArray:
    """Return gains rounded to multiples of ``rounding``."""
    return np.round(gains / rounding) if rounding > 0 else gains


def midway(low: float, high: float) -> float:
    """Return a number t with low <= t < high, near the middle if possible, for low < high."""
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low
