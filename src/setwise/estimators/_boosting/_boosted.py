"""The common base of boosted estimators: the search for weak learners, and the fitted state."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from setwise._foundation._arguments import SQUARABLE, FloatArray, as_count, check_randomness
from setwise._foundation._clock import Deadline
from setwise._foundation._progress import progress_callback
from setwise._foundation._threads import one_thread
from setwise._foundation._warnings import callers_level
from setwise.estimators._boosting._early_stopping import ScoreWatch
from setwise.estimators._threads import threads
from setwise.learning import (
    ClassifierSearch,
    PerceptronSearch,
    StepSearch,
    StumpSearch,
    struct_boost,
)
from setwise.learning._boosting._boost_fit import BoostFit, BoostProgress
from setwise.learning._boosting._master import ACCURACY
from setwise.learning._boosting._problem import WeakLearnerSearch
from setwise.learning._weak_learners._rows import respond

# One learner is added per round for each _SCORES_A_COLUMN scores, up to _MOST_COLUMNS. With more
# scores a round costs more, and more learners can be distinguished in one round. Not tuned:
# ``columns_per_round`` replaces them.
_SCORES_A_COLUMN, _MOST_COLUMNS = 60_000, 8


def _stumps(
    X: Any, n_columns: int, n_threads: int, rng: object, **of_columns: Any
) -> WeakLearnerSearch:
    return StumpSearch(X, n_columns, n_jobs=n_threads, **of_columns)


def _trees(X: Any, n_columns: int, n_threads: int, rng: object) -> WeakLearnerSearch:
    return ClassifierSearch(X, DecisionTreeClassifier(max_depth=3), n_columns, rng=rng)


def _perceptrons(X: Any, n_columns: int, n_threads: int, rng: object) -> WeakLearnerSearch:
    return PerceptronSearch(X, n_columns, n_jobs=n_threads)


def _steps(
    X: Any, n_columns: int, n_threads: int, rng: object, **options: Any
) -> WeakLearnerSearch:
    return StepSearch(X, n_columns, n_jobs=n_threads, **options)


def _linear(X: Any, n_columns: int, n_threads: int, rng: object) -> WeakLearnerSearch:
    """Make the search for support vector machines of the paper's Section 4.3.

    C is 1e8 / m for weights of sum 1.
    """
    largest = float(abs(X).max())
    # The solver squares its numbers, and does not terminate if they overflow.
    if largest > SQUARABLE:
        raise ValueError(
            f"X must stay below {SQUARABLE:g} for linear support vector machines, got {largest:g}"
        )
    machine = LinearSVC(C=1e8 / X.shape[0] ** 2)
    return ClassifierSearch(X, machine, n_columns, drop=0.1, rng=rng)


SEARCHES: dict[str, Callable[..., WeakLearnerSearch]] = {
    "stump": _stumps,
    "tree": _trees,
    "perceptron": _perceptrons,
    "linear": _linear,
}
# The searches by name, for estimators whose weak learners may have a weight per class.
SHARED_SEARCHES: dict[str, Callable[..., WeakLearnerSearch]] = SEARCHES | {"step": _steps}


def make_search(
    estimator: Any,
    X: Any,
    *,
    n_columns: int = 1,
    random_state: object,
    n_jobs: int | None,
    words: Collection[str] = SEARCHES,
    **of_stumps: Any,
) -> WeakLearnerSearch:
    """Make the search of an ``estimator``: a name in ``SEARCHES`` or a classifier.

    ``of_stumps`` has options for the columns of X, which only a search for stumps takes.
    """
    n_threads = threads(n_jobs)
    check_estimator(estimator, words=words)
    check_randomness(random_state, "random_state")
    if isinstance(estimator, str):
        return SHARED_SEARCHES[estimator](X, n_columns, n_threads, random_state, **of_stumps)
    return ClassifierSearch(X, estimator, n_columns, rng=random_state)


def check_estimator(
    estimator: Any, name: str = "estimator", words: Collection[str] = SEARCHES
) -> None:
    """Raise an error unless ``estimator`` is a known name or a classifier that takes weights."""
    allowed = f"{name} must be one of {', '.join(map(repr, words))} or a scikit-learn classifier"
    if isinstance(estimator, str):
        if estimator not in words:
            raise ValueError(f"{allowed}, got {estimator!r}")
        return
    fits = hasattr(estimator, "fit") and not isinstance(estimator, type)
    if not (fits and is_classifier(estimator)):
        raise TypeError(f"{allowed}, got {_what(estimator)}")
    if not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(f"{allowed} whose fit takes sample_weight, got {_what(estimator)}")


def weighted_scores(
    learners: Sequence[Any],
    segments: NDArray[np.int64] | None,
    weights: FloatArray,
    n_segments: int,
    X: Any,
) -> FloatArray:
    """Sum the weighted responses on the rows of X, segment by segment: (n_segments, n).

    A learner has one weight, for its segment, or n_segments weights if ``segments`` is None.
    """
    scores = np.zeros((n_segments, X.shape[0]))
    for place, learner in enumerate(learners):
        own = range(n_segments) if segments is None else segments[[place]]
        used = [
            (s, part) for s, part in zip(own, np.atleast_1d(weights[place]), strict=True) if part
        ]
        response = respond(learner, X) if used else None
        for segment, part in used:
            scores[segment] += part * response
    return scores


def columns_a_round(asked: object, n_scores: int) -> int:
    """Return how many weak learners are added per round, or None if it depends on the scores."""
    if asked is None:
        return int(min(max(n_scores // _SCORES_A_COLUMN, 1), _MOST_COLUMNS))
    return as_count(asked, "columns_per_round", least=1)


def importances(learners: Sequence[Any], weights: FloatArray, n_features: int) -> FloatArray:
    """Return the learners' weights distributed to their features, which sum to 1 or are all 0."""
    shares = np.zeros(n_features)
    if weights.ndim == 2:
        weights = np.abs(weights).sum(axis=1)
    for learner, weight in zip(learners, weights, strict=True):
        if weight != 0:
            shares += weight * learner.importances(n_features)
    total = shares.sum()
    return shares / total if total > 0 else shares


