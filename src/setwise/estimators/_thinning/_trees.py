"""The trees of a fitted ensemble, each as a column of scores."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._checked import checked, naming_x


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of an ensemble, and the score to which each contributes.

    There is one score per class, or a single one for two classes, positive for the second. A tree
    of a forest has an output for each score (``shared``), and a tree of gradient boosting for one
    score.

    Attributes
    ----------
    members : list
        The objects that predict the output of each tree.
    classes : array of shape (k,)
    segments : array of shape (T,)
        The score to which each tree contributes; all 0 if they are shared.
    shared : bool
    """

    members: list[Any]
    classes: NDArray[Any]
    segments: IntArray
    shared: bool

    @property
    def n_scores(self) -> int:
        k = len(self.classes)
        return 1 if k == 2 else k

    def take(self, kept: IntArray) -> Self:
        """Return the trees at the given indices."""
        members = [self.members[tree] for tree in kept]
        return replace(self, members=members, segments=self.segments[kept])

    def rows(self, owner: Any, X: Any) -> Any:
        """Return X in the form that the trees take; ``owner`` checks the number of features."""
        return checked(owner, X, reset=False, dtype=np.float32, accept_sparse="csr")

    def outputs(self, X: Any) -> Iterator[FloatArray]:
        """Yield the contributions of each tree to its score, (n,), or to all scores, (s n,)."""
        for member in self.members:
            yield self._output(member, X)

    def _output(self, member: Any, X: Any) -> FloatArray:
        raise NotImplementedError

    def _scores(self, votes: FloatArray) -> FloatArray:
        """Return outputs (n, k) of the classes as scores."""
        return votes[:, 1] - votes[:, 0] if votes.shape[1] == 2 else votes.T.ravel()


class ForestTrees(Trees):
    """Trees of a forest: the shares of the classes in a leaf."""

    def rows(self, owner: Any, X: Any) -> Any:
        gaps = not issparse(X) and all(get_tags(t).input_tags.allow_nan for t in self.members[:1])
        finite = "allow-nan" if gaps else True
        options = {"dtype": np.float32, "accept_sparse": "csr", "ensure_all_finite": finite}
        return checked(owner, X, reset=False, **options)

    def _output(self, member: Any, X: Any) -> FloatArray:
        return self._scores(member.predict_proba(X, check_input=False))


class BaggedTrees(Trees):
    """Members of a bagging, each with its own features: probabilities, or votes without them."""

    def rows(self, owner: Any, X: Any) -> Any:
        options = {"dtype": None, "accept_sparse": ["csr", "csc"], "ensure_all_finite": False}
        return checked(owner, X, reset=False, **options)

    def _output(self, member: Any, X: Any) -> FloatArray:
        estimator, features = member
        votes = np.zeros((X.shape[0], len(self.classes)))
        with naming_x(X):
            if hasattr(estimator, "predict_proba"):  # only the classes in its bag have columns
                votes[:, estimator.classes_] = estimator.predict_proba(X[:, features])
            else:
                votes[np.arange(len(votes)), estimator.predict(X[:, features])] = 1.0
        return self._scores(votes)


class VotingTrees(Trees):
    """Members of AdaBoost, whose votes for one class and against the others sum to zero."""

    def rows(self, owner: Any, X: Any) -> Any:
        return checked(owner, X, reset=False, dtype=None, accept_sparse=["csr", "csc"])

    def _output(self, member: Any, X: Any) -> FloatArray:
        k = len(self.classes)
        with naming_x(X):
            chosen = member.predict(X)[:, None] == self.classes
        return self._scores(np.where(chosen, 1.0, -1.0 / (k - 1)))


@dataclass(frozen=True, eq=False)
class GradientTrees(Trees):
    """Trees of GradientBoosting, with its learning rate."""

    rate: float

    def _output(self, member: Any, X: Any) -> FloatArray:
        output: FloatArray = self.rate * member.predict(X, check_input=False)
        return output


@dataclass(frozen=True, eq=False)
class HistogramTrees(Trees):
    """Trees of HistGradientBoosting; ``frame`` is the ensemble without them, which encodes X."""

    frame: Any

    def rows(self, owner: Any, X: Any) -> Any:
        with naming_x(X):
            return self.frame._preprocess_X(X, reset=False)

    def outputs(self, X: Any) -> Iterator[FloatArray]:
        bitsets, places = self.frame._bin_mapper.make_known_categories_bitsets()
        n_threads = _openmp_effective_n_threads()
        for member in self.members:
            yield member.predict(X, bitsets, places, n_threads)


