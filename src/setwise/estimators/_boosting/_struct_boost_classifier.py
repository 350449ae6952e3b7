"""Boosting of weak learners for many classes at once, flat or in a taxonomy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, kron
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray, as_array, as_choice
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display
from setwise._foundation._sample_weights import as_sample_weights, require_some, without_unit
from setwise.estimators._boosting._boosted import (
    Boosted,
    columns_a_round,
    importances,
    make_search,
)
from setwise.estimators._boosting._class_risk import ClassRisk
from setwise.estimators._boosting._distinct_rows import distinct_rows
from setwise.estimators._boosting._taxonomy import label_code
from setwise.estimators._checked import check_targets, checked
from setwise.learning import BoostProgress


class StructBoostClassifier(Boosted, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Boosting with one convex problem for all classes, flat or in a taxonomy.

    .. math:: \min_{w \ge 0}\ 1^\top w + \frac{C}{m} \sum_i \max_y\ \Delta(y_i, y)
        + f_y(x_i) - f_{y_i}(x_i), \qquad f_y = \sum_s \Gamma_{ys} \sum_j w_{sj} h_j

    over all weak learners h, by column generation and cutting planes
    (``sw.learning.struct_boost``). Flat, the code :math:`\Gamma` is the unit matrix and the cost
    :math:`\Delta` is 1 for every mistake (equation (17)); for two classes that is LPBoost with a
    single score. In a taxonomy the code marks a class and its ancestors, and a mistake costs the
    height of the first common ancestor. ``predict`` takes the class of the largest score. ``gap_``
    says how far the objective can be from its minimum over all weak learners.

    Parameters
    ----------
    estimator : {"stump", "tree", "perceptron", "linear"} or classifier, default="stump"
        The weak learners: decision stumps, decision trees of depth 3, perceptrons, linear support
        vector machines, or any scikit-learn classifier that takes ``sample_weight``.
    n_estimators : int, default=200
        The most weak learners.
    time_limit : float, default=None
        The most seconds that ``fit`` may take, None for no limit. It then ends with the best
        weights so far and warns (``ConvergenceWarning``); ``gap_`` holds. The first round, without
        weak learners, one weak learner of scikit-learn and one linear program are not cut short.
        What was learned then depends on the machine and on what else it does.
    C : float, default=100.0
        Weight of the mean loss against the sum of the weights. Below a threshold, which grows with
        the number of classes, no learner pays and the fit warns.
    taxonomy : nested lists, parent array or graph, default=None
        A tree whose nodes include the classes. Lists are nodes and labels are leaves,
        ``[["cat", "dog"], ["car", "bus"]]``; a parent array gives the parent of each node, -1 for
        the root, and its first nodes are the classes in sorted order, all leaves among them, so
        that every class must occur in y, which the other forms do not ask for; a directed graph
        (``networkx.DiGraph``) has edges from parent to child and labels as nodes.
    label_form : {"coded", "augmented"}, default="coded"
        "coded": weights for each node of the code. "augmented": weak learners on the
        label-augmented features :math:`x \otimes \Gamma(y)` with a single w (Section 3.4).
    tol : float, default=1e-3
        Relative gap at which the fit stops; one that ends above it, at ``n_estimators`` say, warns
        (``ConvergenceWarning``).
    slack : {"one", "example"}, default="one"
        One slack for the mean loss, or one an example: the same optimum by a larger program.
    columns : {"shared", "class"}, default="shared"
        "shared": a weak learner has a weight, of any sign, for every column of the code, as in the
        paper. "class": it has one weight for one of them, not negative, so that more classes need
        more learners. The optimum over all weak learners is the same. Two classes and the augmented
        form have a single score, and one weight a learner.
    columns_per_round : int, default=None
        How many weak learners may enter in a round: more are found sooner, fewer are chosen better.
        None: one for every 60,000 scores (samples times columns of the code), at least 1 and at
        most 8.
    random_state : None, int or RandomState, default=None
        For weak learners that draw.
    n_jobs : int, default=None
        Threads of the search; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.
    callback : callable, default=None
        Called with a ``BoostProgress`` after each round; any true answer stops the fit.

    Attributes
    ----------
    classes_ : array of shape (k,)
    estimators_ : list
        The weak learners, in the order of their arrival.
    estimator_weights_ : array of shape (n_learners,), or (n_learners, s) if they are shared
    estimator_segments_ : array of shape (n_learners,), or None if they are shared
        The column of ``code_`` each learner scores; all 0 in the augmented form.
    code_ : array of shape (k, s)
        Gamma.
    cost_ : array of shape (k, k)
        Delta, row by true class.
    stages_ : sparse array of shape (n_stages, size of ``estimator_weights_``)
        The weights after each round, a row a round, those of one learner side by side.
    feature_importances_ : array of shape (n_features,)
    gap_ : float
        The relative gap: objective - bound as a share of what there was to gain (the objective
        without learners - bound) or of the objective, whichever is less.
    certified_ : bool
        Whether the bound is a proof: the search for weak learners is exact, so that ``gap_`` holds
        for all of them, not for those alone that were met. How near the fit came is ``gap_``.
    n_iter_ : int
        Rounds.
    interrupted_ : bool
        Whether Ctrl-C or the callback ended the fit, with the best weights so far.
    history_ : BoostHistory
        Primal, dual, seconds and sizes of each round.
    n_features_in_ : int

    References
    ----------
    C. Shen, G. Lin, A. van den Hengel, StructBoost: boosting methods for predicting structured
    output variables, 2014, Sections 3.1, 3.3 and 3.4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import setwise as sw
    >>> X, y = load_iris(return_X_y=True)
    >>> model = sw.StructBoostClassifier(C=10.0).fit(X, y)
    >>> model.score(X, y) > 0.95, model.gap_ <= 1e-3, model.certified_
    (True, True, True)
    >>> tree = sw.StructBoostClassifier(C=10.0, taxonomy=[[0], [1, 2]]).fit(X, y)
    >>> tree.cost_
    array([[0., 2., 2.],
           [2., 0., 1.],
           [2., 1., 0.]])
    """

    def __init__(
        self,
        estimator: Any = "stump",
        n_estimators: int = 200,
        C: float = 100.0,
        *,
        taxonomy: Any = None,
        label_form: str = "coded",
        tol: float = 1e-3,
        slack: str = "one",
        columns: str = "shared",
        columns_per_round: int | None = None,
        random_state: object = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
        callback: Callable[[BoostProgress], object] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.C = C
        self.taxonomy = taxonomy
        self.label_form = label_form
        self.tol = tol
        self.slack = slack
        self.columns = columns
        self.columns_per_round = columns_per_round
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the weak learners and their weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,) or number, optional
            2 equals a repeated sample, 0 a removed one.

        Returns
        -------
        self
        """
        augmented = as_choice(self.label_form, "label_form", ("coded", "augmented")) == "augmented"
        shared = as_choice(self.columns, "columns", ("shared", "class")) == "shared"
        columns_a_round(self.columns_per_round, 0)
        check_display(self.verbose, self.callback)
        deadline = Deadline.of(self.time_limit, armed=False)
        X, y = checked(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_targets(y)
        weight = without_unit(as_sample_weights(sample_weight, X.shape[0]))
        require_some(weight)
        self.classes_ = np.unique(np.asarray(y)[weight > 0])
        if len(self.classes_) < 2:
            raise ValueError(
                "Classifier can't train when only one class is present: y must hold two classes, "
                f"got {self.classes_.tolist()}"
            )
        labels = np.searchsorted(self.classes_, y).astype(np.int64)
        X, labels, weight = distinct_rows(X, labels, weight)
        coding = label_code(self.taxonomy, self.classes_, augmented=augmented)
        self.code_, self.cost_ = coding.code, coding.cost
        self._augmented = augmented
        if augmented:
            X = self._augment(X)
        unit = augmented or np.array_equal(self.code_, np.eye(len(self.cost_)))
        risk = ClassRisk(
            labels,
            self.cost_,
            None if unit else self.code_,
            weight,
            one_segment=augmented,
        )
        n_segments = 1 if augmented else self.code_.shape[1]
        shared = shared and n_segments > 1
        width = columns_a_round(self.columns_per_round, n_segments * X.shape[0])
        search = make_search(
            self.estimator,
            X,
            n_columns=width,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        fit = self._boost(
            risk,
            search,
            deadline,
            slack=self.slack,
            columns="shared" if shared else "class",
            columns_per_round=width,
        )
        self._store(fit, n_segments, shared=shared)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Scores of the classes, (n, k); for two classes one, (n,), positive for the second."""
        rows = self._rows(X)
        return self._by_class(self._segment_scores(rows))

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """The scores of each stage: after each round that added weak learners."""
        rows = self._rows(X)
        for scores in self._staged_segment_scores(rows):
            yield self._by_class(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest score, (n,)."""
        return self._labels(self.decision_function(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """The classes of each stage."""
        for scores in self.staged_decision_function(X):
            yield self._labels(scores)

    def score(self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
        """The share of the samples, by weight, whose class is the right one."""
        predicted, labels = self.predict(X), as_array(y, "y")
        if labels.shape != predicted.shape:
            raise ValueError(
                f"y must have shape {predicted.shape}, as X has rows, got {labels.shape}"
            )
        check_targets(labels)
        weights = as_sample_weights(sample_weight, len(labels))
        require_some(weights)
        return float(accuracy_score(labels, predicted, sample_weight=weights))

    @property
    def feature_importances_(self) -> FloatArray:
        """The weights of the learners, shared out to their features; they sum to 1."""
        check_is_fitted(self)
        width = self.code_.shape[1] if self._augmented else 1
        shares = importances(self.estimators_, self.estimator_weights_, width * self.n_features_in_)
        by_feature: FloatArray = shares.reshape(width, -1).sum(axis=0)
        return by_feature

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        X = checked(self, X, accept_sparse=["csc", "csr"], dtype=np.float64, reset=False)
        return self._augment(X) if self._augmented else X

    def _augment(self, X: Any) -> csr_array:
        """The rows code[y] (x) x for all classes, (k n, s d), class by class."""
        return kron(csr_array(self.code_), X, format="csr")

    def _by_class(self, scores: FloatArray) -> FloatArray:
        """Scores of segments, (s, n), as scores of classes."""
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
        return tags
