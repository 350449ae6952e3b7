"""Probabilities of positive labels and of sets that are not empty, learnt out of fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
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
from setwise.losses._labels import as_csr

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


def positive_probabilities(estimator: Any, X: Any, positive: Any) -> Any:
    """Return probabilities of the class ``positive``, (n,), or of label 1 in each column, (n, p).

    Multi-output classifiers return a list with an array (n, classes) per label; one-vs-rest, chains
    and networks return an array (n, p), and those for many labels a sparse matrix.
    """
    predicted = estimator.predict_proba(X)
    if issparse(predicted):
        if positive is not None:
            raise ValueError("estimator must return dense probabilities for y of shape (n,)")
        return clipped(as_csr(predicted, "what predict_proba returns").astype(np.float64))
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


def clipped(p: Any) -> Any:
    """Return probabilities, an array or a CSR matrix, without rounding errors beyond 0 and 1."""
    if not issparse(p):
        return np.clip(p, 0.0, 1.0)
    data = np.clip(p.data, 0.0, 1.0)
    return type(p)((data, p.indices, p.indptr), shape=p.shape)


def out_of_fold(
    estimator: Any,
    X: Any,
    target: NDArray[Any],
    positive: Any,
    folds: list[tuple[IntArray, IntArray]],
    weight: FloatArray | None,
    deadline: Deadline,
) -> tuple[Any, NDArray[np.bool_]]:
    """Return out-of-fold probabilities, and which samples have one.

    No fit begins after the time limit. A fold is left out if its training part lacks a class and
    the estimator cannot be fitted without it.
    """
    if issparse(X):
        X = X.tocsr()
    elif not hasattr(X, "iloc"):
        X = np.asarray(X)
    parts, rows = [], []
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
        parts.append(positive_probabilities(model, _safe_indexing(X, test), positive))
        rows.append(test)
        seen[test] = True
    if any(issparse(part) for part in parts):
        # Samples without a probability get an empty row, and repeated ones that of the last fold.
        last = np.full(len(target), -1)
        last[np.concatenate(rows)] = np.arange(sum(map(len, rows)))
        stacked = vstack([*parts, type(parts[0])((1, target.shape[1]))], format="csr")
        return stacked[last], seen
    found = np.zeros(target.shape)
    for test, part in zip(rows, parts, strict=True):
        found[test] = part
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
        there: BoolArray = (
            np.logical_or.reduceat(sets.in_order(positive), sets.offsets[:-1])
            if sets.pattern is None
            else np.asarray(positive.any(axis=1))
        )
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
        return np.maximum(predicted, _largest(sets))


def _signs(sets: SetProbabilities) -> FloatArray:
    """Return features (n, 3) from the largest probability, the expected size and P(empty)."""
    # The sums are in order, and elements of probability 0 add nothing, so that sparse rows have the
    # features of dense ones.
    number = np.repeat(np.arange(sets.n), np.diff(sets.offsets))
    size = np.bincount(number, sets.flat, minlength=sets.n)
    logs = -np.log1p(-np.minimum(sets.flat, 1 - CERTAIN))
    none = np.bincount(number, logs, minlength=sets.n)
    most = np.clip(_largest(sets), CERTAIN, 1 - CERTAIN)
    return np.column_stack(
        [logit(most), np.log(np.maximum(size, CERTAIN)), np.log(np.maximum(none, CERTAIN))]
    )


def _largest(sets: SetProbabilities) -> FloatArray:
    """Return the largest probability of each set, 0 for a set without elements."""
    most = np.zeros(sets.n)
    some = np.flatnonzero(np.diff(sets.offsets))
    if some.size:
        most[some] = np.maximum.reduceat(sets.flat, sets.offsets[some])
    return most