@dataclass(frozen=True, eq=False)
class LightTrees(Trees):
    """Trees of LightGBM: ``members`` are their indices, round by round."""

    booster: Any

    def rows(self, owner: Any, X: Any) -> Any:
        # X is a table, whose categories LightGBM encodes itself.
        if hasattr(X, "dtypes") and hasattr(X, "columns"):
            return X
        options = {"dtype": np.float64, "accept_sparse": "csr", "ensure_all_finite": False}
        X = checked(owner, X, reset=False, **options)
        return X

    def outputs(self, X: Any) -> Iterator[FloatArray]:
        before, raw = -1, np.empty((0, 0))
        for member in self.members:
            iteration, segment = divmod(member, self.n_scores)
            if iteration != before:
                raw = self.booster.predict(
                    X, raw_score=True, start_iteration=iteration, num_iteration=1
                ).reshape(-1, self.n_scores)
                before = iteration
            yield np.ascontiguousarray(raw[:, segment], np.float64)


def _whole(T: int) -> IntArray:
    return np.zeros(T, np.int64)


def _forest(ensemble: Any) -> Trees:
    if ensemble.n_outputs_ != 1:
        raise ValueError(f"ensemble must have one output, got a forest with {ensemble.n_outputs_}")
    trees = list(ensemble.estimators_)
    return ForestTrees(trees, ensemble.classes_, _whole(len(trees)), True)


def _bagging(ensemble: Any) -> Trees:
    members = list(zip(ensemble.estimators_, ensemble.estimators_features_, strict=True))
    return BaggedTrees(members, ensemble.classes_, _whole(len(members)), True)


def _adaboost(ensemble: Any) -> Trees:
    members = list(ensemble.estimators_)
    return VotingTrees(members, ensemble.classes_, _whole(len(members)), True)


def _gradient(ensemble: Any) -> Trees:
    trees = ensemble.estimators_
    segments = np.tile(np.arange(trees.shape[1]), len(trees))
    members = trees.ravel().tolist()
    return GradientTrees(members, ensemble.classes_, segments, False, ensemble.learning_rate)


def _histogram(ensemble: Any) -> Trees:
    rounds = ensemble._predictors
    members = [tree for trees in rounds for tree in trees]
    segments = np.array([c for trees in rounds for c in range(len(trees))], np.int64)
    frame = copy.copy(ensemble)
    frame._predictors = []
    return HistogramTrees(members, ensemble.classes_, segments, False, frame)


def _lightgbm(ensemble: Any) -> Trees:
    booster = getattr(ensemble, "booster_", ensemble)
    per_round = booster.num_model_per_iteration()
    objective = str(booster.dump_model(num_iteration=1).get("objective", ""))
    if not objective.startswith(("binary", "multiclass")):
        raise TypeError(
            f"ensemble must be a classifier, got a Booster with the objective {objective!r}"
        )
    classes = getattr(ensemble, "classes_", np.arange(2 if per_round == 1 else per_round))
    T = booster.current_iteration() * per_round
    segments = np.tile(np.arange(per_round), booster.current_iteration())
    return LightTrees(list(range(T)), np.asarray(classes), segments, False, booster)


_READERS: tuple[tuple[type, Callable[[Any], Trees]], ...] = (
    (RandomForestClassifier, _forest),
    (ExtraTreesClassifier, _forest),
    (BaggingClassifier, _bagging),
    (AdaBoostClassifier, _adaboost),
    (GradientBoostingClassifier, _gradient),
    (HistGradientBoostingClassifier, _histogram),
)


def trees_of(ensemble: Any) -> Trees:
    """Return the trees of a fitted ensemble of scikit-learn or LightGBM."""
    lightgbm = sys.modules.get("lightgbm")  # a fitted model implies that LightGBM is imported
    readers = _READERS
    if lightgbm is not None:
        readers = (*readers, (lightgbm.LGBMClassifier, _lightgbm), (lightgbm.Booster, _lightgbm))
    for kind, read in readers:
        if isinstance(ensemble, kind):
            if hasattr(ensemble, "fit"):  # a Booster is fitted
                try:
                    check_is_fitted(ensemble)
                except NotFittedError:
                    raise NotFittedError(
                        f"ensemble must be fitted, got a {kind.__name__} that is not: call its fit"
                    ) from None
            return read(ensemble)
    what = (
        f"the class {ensemble.__name__}" if isinstance(ensemble, type) else type(ensemble).__name__
    )
    raise TypeError(
        f"ensemble must be a fitted {', '.join(kind.__name__ for kind, _ in _READERS)}, "
        f"LGBMClassifier or lightgbm.Booster, got {what}"
    )
