"""Perceptrons, found by smooth ascent from the best stump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse

from setwise._foundation._arguments import SQUARABLE, FloatArray, as_count, as_number, as_numbers
from setwise._foundation._base_classes import Record
from setwise.learning._boosting._problem import Column
from setwise.learning._weak_learners._rows import as_rows, as_segments, best_of_segments
from setwise.learning._weak_learners._stumps import Stump, StumpSearch

# The initial slope of the ascent per standard deviation of the feature: steep enough to resemble
# the stump, and flat enough for a gradient at rows far from the threshold.
_STEEPNESS = 3.0


@dataclass(frozen=True, eq=False, repr=False)
class Perceptron(Record):
    """The sign of a linear function of the features, equation (31); -1 where it is 0.

    Parameters
    ----------
    coef : array of shape (d,)
    intercept : float

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> X = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    >>> search = sw.learning.PerceptronSearch(X)
    >>> search(np.array([1.0, -1.0, 1.0, -1.0]))[0].learner.predict(X).tolist()
    [1.0, -1.0, 1.0, -1.0]
    """

    coef: FloatArray
    intercept: float

    def __post_init__(self) -> None:
        coef = as_numbers(self.coef, "coef")
        coef.flags.writeable = False
        object.__setattr__(self, "coef", coef)
        as_number(self.intercept, "intercept")

    def predict(self, X: Any) -> FloatArray:
        """Return the responses, +1 or -1, (n,), on the rows of an array or a sparse matrix."""
        rows = as_rows(X, least=0)
        if rows.shape[1] != len(self.coef):
            raise ValueError(
                f"X must have {len(self.coef)} columns, as coef has entries, got {rows.shape[1]}"
            )
        return self._respond(rows)

    def _respond(self, X: Any) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):  # the sign of an infinite sum is right
            scores = X @ self.coef + self.intercept
        return np.where(scores > 0, 1.0, -1.0)

    def importances(self, n_features: int) -> FloatArray:
        """Return the share of each feature in the absolute coefficients, (n_features,)."""
        if as_count(n_features, "n_features") != len(self.coef):
            raise ValueError(f"n_features must be {len(self.coef)}, got {n_features}")
        sizes = np.abs(self.coef)
        total = sizes.sum()
        return sizes / total if total > 0 else sizes


class PerceptronSearch:
    r"""A search for perceptrons :math:`h(x) = \mathrm{sign}(v^T x + b)` of equation (31).

    For each segment k of the weights, the smooth function

    .. math:: \sum_i U_{ki} \tanh(v^T x_i + b)

    is maximised by L-BFGS, starting from the best stump of the segment. The answer is the better of
    the perceptron and the stump, and thus never worse than that of ``StumpSearch``. It is a local
    optimum, so the search is not exact. One step costs O(m d).

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
    n_columns : int, default=1
        The number of columns to return, at most one per segment. Segments are skipped if their sum
        of abs(U), an upper bound of the gain, is too small.
    max_iter : int, default=100
        The largest number of steps of L-BFGS.
    n_jobs : int, optional
        The number of threads of the search for stumps. None means one, -1 all cores.

    Attributes
    ----------
    exact : bool
        False.

    Examples
    --------
    Two classes that are separated by a diagonal, but by no stump:

    >>> import numpy as np
    >>> from setwise.learning import PerceptronSearch
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]])
    >>> weights = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    >>> PerceptronSearch(X)(weights)[0].response.tolist()
    [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    """

    exact = False

    def __init__(
        self, X: Any, n_columns: int = 1, *, max_iter: int = 100, n_jobs: int | None = None
    ) -> None:
        self._stumps = StumpSearch(as_rows(X), n_jobs=n_jobs)
        self.X = self._stumps.X
        self.n_columns = as_count(n_columns, "n_columns", least=1)
        self.max_iter = as_count(max_iter, "max_iter")
        self.n_jobs = n_jobs
        # Standardised features make the ascent well conditioned. Sparse rows are scaled but not
        # centred, so that they stay sparse. Dividing by the largest value prevents overflow.
        if issparse(self.X):
            self._largest = _bounded(abs(self.X).max(axis=0).toarray().ravel())
            rows = self.X.multiply(1.0 / self._largest).tocsr()
            self._center = np.zeros(self.X.shape[1])
            squares = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
            self._scale = _positive(np.sqrt(squares))
            self._rows = rows.multiply(1.0 / self._scale).tocsr()
        else:
            self._largest = _bounded(np.abs(self.X).max(axis=0))
            rows = self.X / self._largest
            self._center = rows.mean(axis=0)
            self._scale = _positive(rows.std(axis=0))
            self._rows = (rows - self._center) / self._scale

    def __call__(self, weights: FloatArray) -> list[Column]:
        """Return the best perceptrons found for weights of shape (n_segments m,), best first."""
        segments = as_segments(weights, self.X.shape[0])
        return best_of_segments(segments, self.n_columns, self._climb)

    def _climb(self, segment: int, weights: FloatArray) -> Column:
        start = self._stumps(weights)[0]
        total = float(np.abs(weights).sum())
        stump: Stump = start.learner
        if total == 0 or stump.threshold == -np.inf or weights @ start.response >= total:
            return Column(stump, segment, start.response)
        shares = weights / total

        def descend(point: FloatArray) -> tuple[float, FloatArray]:
            response = np.tanh(self._rows @ point[:-1] + point[-1])
            slope = shares * (1.0 - response * response)
            gradient = np.append(self._rows.T @ slope, slope.sum())
            return -float(shares @ response), -gradient

        best = minimize(
            descend,
            self._point_of(stump),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter},
        ).x
        coef = best[:-1] / self._scale
        intercept = float(best[-1] - coef @ self._center)
        perceptron = Perceptron(coef / self._largest, intercept)
        response = perceptron._respond(self.X)
        if weights @ response > weights @ start.response:
            return Column(perceptron, segment, response)
        return Column(stump, segment, start.response)

    def _point_of(self, stump: Stump) -> FloatArray:
        """Return the parameters, for standardised features, of a perceptron like the stump."""
        f = stump.feature
        point = np.zeros(self.X.shape[1] + 1)
        point[f] = stump.sign * _STEEPNESS
        threshold = stump.threshold / self._largest[f]
        point[-1] = -point[f] * (threshold - self._center[f]) / self._scale[f]
        return point


def _bounded(largest: FloatArray) -> FloatArray:
    """Return scales: the largest value where its square could overflow, and 1 elsewhere."""
    return np.where(largest > SQUARABLE, largest, 1.0)


def _positive(deviations: FloatArray) -> FloatArray:
    return np.where(deviations > 0, deviations, 1.0)
