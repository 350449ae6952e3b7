"""Probabilities of positive labels and of sets that are not empty, learnt out of fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import _safe_indexing

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._clock import Deadline
from setwise.decisions._probabilities import SetProbabilities
from setwise.estimators._calibration import CERTAIN

# C of the logistic regression for presence, whose three features are all in units of logits. It is
# a weak penalty, which keeps the weights finite if the features separate the sets.
_C = 10.0


def first_estimator(estimator: Any, *, matrix: bool) -> Any:
    """Return a clone; for None logistic regression, one for each label of a matrix."""
    if estimator is None:
        plain = LogisticRegression(max_iter=1000)
        return OneVsRestClassifier(plain) if matrix else plain
    if not hasattr(estimator, "fit") or not hasattr(estimator, "predict_proba"):
        raise TypeError(
            "estimator must be a classifier with predict_proba, got "
            f"{type(estimator).__name__}: CalibratedClassifierCV gives one to others"
        )
    return clone(estimator)


def fitted(model: Any, X: Any, target: Any, weight: FloatArray | None) -> Any:
    """Fit the model, with the weights of the samples if there are any."""
    if weight is None:
        return model.fit(X, target)
    if not isinstance(model, OneVsRestClassifier) or not hasattr(
        model.estimator, "set_fit_request"
    ):
        return model.fit(X, target, sample_weight=weight)
    # Without routing, one-vs-rest passes no weights.
    with config_context(enable_metadata_routing=True):
        model.estimator.set_fit_request(sample_weight=True)
        return model.fit(X, target, sample_weight=weight)


def positive_probabilities(estimator: Any, X: Any, positive: Any) -> FloatArray:
    """Return probabilities of the class ``positive``, (n,), or of label 1 in each column, (n, p).

    Multi-output classifiers return a list with an array (n, classes) per label; one-vs-rest, chains
    and networks return an array (n, p).
    """
    predicted = estimator.predict_proba(X)
    if not isinstance(predicted, list):
        array = np.asarray(predicted, np.float64)
        if positive is None:
            return array
        column = np.flatnonzero(estimator.classes_ == positive)
        return array[:, column[0]] if len(column) else np.zeros(len(array))
    columns = []
    for chances, classes in zip(predicted, estimator.classes_, strict=True):
        column = np.flatnonzero(np.asarray(classes) == 1)
        # A label that was never positive in the sample has no column for the positive class.
        columns.append(chances[:, column[0]] if len(column) else np.zeros(len(chances)))
    return np.stack(columns, axis=1)


def out_of_fold(
    estimator: Any,
    X: Any,
    target: NDArray[Any],
    positive: Any,
    folds: list[tuple[IntArray, IntArray]],
    weight: FloatArray | None,
    deadline: Deadline,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return out-of-fold probabilities, and which samples have one.

    No fit begins after the time limit. A fold is left out if its training part lacks a class and
    the estimator cannot be fitted without it.
    """
    if issparse(X):
        X = X.tocsr()
    elif not hasattr(X, "iloc"):
        X = np.asarray(X)
    found = np.zeros(target.shape)
    seen = np.zeros(len(target), np.bool_)
    for train, test in folds:
        if deadline.over():
            break
        model = clone(estimator)
        own = None if weight is None else weight[train]
        try:
            fitted(model, _safe_indexing(X, train), target[train], own)
        except ValueError:
            if not _lost_a_class(target, train):
                raise
            continue
        found[test] = positive_probabilities(model, _safe_indexing(X, test), positive)
        seen[test] = True
    return found, seen


def _lost_a_class(target: NDArray[Any], train: IntArray) -> bool:
    """Return whether a label with two values has only one in the training part."""
    whole, part = np.atleast_2d(target.T), np.atleast_2d(target[train].T)
    pairs = zip(whole, part, strict=True)
    return any(len(np.unique(b)) < len(np.unique(a)) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class PresenceModel:
    """A logistic regression, or a constant if no set or every set is empty.

    If none of n sets is empty, the constant is (n + 1) / (n + 2).
    """

    model: Any
    always: float

    @classmethod
    def fit(
        cls, sets: SetProbabilities, positive: BoolArray, weight: FloatArray | None
    ) -> PresenceModel:
        """Fit to the out-of-fold probabilities and the truth of each set."""
        there = np.logical_or.reduceat(positive, sets.offsets[:-1])
        counted = there if weight is None else there[weight > 0]
        always = (np.count_nonzero(counted) + 1) / (len(counted) + 2)
        if counted.all() or not counted.any():
            return cls(None, always)
        return cls(LogisticRegression(C=_C).fit(_signs(sets), there, sample_weight=weight), always)

    def __call__(self, sets: SetProbabilities) -> FloatArray:
        """Return the presence of each set, at least its largest probability."""
        if sets.n == 0:
            return np.empty(0)
        predicted = (
            self.always if self.model is None else self.model.predict_proba(_signs(sets))[:, 1]
        )
        return np.maximum(predicted, np.maximum.reduceat(sets.flat, sets.offsets[:-1]))


def _signs(sets: SetProbabilities) -> FloatArray:
    """Return features (n, 3) from the largest probability, the expected size and P(empty)."""
    p, starts = np.clip(sets.flat, CERTAIN, 1 - CERTAIN), sets.offsets[:-1]
    most = np.maximum.reduceat(p, starts)
    number = np.add.reduceat(p, starts)
    none = np.add.reduceat(-np.log1p(-p), starts)
    return np.column_stack([logit(most), np.log(number), np.log(none)])
