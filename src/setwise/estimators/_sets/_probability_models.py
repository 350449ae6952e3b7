"""Any classifier's probabilities of the positive labels, out of fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import _safe_indexing

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._deadline import Deadline


def first_estimator(estimator: Any, *, matrix: bool) -> Any:
    """A clone; None: logistic regression, one for each label of a matrix."""
    if estimator is None:
        plain = LogisticRegression(max_iter=1000)
        return OneVsRestClassifier(plain) if matrix else plain
    if not hasattr(estimator, "fit") or not hasattr(estimator, "predict_proba"):
        raise TypeError(
            "estimator must be a classifier with predict_proba, got "
            f"{type(estimator).__name__}: CalibratedClassifierCV gives one to others"
        )
    return clone(estimator)


def positive_probabilities(estimator: Any, X: Any, positive: Any) -> FloatArray:
    """(n,) or (n, p): of the class ``positive``, or of 1 for each column of a matrix.

    Multi-output classifiers give a list, an array (n, classes) for each label; one-vs-rest, chains
    and networks an array (n, p).
    """
    told = estimator.predict_proba(X)
    if not isinstance(told, list):
        array = np.asarray(told, np.float64)
        if positive is None:
            return array
        column = np.flatnonzero(estimator.classes_ == positive)
        return array[:, column[0]] if len(column) else np.zeros(len(array))
    columns = []
    for chances, classes in zip(told, estimator.classes_, strict=True):
        column = np.flatnonzero(np.asarray(classes) == 1)
        # A label that was never positive has one class, and no column for the other.
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
    """Probabilities by models that did not see the sample, and which samples have one.

    No fit begins when the time is over. A fold that has lost a class, with an estimator that cannot
    do without it, is left out.
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
        options = {} if weight is None else {"sample_weight": weight[train]}
        try:
            model.fit(_safe_indexing(X, train), target[train], **options)
        except ValueError:
            if not _lost_a_class(target, train):
                raise
            continue
        found[test] = positive_probabilities(model, _safe_indexing(X, test), positive)
        seen[test] = True
    return found, seen


def _lost_a_class(target: NDArray[Any], train: IntArray) -> bool:
    """Whether a label that varies does not vary in a part."""
    whole, part = np.atleast_2d(target.T), np.atleast_2d(target[train].T)
    pairs = zip(whole, part, strict=True)
    return any(len(np.unique(b)) < len(np.unique(a)) for a, b in pairs)
