"""Risks and quality measures of class scores, and weights of classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray, as_number
from setwise.estimators._sets._folds import Scoring


class ClassRisk:
    r"""The multi-class risk: the weighted mean of the most violated margins.

    .. math:: R(f) = \sum_i v_i \max_y\ \Delta(y_i, y) + f_y(x_i) - f_{y_i}(x_i), \qquad
        f_y = \sum_s \Gamma_{ys} f_s , \qquad \sum_i v_i = 1 .

    With the unit matrix as code and Delta = 1 off the diagonal, this is equation (17). With
    ancestors in the code it is the risk of Section 3.4, and with the code (-1/2, 1/2) of two
    classes it is LPBoost (Section 3.1). If several classes are equally violated, as all are before
    the first learner, the subgradient is the mean of their subgradients. With the subgradient of a
    single class, later learners would have to correct the first learner.

    A call costs O(m k), plus the products with the code.

    Parameters
    ----------
    y : (m,) integers in [0, k)
    cost : (k, k)
        Delta, row by true class; zero diagonal, not negative.
    code : (k, s), optional
        Gamma; the unit matrix by default.
    sample_weight : (m,), optional
        Not negative, not all zero.
    one_segment : bool
        Whether the scores, s by m, form one segment, as weak learners on label-augmented data
        need them, or s segments.

    Attributes
    ----------
    temperature : float or None
        The temperature of the soft maxima, None for hard maxima.
    """

    temperature: float | None = None

    def __init__(
        self,
        y: IntArray,
        cost: FloatArray,
        code: FloatArray | None = None,
        sample_weight: FloatArray | None = None,
        *,
        one_segment: bool = False,
    ) -> None:
        self._m, self._k = len(y), len(cost)
        self._y = y
        self._cost = np.ascontiguousarray(cost, np.float64)
        self._margin = np.ascontiguousarray(cost[y].T)
        self._code = code
        weight = np.ones(self._m) if sample_weight is None else sample_weight
        self._weight = weight / weight.sum()
        self._rows = np.arange(self._m)
        width = self._k if code is None else code.shape[1]
        self._shape = width, self._m
        bounds = np.array([0, width * self._m]) if one_segment else np.arange(width + 1) * self._m
        self._offsets: IntArray = bounds.astype(np.int64)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The start of each segment."""
        return self._offsets

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return R(f) and a subgradient, (s m,)."""
        worst, slope = self._most_violated(scores)
        slope *= self._weight
        if self._code is not None:
            slope = self._code.T @ slope
        return float(self._weight @ worst), slope.ravel()

    def each(self, scores: FloatArray) -> tuple[FloatArray, csr_array]:
        """Return the parts of the mean, (m,), and their subgradients, (m, s m)."""
        worst, slope = self._most_violated(scores)
        scale = self._m * self._weight
        slope *= scale
        if self._code is not None:
            slope = self._code.T @ slope
        at = np.flatnonzero(slope)
        parts = slope.ravel()[at], (at % self._m, at)
        return scale * worst, csr_array(parts, shape=(self._m, slope.size))

    def softened(self) -> _core.SoftClassRisk | None:
        """Return the risk with soft maxima, at scores of zero; None for scores in one segment."""
        if len(self._offsets) - 1 != self._shape[0]:
            return None
        code = np.eye(self._k) if self._code is None else np.ascontiguousarray(self._code)
        return _core.SoftClassRisk(self._y.astype(np.int32), self._cost, self._weight, code)

    def soft_slope(self, weights: FloatArray) -> FloatArray:
        """Return the subgradient of class weights, (k, m), whose sums are those of the rows."""
        slope = weights.copy()
        slope[self._y, self._rows] -= self._weight
        return (slope if self._code is None else self._code.T @ slope).ravel()

    def _heights(self, scores: FloatArray) -> FloatArray:
        """Return Delta(y_i, y) + f_y(x_i) - f_{y_i}(x_i), (k, m)."""
        by_class = scores.reshape(self._shape)
        if self._code is not None:
            by_class = self._code @ by_class
        heights: FloatArray = self._margin + by_class
        heights -= by_class[self._y, self._rows]
        return heights

    def _most_violated(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the largest margin of each example, (m,), and its slope in the classes, (k, m)."""
        heights = self._heights(scores)
        worst = heights.max(axis=0)
        slope = (heights == worst).astype(np.float64)
        slope /= slope.sum(axis=0)
        slope[self._y, self._rows] -= 1.0
        return worst, slope


