"""Out-of-fold scores of any classifier as features of the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.validation import has_fit_parameter

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._fields._graphs import Graphs

Folds = Sequence[tuple[IntArray, IntArray]]

# Probabilities are clipped to [_CERTAIN, 1 - _CERTAIN] before the logarithm. The largest unary is
# then about 9, so that pairs can correct a classifier that is sure and wrong. It is not tuned.
_CERTAIN = 1e-4


def check_classifier(classifier: Any, name: str = "scores") -> None:
    """Raise an error unless the object has ``fit`` and ``predict_proba``."""
    fits = hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")
    if isinstance(classifier, type) or not fits:
        what = classifier.__name__ if isinstance(classifier, type) else type(classifier).__name__
        raise TypeError(
            f"{name} must be a classifier with predict_proba or None, got {what}: "
            "CalibratedClassifierCV gives one to others"
        )


def folds_of(cv: Any, n_graphs: int) -> Folds:
    """Split the graphs into ``cv`` consecutive blocks, by default five, or by a splitter."""
    if n_graphs < 2:
        raise ValueError(f"X must hold at least two graphs for folds, got {n_graphs}")
    try:
        splitter = KFold(min(KFold().get_n_splits(), n_graphs)) if cv is None else check_cv(cv)
        folds = [
            (np.asarray(train), np.asarray(test))
            for train, test in splitter.split(np.zeros((n_graphs, 1)))
        ]
        tests = np.concatenate([np.zeros(0, np.int64), *(test for _, test in folds)])
        left_out = np.bincount(tests, minlength=n_graphs)
    except (TypeError, ValueError, AttributeError) as error:
        raise type(error)(f"cv: {error}") from error
    if len(left_out) > n_graphs or (left_out != 1).any():
        raise ValueError("cv must leave out every graph once, got folds that do not")
    return folds


def learn_scores(
    classifier: Any,
    graphs: Graphs,
    labels: IntArray,
    n_labels: int,
    node_weights: FloatArray | None,
    folds: Folds,
) -> tuple[Any, FloatArray]:
    """Fit the classifier to all nodes, and return out-of-fold scores (M, s)."""

    def fitted(rows: Any) -> Any:
        options: dict[str, Any] = {}
        if node_weights is not None and has_fit_parameter(classifier, "sample_weight"):
            options["sample_weight"] = node_weights[rows]
        if len(np.unique(labels[rows])) < 2:  # most classifiers raise an error for a single class
            return DummyClassifier(strategy="prior").fit(graphs.nodes[rows], labels[rows])
        return clone(classifier).fit(graphs.nodes[rows], labels[rows], **options)

    scores = np.zeros((len(labels), 1 if n_labels == 2 else n_labels))
    of_graph = graphs.of_nodes(np.arange(len(labels)))
    for train, test in folds:
        rest = np.concatenate([of_graph[i] for i in train])
        held = np.concatenate([of_graph[i] for i in test])
        if len(held):
            scores[held] = scores_of(fitted(rest), graphs.nodes[held], n_labels)
    return fitted(slice(None)), scores


def scores_of(estimator: Any, rows: FloatArray, n_labels: int) -> FloatArray:
    """Return the logit of the second label, (m, 1), or the log-probabilities of all, (m, L)."""
    chances = np.zeros((len(rows), n_labels))
    if len(rows):  # a label may be missing in a fold
        chances[:, estimator.classes_] = estimator.predict_proba(rows)
    if n_labels == 2:
        return np.asarray(logit(np.clip(chances[:, 1:], _CERTAIN, 1 - _CERTAIN)))
    return np.log(np.clip(chances, _CERTAIN, 1.0))
