"""Scores, classes and probabilities of rows by weak learners with a weight for every class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, kron
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_array,
    as_sample_weights,
    require_some,
    without_unit,
)
from setwise._foundation._base_classes import Versioned
from setwise.estimators._boosting._boosted import importances
from setwise.estimators._boosting._class_risk import class_merit
from setwise.estimators._boosting._columns import Tabular, takes_missing
from setwise.estimators._boosting._held_out import Examples, known_places
from setwise.estimators._boosting._validated import HeldOut, Validated
from setwise.estimators._calibration import Calibration, needs_calibrate
from setwise.estimators._checked import check_targets
from setwise.estimators._sets._folds import as_scoring

METHODS = ("softmax", "sigmoid", "isotonic")
# The ridge penalty on the biases of "softmax", relative to the examples' weights: it keeps the bias
# finite for a class without held-out rows, and is far below the weight of one row.
_RIDGE = 1e-3


class ClassScores(Versioned, Validated, Tabular, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A boosted classifier whose class scores are ``code_`` times the segments of scores.

    With augmented labels there is one segment, for the Kronecker products of code[y] and x of all
    classes y.
    """

    estimator: Any
    calibrate: str | None
    classes_: NDArray[Any]
    code_: FloatArray
    cost_: FloatArray
    _augmented: bool
    _calibration: ClassProbabilities

    def decision_function(self, X: Any) -> FloatArray:
        """Return class scores (n, k); for two classes one score (n,), positive for the second."""
        rows = self._rows(X)
        return self._by_class(self._segment_scores(rows))

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield the scores of each stage: after each round that added weak learners."""
        rows = self._rows(X)
        for scores in self._staged_segment_scores(rows):
            yield self._by_class(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of the largest score, (n,)."""
        return self._labels(self.decision_function(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the classes of each stage."""
        for scores in self.staged_decision_function(X):
            yield self._labels(scores)

    @needs_calibrate(*METHODS)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return calibrated probabilities of the classes, (n, k); needs ``calibrate``."""
        return self._calibration(self.decision_function(X))

    def score(self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
        """Return the weighted share of the samples whose predicted class is correct.

        In a taxonomy the score is 1 - the mean of ``cost_`` divided by its largest entry, so that
        mistakes between close classes count less.
        """
        predicted, labels = self.predict(X), as_array(y, "y")
        if labels.shape != predicted.shape:
            raise ValueError(
                f"y must have shape {predicted.shape}, as X has rows, got {labels.shape}"
            )
        check_targets(labels)
        weights = as_sample_weights(sample_weight, len(labels))
        require_some(weights)
        known = np.isin(labels, self.classes_)
        true = np.searchsorted(self.classes_, np.where(known, labels, self.classes_[0]))
        said = np.searchsorted(self.classes_, predicted)
        weights = without_unit(weights)
        costs = np.where(known, self.cost_[true, said] / self.cost_.max(), 1.0)
        return 1.0 - float(weights @ costs) / float(weights.sum())

    @property
    def surrogate_(self) -> str:
        """The surrogate of the fit, "hinge" or "logistic"."""
        check_is_fitted(self)
        return self._surrogate

    @property
    def feature_importances_(self) -> FloatArray:
        """The weights of the learners, distributed to their features; they sum to 1."""
        check_is_fitted(self)
        width = self.code_.shape[1] if self._augmented else 1
        shares = importances(self.estimators_, self.estimator_weights_, width * self.n_features_in_)
        by_feature: FloatArray = shares.reshape(width, -1).sum(axis=0)
        return by_feature

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._design(self._table(X, reset=False, accept_sparse=["csc", "csr"]))

    def _merit(self, examples: Examples) -> Callable[[FloatArray], float]:
        scoring = as_scoring(self._settings.scoring)
        merit = class_merit(scoring, self.classes_, examples.y, examples.weight, self.cost_)
        return lambda scores: merit(self._by_class(scores))

    def _design(self, X: Any) -> Any:
        return self._augment(X) if self._augmented else X

    def _evaluated(self, X: Any, y: Any) -> Examples:
        """Read an evaluation set, with the classes of this fit."""
        X, y = self._table(X, y, reset=False, accept_sparse="csr")
        return Examples(X, known_places(y, self.classes_), np.ones(X.shape[0]))

    def _calibrated(self, outside: list[HeldOut]) -> ClassProbabilities:
        if not outside:
            raise ValueError(
                "calibrate needs rows that the fit does not see, two classes among the others, got "
                "too few rows"
            )
        scores = np.concatenate([self._by_class(part.scores) for part in outside])
        labels = np.concatenate([part.examples.y for part in outside])
        weight = np.concatenate([part.examples.weight for part in outside])
        return ClassProbabilities.fit(
            str(self.calibrate), scores, labels, weight, len(self.classes_)
        )

    def _augment(self, X: Any) -> csr_array:
        """Return the Kronecker products of code[y] and x for all classes y, (k n, s d)."""
        return kron(csr_array(self.code_), X, format="csr")

    def _by_class(self, scores: FloatArray) -> FloatArray:
        """Return scores of segments, (s, n), as scores of classes."""
        k = len(self.classes_)
        by_class = scores.reshape(k, -1).T if self._augmented else scores.T @ self.code_.T
        return by_class[:, 1] - by_class[:, 0] if k == 2 else np.ascontiguousarray(by_class)

    def _labels(self, scores: FloatArray) -> NDArray[Any]:
        places = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[places]
        return labels

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = takes_missing(self.estimator)
        return tags


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    r"""Scores of k classes, (n, k), as probabilities.

    "softmax" is :math:`p_y \propto \exp(t f_y + b_y)` with one temperature and a bias per class,
    which minimise the log-loss. "sigmoid" and "isotonic" calibrate each class against the others,
    by Platt's sigmoid or a monotone function, and normalise.

    Two classes have one score, (n,). Half of it is the score of the second class, and minus half
    that of the first.
    """

    maps: Any

    @classmethod
    def fit(
        cls, method: str, scores: FloatArray, y: IntArray, weight: FloatArray, k: int
    ) -> ClassProbabilities:
        """Fit to scores, indices of the true classes and weights of the rows."""
        scores = _of_classes(scores)
        if method == "softmax":
            return cls(_softmax_map(scores, y, weight / weight.sum(), k))
        positive = y[:, None] == np.arange(k)
        return cls(Calibration.fit(method, expit(scores), positive, weight))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n, k), rows of sum 1."""
        scores = _of_classes(scores)
        if isinstance(self.maps, tuple):
            slope, bias = self.maps
            return np.asarray(softmax(slope * scores + bias, axis=1))
        calibrated = self.maps(expit(scores))
        sums = calibrated.sum(axis=1, keepdims=True)
        # If every class has probability 0, the row gets equal probabilities.
        shares: FloatArray = np.where(
            sums > 0, calibrated / np.where(sums > 0, sums, 1), 1 / calibrated.shape[1]
        )
        return shares


def _of_classes(scores: FloatArray) -> FloatArray:
    return scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1) / 2


def _softmax_map(
    scores: FloatArray, y: IntArray, weight: FloatArray, k: int
) -> tuple[float, FloatArray]:
    """Fit the nonnegative temperature and the biases of least log-loss, a convex problem."""
    unit = max(float(np.abs(scores).max(initial=0.0)), 1e-300)
    scaled = scores / unit
    hot = (y[:, None] == np.arange(k)).astype(np.float64)

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        z = x[0] * scaled + x[1:]
        logs = log_softmax(z, axis=1)
        off = weight[:, None] * (np.exp(logs) - hot)
        value = -float(weight @ (hot * logs).sum(axis=1)) + _RIDGE / 2 * float(x[1:] @ x[1:])
        return value, np.concatenate([[np.sum(off * scaled)], off.sum(axis=0) + _RIDGE * x[1:]])

    start = np.concatenate([[1.0], np.zeros(k)])
    bounds = [(0.0, 1e6)] + [(None, None)] * k
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]) / unit, np.asarray(found[1:])