class LogisticClassRisk(ClassRisk):
    r"""The multi-class logistic risk: a sum over the mistakes in place of the largest one.

    .. math:: R(f) = \sum_i v_i \log \Bigl( 1 + \sum_{y \ne y_i} \Delta(y_i, y)
        e^{f_y(x_i) - f_{y_i}(x_i)} \Bigr) .

    With Delta = 1 off the diagonal it is minus the mean log-likelihood of the classes under a
    softmax of the scores; with two classes it is log(1 + exp(-margin)). It is the risk of soft
    maxima at a temperature of 1 and the margins log Delta, so that for probabilities p of the
    classes

    .. math:: R(f) \ge \sum_i v_i \Bigl( \sum_y p_{iy} (\log \Delta(y_i, y) + f_y - f_{y_i})
        + H(p_i) \Bigr)

    with equality at the softmax: the plane that proves a bound is that of the hinge, raised by the
    entropy. Costs off the diagonal must be positive.
    """

    temperature = 1.0

    def __init__(
        self,
        y: IntArray,
        cost: FloatArray,
        code: FloatArray | None = None,
        sample_weight: FloatArray | None = None,
        *,
        one_segment: bool = False,
    ) -> None:
        margins = np.log(cost + np.eye(len(cost)))
        super().__init__(y, margins, code, sample_weight, one_segment=one_segment)

    def _most_violated(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the logistic loss of each example, (m,), and its slope in the classes, (k, m)."""
        heights = self._heights(scores)
        top = heights.max(axis=0)
        slope = np.exp(heights - top)
        total = slope.sum(axis=0)
        slope /= total
        slope[self._y, self._rows] -= 1.0
        worst: FloatArray = top + np.log(total)
        return worst, slope


def as_class_weights(
    class_weight: object, classes: NDArray[Any], places: IntArray, weight: FloatArray
) -> FloatArray:
    """Return the weight of each sample's class, (n,); "balanced" counts samples by weight."""
    if class_weight is None:
        return np.ones(len(places))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be a dict or 'balanced', got {class_weight!r}")
        sums = np.bincount(places, weight, len(classes))
        return np.asarray(weight.sum() / (len(classes) * sums))[places]
    if not isinstance(class_weight, Mapping):
        raise TypeError(
            f"class_weight must be a dict or 'balanced', got {type(class_weight).__name__}"
        )
    names = classes.tolist()
    weights = np.ones(len(names))
    for name, given in class_weight.items():
        if name in names:
            weights[names.index(name)] = as_number(
                given, f"class_weight[{name!r}]", nonnegative=True
            )
    return weights[places]


def class_merit(
    scoring: Scoring | None,
    classes: NDArray[Any],
    places: IntArray,
    weight: FloatArray,
    cost: FloatArray,
) -> Callable[[FloatArray], float]:
    """Return a scorer's value for scores (n, k) or (n,), by default 1 - the mean relative cost."""
    if scoring is not None:
        labels = classes[places]

        def score_of(scores: FloatArray) -> float:
            try:
                answer = scoring(
                    _KnownScores(scores, classes), scores, labels, sample_weight=weight
                )
            except TypeError as error:  # the scorer does not take these arguments
                raise TypeError(f"scoring: {error}") from error
            return as_number(answer, "what scoring returns")

        return score_of
    share = cost / cost.max()

    def merit(scores: FloatArray) -> float:
        costs = share[places, places_of(scores)]
        return 1.0 - float(weight @ costs) / float(weight.sum())

    return merit


def places_of(scores: FloatArray) -> IntArray:
    """Return the class of the largest score of each row, or of the sign of a single score."""
    return (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)


class _KnownScores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A stand-in for a fitted classifier, with given scores, for scorers."""

    def __init__(self, scores: FloatArray, classes: NDArray[Any]) -> None:
        self.scores, self.classes = scores, classes
        self.classes_ = classes

    def decision_function(self, X: object) -> FloatArray:
        return self.scores

    def predict(self, X: object) -> NDArray[Any]:
        said: NDArray[Any] = self.classes_[places_of(self.scores)]
        return said
