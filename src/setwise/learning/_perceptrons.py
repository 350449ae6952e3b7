"""Perceptrons, found by smooth ascent from the best stump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse

from setwise.functions._arguments import FloatArray, as_count
from setwise.learning._boosting_problem import Column
from setwise.learning._rows import as_segments, best_of_segments
from setwise.learning._stumps import Stump, Stumps

# How steep the ascent starts, in deviations of the feature: steep enough to be like the stump, flat
# enough for rows far from the threshold to have a say.
_STEEPNESS = 3.0


@dataclass(frozen=True, eq=False)
class Perceptron:
    """The sign of a linear function of the features, equation (31); -1 where it is 0.

    Parameters
    ----------
    coef : array of shape (d,)
    intercept : float

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import Perceptron
    >>> Perceptron(np.array([1.0, -1.0]), 0.0).predict([[2.0, 1.0], [1.0, 2.0]]).tolist()
    [1.0, -1.0]
    """

    coef: FloatArray
    intercept: float

    def predict(self, X: Any) -> FloatArray:
        """The responses, +1 or -1, on the rows of an array or a sparse matrix: shape (n,)."""
        rows = X if issparse(X) else np.asarray(X)
        return np.where(rows @ self.coef + self.intercept > 0, 1.0, -1.0)

    def importances(self, n_features: int) -> FloatArray:
        """The share of each feature, (n_features,), by the size of its coefficient."""
        sizes = np.abs(self.coef)
        total = sizes.sum()
        return sizes / total if total > 0 else sizes


class Perceptrons:
    r"""Finds perceptrons :math:`h(x) = \mathrm{sign}(v^T x + b)` with a large gain, equation (31).

    For each segment k of the weights the smooth

    .. math:: \sum_i U_{ki} \tanh(v^T x_i + b)

    is raised by L-BFGS from the segment's best stump. The answer is the better of the perceptron's
    sign and the stump itself, so never worse than ``Stumps``; it is a local optimum, so not exact.
    One step costs O(m d).

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
    n_columns : int, default=1
        How many to give, at most one for each segment. Segments whose sum of abs(U), which no gain
        exceeds, is too small to be among them are left out.
    max_iter : int, default=100
        The most steps of L-BFGS.
    n_jobs : int, optional
        Threads of the search for stumps; None is one, -1 all cores.

    Attributes
    ----------
    exact : bool
        False.

    Examples
    --------
    A diagonal that no stump can follow:

    >>> import numpy as np
    >>> from setwise.learning import Perceptrons
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]])
    >>> weights = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    >>> Perceptrons(X)(weights)[0].response.tolist()
    [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    """

    exact = False

    def __init__(
        self, X: Any, n_columns: int = 1, *, max_iter: int = 100, n_jobs: int | None = None
    ) -> None:
        self._stumps = Stumps(X, n_jobs=n_jobs)
        self.X = self._stumps.X
        self.n_columns = as_count(n_columns, "n_columns", least=1)
        self.max_iter = as_count(max_iter, "max_iter")
        self.n_jobs = n_jobs
        # Ascent in deviations from the mean is well conditioned. Sparse rows stay sparse: for them
        # the intercept has to make up for the mean.
        if issparse(self.X):
            self._centre = np.zeros(self.X.shape[1])
            squares = np.asarray(self.X.multiply(self.X).mean(axis=0)).ravel()
            self._scale = _positive(np.sqrt(squares))
            self._rows = (self.X.multiply(1.0 / self._scale)).tocsr()
        else:
            self._centre = self.X.mean(axis=0)
            self._scale = _positive(self.X.std(axis=0))
            self._rows = (self.X - self._centre) / self._scale

    def __call__(self, weights: FloatArray) -> list[Column]:
        """The best perceptrons found for weights of shape (n_segments m,), best first."""
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
        perceptron = Perceptron(coef, float(best[-1] - coef @ self._centre))
        response = perceptron.predict(self.X)
        if weights @ response > weights @ start.response:
            return Column(perceptron, segment, response)
        return Column(stump, segment, start.response)

    def _point_of(self, stump: Stump) -> FloatArray:
        """Slopes and intercept, in deviations, of a perceptron much like the stump."""
        f = stump.feature
        point = np.zeros(self.X.shape[1] + 1)
        point[f] = stump.sign * _STEEPNESS
        point[-1] = -point[f] * (stump.threshold - self._centre[f]) / self._scale[f]
        return point


def _positive(deviations: FloatArray) -> FloatArray:
    return np.where(deviations > 0, deviations, 1.0)
