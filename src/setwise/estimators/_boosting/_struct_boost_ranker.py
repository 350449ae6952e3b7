"""Boosting for rankings: area under the ROC curve, average precision or discounted gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import (
    FloatArray,
    as_array,
    as_choice,
    as_count,
    as_flag,
    as_sample_weights,
    without_unit,
)
from setwise._foundation._base_classes import Versioned
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import check_display
from setwise.estimators._boosting._boosted import make_search
from setwise.estimators._boosting._columns import Tabular, takes_missing
from setwise.estimators._boosting._distinct_rows import distinct_rows
from setwise.estimators._boosting._held_out import Examples, as_eval_set, known_places
from setwise.estimators._boosting._list_risk import AveragePrecisionRisk, GainRisk, ListRisk
from setwise.estimators._boosting._rank_risk import RankRisk, as_groups, cut_points
from setwise.estimators._boosting._validated import Validated
from setwise.estimators._checked import check_targets
from setwise.learning import BoostOptions
from setwise.learning._boosting._boost_fit import BoostProgress
from setwise.learning._boosting._options import read_options
from setwise.learning._boosting._problem import WeakLearnerSearch

# The fields of ``BoostOptions`` that apply to rankings.
_TAKEN = (
    "slack",
    "validation_fraction",
    "n_iter_no_change",
    "n_folds",
    "categorical_features",
    "monotonic_cst",
)

LOSSES: dict[str, type[RankRisk] | type[ListRisk]] = {
    "auc": RankRisk,
    "average_precision": AveragePrecisionRisk,
    "ndcg": GainRisk,
}


class StructBoostRanker(Versioned, Validated, Tabular, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Boosting of weak learners for rankings: positive above negative, higher levels above lower.

    .. math:: \min_{w \ge 0}\ 1^T w + \frac{C}{|S|} \sum_{(i, j) \in S} (1 - (f(x_i) - f(x_j)))_+ ,
        \qquad f = \sum_j w_j h_j, \quad S = \{(i, j): y_i > y_j\}

    over all weak learners h, equation (14) with the mean over the pairs, by column generation and
    cutting planes (``sw.learning.struct_boost``). With two classes the sum bounds 1 - AUC. The
    pairs are never listed: a plane costs one sort. Other losses evaluate the list of a query as a
    whole, by its worst ranking, which is found exactly. ``gap_`` bounds the distance of the
    objective from its minimum over all weak learners.

    Parameters
    ----------
    estimator : {"stump", "tree", "perceptron", "linear"} or classifier, default="stump"
        The weak learners: decision stumps, decision trees of depth 3, perceptrons, linear support
        vector machines, or any scikit-learn classifier that takes ``sample_weight``.
    n_estimators : int, default=200
        The largest number of weak learners. With ``early_stopping``, validation may choose fewer.
    time_limit : float, default=None
        The largest number of seconds that ``fit`` may take, None for no limit. It then ends with
        the best weights so far and warns (``ConvergenceWarning``); ``gap_`` is valid. The first
        round, the fit of a weak learner of scikit-learn, and a linear program are not interrupted.
        The result then depends on the speed and the load of the machine.
    C : float or "auto", default="auto"
        Weight of the mean over the pairs, or the queries, against the sum of the weights. "auto"
        tries 50 times the least C for which a weak learner gets a weight, then 150 times. If 150
        does not improve the score of held-out rows, it tries 15 times and then 5 times, while the
        score improves. Held-out rows are those of ``eval_set`` or ``early_stopping``, otherwise
        folds, after which all rows are fitted. Above 20,000 rows a random sample of that size
        chooses.
    loss : {"auc", "average_precision", "ndcg"}, default="auc"
        The loss of a ranking: the share of pairs in the wrong order; 1 - the average precision of
        each query, with the features of Yue et al.; or 1 - its normalised discounted gain, with y
        as gains (0 and 1 unless ``ordinal``) and the discounts as features.
    k : int, default=None
        The number of places of a query's ranking that count with loss="ndcg" (NDCG@k); None for
        all.
    early_stopping : bool or "auto", default="auto"
        Whether held-out rows end the fit, after ``n_iter_no_change`` rounds in which neither their
        score nor their loss improved, and choose the round that is kept. "auto" is True if an
        ``eval_set`` is given or there are more than 10,000 rows.
    tol : float, default=1e-3
        Relative gap at which the fit stops. A fit that ends above it, for instance at
        ``n_estimators``, warns (``ConvergenceWarning``).
    ordinal : bool, default=False
        Whether y holds ordered levels, which may be any numbers. Otherwise it must hold two
        classes: the order of more classes might be meaningless.
    options : BoostOptions, default=None
        Settings that few fits change (``sw.learning.BoostOptions``): ``slack``,
        ``validation_fraction``, ``n_iter_no_change``, ``n_folds``, ``categorical_features`` and
        ``monotonic_cst``.
    random_state : None, int or RandomState, default=None
        The seed of random weak learners and of the choice of held-out rows; None is a fixed seed.
    n_jobs : int, default=None
        Threads of the search; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The two classes, of which the second is positive, or the levels in order.
    C_ : float
    C_scores_ : dict
        The score of held-out rows for each C that was tried; empty if C was given.
    best_iteration_ : int
        The round that was kept: with early stopping the best one, otherwise the last.
    evals_result_ : dict
        For "validation" or "valid_0", "valid_1" and so on: a dict of "score" and "loss", each with
        one number per round.
    estimators_ : list
        The weak learners, in the order in which they were added.
    estimator_weights_ : array of shape (n_learners,)
    estimator_segments_ : array of shape (n_learners,)
        All 0: the scores are one vector.
    cut_points_ : array of shape (n_classes - 1,)
        The thresholds of ``predict``, which minimise the training mistakes.
    stages_ : sparse array of shape (n_stages, n_learners)
        The weights after each round, one row per stage.
    feature_importances_ : array of shape (n_features,)
    gap_ : float
        The relative gap: (objective - bound) divided by (objective without learners - bound) or by
        the objective, whichever is smaller.
    certified_ : bool
        Whether the search for weak learners is exact, so that ``gap_`` is proved for all weak
        learners and not only for those that were found.
    n_iter_ : int
        Rounds.
    interrupted_ : bool
        Whether Ctrl-C or the callback ended the fit, with the best weights so far.
    history_ : BoostHistory
        Primal, dual, seconds and sizes of each round.
    categories_ : list
        The sorted categories of each categorical feature, None for other features; empty if no
        feature is categorical. ``CategoryStump`` has indices into them.
    n_features_in_ : int

    References
    ----------
    C. Shen, G. Lin, A. van den Hengel, StructBoost: boosting methods for predicting structured
    output variables, 2014, Section 3.2. Y. Yue, T. Finley, F. Radlinski, T. Joachims, A support
    vector method for optimizing average precision, 2007. Q. Le, A. Smola, Direct optimization of
    ranking measures, 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> import setwise as sw
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> model = sw.StructBoostRanker(C=10.0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.gap_ <= 1e-3
    (True, True)
    """

    @hints_at_names
    def __init__(
        self,
        estimator: Any = "stump",
        n_estimators: int = 200,
        C: float | str = "auto",
        *,
        loss: str = "auc",
        k: int | None = None,
        tol: float = 1e-3,
        ordinal: bool = False,
        early_stopping: bool | str = "auto",
        options: BoostOptions | None = None,
        random_state: object = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.C = C
        self.loss = loss
        self.k = k
        self.tol = tol
        self.ordinal = ordinal
        self.early_stopping = early_stopping
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.verbose = verbose

    @hints_at_names
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: Any = None,
        callback: Callable[[BoostProgress], object] | None = None,
    ) -> Self:
        """Fit the weak learners and their weights.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n, d)
            NaN is a missing value, and goes to the side of a stump that fits better. If a feature
            had no missing value in the fit, missing values and unknown categories add nothing to
            the score in prediction. If it had some, an unknown category counts as missing.
        y : array of shape (n,)
        groups : array of shape (n,), optional
            Only samples of the same group are compared: the answers to a query.
        qid : array of shape (n,), optional
            Another name for ``groups``.
        sample_weight : array of shape (n,) or number, optional
            The weight of a pair is the product of the weights of its samples. A weight of 2 is
            equivalent to a repeated sample, and 0 to a removed one. For the other losses it is the
            weight of a query, the same for all its samples or 0.
        eval_set : (X, y), (X, y, groups) or list of them, optional
            Sets that are scored after each round; the first ends the fit (``early_stopping``) and
            chooses C.
        callback : callable, optional
            Called with a ``BoostProgress`` after each round, whose ``scores`` are those of the
            held-out sets; any true value stops the fit. It is not called for the fits that choose
            C.

        Returns
        -------
        self
        """
        as_flag(self.ordinal, "ordinal")
        as_choice(self.loss, "loss", LOSSES)
        if self.k is not None:
            as_count(self.k, "k", least=1)
            if self.loss != "ndcg":
                raise ValueError(f"k must be None with loss={self.loss!r}, got {self.k}")
        self._check_fit_options()
        slack = as_choice(self._settings.slack, "slack", ("auto", "one", "example"))
        check_display(self.verbose, callback)
        deadline = Deadline.of(self.time_limit, armed=False)
        X, y = self._table(X, y, reset=True, accept_sparse="csr")
        places = self._learn_levels(np.asarray(y))
        weights = without_unit(as_sample_weights(sample_weight, len(places)))
        examples = Examples(X, places, weights, _groups_of(groups, qid, len(places)))
        self._risk(examples)  # raises an error if they are invalid
        held_out = isinstance(self.C, str) or self._stops_early(len(places), eval_set is not None)
        if self.loss == "auc" and held_out:  # a row must not be both held out and fitted
            examples = _distinct(examples)
        examples, fit, _ = self._learn(
            examples,
            [self._evaluated(*part) for part in as_eval_set(eval_set, (2, 3))],
            deadline,
            callback,
            slack="one" if slack == "auto" else slack,
        )
        self.cut_points_ = cut_points(fit.scores, examples.y, examples.weight, len(self.classes_))
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return scores (n,), higher for higher ranks; with two classes positive for the second."""
        return self._shifted(self._segment_scores(self._rows(X))[0])

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield the scores of each stage, (n,) each, shifted by the final threshold."""
        for scores in self._staged_segment_scores(self._rows(X)):
            yield self._shifted(scores[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class or level of each row, (n,), by ``cut_points_``."""
        scores = self._segment_scores(self._rows(X))[0]
        places = np.searchsorted(self.cut_points_, scores, side="left")
        labels: NDArray[Any] = self.classes_[places]
        return labels

    @hints_at_names
    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return 1 - the loss.

        This is the area under the ROC curve (the share of pairs in the right order, ties counting
        half), or the mean over the queries of average precision or normalised discounted gain.
        """
        scores = self.decision_function(X)
        labels = as_array(y, "y")
        if labels.shape != scores.shape:
            raise ValueError(f"y must have shape {scores.shape}, as X has rows, got {labels.shape}")
        weights = as_sample_weights(sample_weight, len(labels))
        names = _groups_of(groups, qid, len(labels))
        examples = Examples(None, known_places(labels, self.classes_), weights, names)
        return self._risk(examples).merit(scores)

    @property
    def _settings(self) -> BoostOptions:
        return read_options(self.options, type(self).__name__, _TAKEN)

    def _risk(self, examples: Examples) -> RankRisk | ListRisk:
        levels: NDArray[Any] = examples.y
        if self.loss == "ndcg" and self.ordinal:  # with ordered levels, y itself holds the gains
            levels = self.classes_[levels].astype(np.float64)
        if self.loss == "ndcg":
            return GainRisk(levels, examples.weight, examples.groups, self.k)
        return LOSSES[self.loss](levels, examples.weight, examples.groups)

    def _search(self, examples: Examples) -> WeakLearnerSearch:
        X = self._design(examples.X)
        return make_search(
            self.estimator,
            X,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            **self._stump_options(one_score=True),
        )

    def _merit(self, examples: Examples) -> Callable[[FloatArray], float]:
        risk = self._risk(examples)
        return lambda scores: risk.merit(scores[0])

    def _evaluated(self, X: Any, y: Any, groups: Any = None) -> Examples:
        """Read an evaluation set, with the classes of this fit."""
        X, y = self._table(X, y, reset=False, accept_sparse="csr")
        names = as_groups(groups, X.shape[0])
        return Examples(X, known_places(y, self.classes_), np.ones(X.shape[0]), names)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._table(X, reset=False, accept_sparse=["csc", "csr"])

    def _shifted(self, scores: FloatArray) -> FloatArray:
        """Return scores, shifted if there are two classes such that their sign is the class."""
        return scores - self.cut_points_[0] if len(self.classes_) == 2 else scores

    def _learn_levels(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of each label among the classes, and store the classes."""
        if self.ordinal:
            if y.dtype.kind not in "fiub":
                raise TypeError(f"y must hold numbers when ordinal, got dtype {y.dtype}")
        else:
            check_targets(y)
        self.classes_, levels = np.unique(y, return_inverse=True)
        if not self.ordinal and len(self.classes_) > 2:
            # The first sentence of the message is required by scikit-learn's estimator checks.
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}: set ordinal=True if the labels of y are ordered levels"
            )
        if len(self.classes_) < 2:
            raise ValueError(
                "Classifier can't train when only one class is present: y must hold two classes "
                f"or levels, got {self.classes_.tolist()}"
            )
        return levels.astype(np.int64)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = takes_missing(self.estimator)
        tags.classifier_tags.multi_class = False
        return tags


def _groups_of(groups: Any, qid: Any, n: int) -> NDArray[Any] | None:
    """Return the query of each row, given as ``groups`` or as ``qid``."""
    if groups is not None and qid is not None:
        raise ValueError("qid must be None where groups are given, got both: they are the same")
    return as_groups(qid, n, "qid") if groups is None else as_groups(groups, n)


def _distinct(examples: Examples) -> Examples:
    """Merge equal rows of the same group and level, and sum their weights."""
    groups = examples.groups
    keys = np.zeros(len(examples), np.int64)
    if groups is not None:
        names, keys = np.unique(groups, return_inverse=True)
    n_levels = int(examples.y.max()) + 1
    X, code, weight = distinct_rows(examples.X, keys * n_levels + examples.y, examples.weight)
    own = None if groups is None else names[code // n_levels]
    return Examples(X, code % n_levels, weight, own)