def warn_of_gap(name: str, fit: BoostFit, tol: float, n_estimators: int) -> None:
    """Warn once if a fit ended above its tolerance although nobody asked it to stop."""
    if fit.interrupted or fit.relative_gap <= max(tol, ACCURACY):
        return
    gap = f"a relative gap of {fit.relative_gap:.1e}, above tol={tol:g}"
    if fit.reason.startswith("time_limit"):
        message = (
            f"{name} stopped after {fit.n_iter} rounds at {gap}: {fit.reason}, raise it or tol"
        )
    elif not fit.w.any():
        return  # struct_boost has warned
    elif fit.history.n_columns[-1] >= n_estimators:
        message = (
            f"{name} stopped at n_estimators={n_estimators} weak learners with {gap}: raise "
            "n_estimators for a better objective, lower C for an easier one, or raise tol if that "
            "is near enough"
        )
    else:
        message = (
            f"{name} found no further weak learner at {gap}: what is left is within the accuracy "
            "of the linear program, lower C or raise tol"
        )
    warnings.warn(message, ConvergenceWarning, stacklevel=callers_level())


class Boosted:
    """Fitted state and predictions of an estimator with weak learners on segments of scores.

    ``_boost`` runs ``struct_boost`` and ``_store`` stores the result. Learners without a final
    weight are kept only if earlier stages used them.
    """

    n_features_in_: int
    C: float
    tol: float
    n_estimators: int
    time_limit: float | None
    verbose: bool

    def _boost(
        self,
        risk: Any,
        search: WeakLearnerSearch,
        deadline: Deadline,
        user: Callable[[BoostProgress], object] | None = None,
        *,
        C: float | None = None,
        tol: float | None = None,
        watch: ScoreWatch | None = None,
        quiet: bool = False,
        **options: Any,
    ) -> BoostFit:
        """Fit, and call ``user`` after each round. A ``quiet`` fit shows no progress."""
        tol = self.tol if tol is None else tol
        learn = partial(struct_boost, risk, search, self.C if C is None else C, tol=tol, **options)
        with (
            one_thread(),  # sums in BLAS depend on the number of threads
            progress_callback(self.verbose and not quiet, tol, user) as callback,
        ):
            reporting = callback if watch is None else watch.around(callback)
            return deadline.run(
                partial(
                    learn,
                    n_estimators=self.n_estimators,
                    time_limit=deadline.inherited,
                    callback=reporting,
                )
            )

    def _store(
        self, fit: BoostFit, n_segments: int, *, stopped: bool = False, shared: bool = False
    ) -> None:
        """Store the result of a fit. If validation ``stopped`` it, do not warn about its gap."""
        if not stopped:
            warn_of_gap(type(self).__name__, fit, self.tol, self.n_estimators)
        step = n_segments if shared else 1
        self.estimators_ = [column.learner for column in fit.columns[::step]]
        self.estimator_weights_ = np.array(fit.w.reshape(-1, step) if shared else fit.w)
        segments = np.array([column.segment for column in fit.columns], np.int64)
        self.estimator_segments_ = None if shared else segments
        # Plain arrays can be stored by skops without declaring a trusted type.
        self._stages = fit.stages.data, fit.stages.indices, fit.stages.indptr
        self.gap_ = fit.relative_gap
        self.certified_ = fit.certified
        self.n_iter_ = fit.n_iter
        self.interrupted_ = fit.interrupted
        self.history_ = fit.history
        self._n_segments = n_segments

    @property
    def stages_(self) -> csr_array:
        """The weights after each round, (n_stages, n_weights), grouped by learner."""
        check_is_fitted(self)
        shape = len(self._stages[2]) - 1, self.estimator_weights_.size
        return csr_array(self._stages, shape=shape)

    @property
    def feature_importances_(self) -> FloatArray:
        """The weights of the learners, distributed to their features; they sum to 1."""
        check_is_fitted(self)
        return importances(self.estimators_, self.estimator_weights_, self.n_features_in_)

    def _segment_scores(self, X: Any) -> FloatArray:
        """Return the scores of validated rows, (n_segments, n)."""
        return weighted_scores(
            self.estimators_,
            self.estimator_segments_,
            self.estimator_weights_,
            self._n_segments,
            X,
        )

    def _staged_segment_scores(self, X: Any) -> Iterator[FloatArray]:
        """Yield the scores of every stage; each learner predicts once."""
        responses = np.array([respond(learner, X) for learner in self.estimators_])
        stages, segments = self.stages_, self.estimator_segments_
        for stage in range(stages.shape[0]):
            weights = stages[[stage]].toarray().ravel()
            if segments is None:
                yield weights.reshape(self.estimator_weights_.shape).T @ responses
                continue
            scores = np.zeros((self._n_segments, X.shape[0]))
            for segment in np.unique(segments[weights != 0]):
                own = np.flatnonzero((segments == segment) & (weights != 0))
                scores[segment] = weights[own] @ responses[own]
            yield scores


def _what(estimator: object) -> str:
    return (
        f"the class {estimator.__name__}"
        if isinstance(estimator, type)
        else (type(estimator).__name__)
    )
