"""Quality measures of class scores, by a scorer or by the costs of mistakes, and class weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from setwise._foundation._arguments import FloatArray, IntArray, as_number
from setwise.estimators._sets._folds import Scoring


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
    """Return a measure of scores (n, k) or (n,): a scorer's, or 1 - the mean share of the cost."""
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
    """Return the class of the largest score, or of its sign."""
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
