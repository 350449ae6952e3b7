"""The boosted classifier for many classes at once, flat or in a taxonomy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import as_choice, as_sample_weights, require_some, without_unit
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import check_display
from setwise.estimators._boosting._boosted import (
    SHARED_SEARCHES,
    columns_a_round,
    make_search,
)
from setwise.estimators._boosting._class_risk import ClassRisk, LogisticClassRisk, as_class_weights
from setwise.estimators._boosting._class_scores import METHODS, ClassScores
from setwise.estimators._boosting._distinct_rows import distinct_rows
from setwise.estimators._boosting._held_out import Examples, as_eval_set
from setwise.estimators._boosting._taxonomy import label_code
from setwise.estimators._checked import check_targets
from setwise.estimators._sets._folds import as_scoring
from setwise.learning import BoostOptions
from setwise.learning._boosting._boost_fit import BoostProgress
from setwise.learning._boosting._problem import WeakLearnerSearch
from setwise.learning._boosting._restricted import MANY_SCORES

SURROGATES = ("auto", "hinge", "logistic")
PENALTIES = ("auto", "l1", "group")


class StructBoostClassifier(ClassScores):
    r"""Boosting with one convex problem for all classes, flat or in a taxonomy.

    .. math:: \min_{w \ge 0}\ 1^\top w + \frac{C}{m} \sum_i \max_y\ \Delta(y_i, y)
        + f_y(x_i) - f_{y_i}(x_i), \qquad f_y = \sum_s \Gamma_{ys} \sum_j w_{sj} h_j

    over all weak learners h, by column generation and cutting planes
    (``sw.learning.struct_boost``). In the flat case the code :math:`\Gamma` is the unit matrix and
    the cost :math:`\Delta` is 1 for every mistake (equation (17)); for two classes this is LPBoost
    with a single score. In a taxonomy the code marks a class and its ancestors, and a mistake costs
    the height of the first common ancestor. ``predict`` takes the class of the largest score.
    ``gap_`` bounds the distance of the objective from its minimum over all weak learners.

    The logistic surrogate replaces the maximum by :math:`\log \sum_y \Delta(y_i, y)\, e^{f_y -
    f_{y_i}}`, with Delta = 1 at :math:`y_i` itself. With costs of 1 it is the negative
    log-likelihood of the classes under a softmax of the scores. It needs no linear program, and has
    a gap of its own.

    Parameters
    ----------
    estimator : {"stump", "step", "tree", "perceptron", "linear"} or classifier, default="stump"
        The weak learners: decision stumps, stumps with balanced levels (``sw.learning.StepSearch``;
        for more than two classes only with ``penalty="group"``), decision trees of depth 3,
        perceptrons, linear support vector machines, or any scikit-learn classifier that takes
        ``sample_weight``.
    n_estimators : int, default=200
        The largest number of weak learners. With ``early_stopping``, validation may choose fewer.
    time_limit : float, default=None
        The largest number of seconds that ``fit`` may take, None for no limit. It then ends with
        the best weights so far and warns (``ConvergenceWarning``); ``gap_`` is valid. The first
        round, the fit of a weak learner of scikit-learn, and a linear program are not interrupted.
        The result then depends on the speed and the load of the machine.
    C : float or "auto", default="auto"
        Weight of the mean loss against the sum of the weights. Below a threshold, which grows with
        the number of classes, all weights are 0 and the fit warns. "auto" tries 50 times that
        threshold, then 150 times. If 150 does not improve the score of held-out rows, it tries 15
        times and then 5 times, while the score improves. Held-out rows are those of ``eval_set`` or
        ``early_stopping``, otherwise folds, after which all rows are fitted. Above 20,000 rows a
        random sample of that size chooses, unless ``calibrate`` needs all rows.
    surrogate : {"auto", "hinge", "logistic"}, default="auto"
        The surrogate of the loss. If C is given, "auto" is the hinge, as in the paper, because the
        unit of C depends on the surrogate. If C is chosen, "auto" tries the hinge at the best C of
        the logistic surrogate, and takes it if its score on held-out rows is higher.
    taxonomy : nested lists, parent array or graph, default=None
        A tree whose nodes include the classes. In nested lists, lists are nodes and labels are
        leaves: ``[["cat", "dog"], ["car", "bus"]]``. A parent array gives the parent of each node,
        -1 for the root. Its first nodes are the classes in sorted order and include all leaves;
        every class must then occur in y. A directed graph (``networkx.DiGraph``) has edges from
        parent to child and labels as nodes.
    class_weight : dict or "balanced", default=None
        Weights of the classes, which multiply ``sample_weight``. "balanced" is n / (k n_y), where n
        is the weight of all samples and n_y that of class y.
    early_stopping : bool or "auto", default="auto"
        Whether held-out rows end the fit, after ``n_iter_no_change`` rounds in which neither their
        score nor their loss improved, and choose the round that is kept. "auto" is True if an
        ``eval_set`` is given or there are more than 10,000 distinct rows.
    calibrate : {None, "softmax", "sigmoid", "isotonic"}, default=None
        How ``predict_proba`` is calibrated, on scores of held-out rows: those of early stopping,
        otherwise folds. "softmax" has one temperature and a bias per class; the others calibrate
        each class against the rest and normalise.
    tol : float, default=1e-3
        Relative gap at which the fit stops. A fit that ends above it, for instance at
        ``n_estimators``, warns (``ConvergenceWarning``).
    options : BoostOptions, default=None
        Settings that few fits change (``sw.learning.BoostOptions``): the penalty, the form of the
        program, categories and monotonic constraints, and how rows are held out.
    random_state : None, int or RandomState, default=None
        The seed of random weak learners and of the choice of held-out rows; None is a fixed seed.
    n_jobs : int, default=None
        Threads of the search; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.

    Attributes
    ----------
    classes_ : array of shape (k,)
    C_ : float
    surrogate_ : {"hinge", "logistic"}
    C_scores_ : dict
        The score of held-out rows for each C that was tried with ``surrogate_``; empty if C was
        given.
    best_iteration_ : int
        The round that was kept: with early stopping the best one, otherwise the last.
    evals_result_ : dict
        For "validation" or "valid_0", "valid_1" and so on: a dict of "score" and "loss", each with
        one number per round.
    estimators_ : list
        The weak learners, in the order in which they were added.
    estimator_weights_ : array of shape (n_learners,), or (n_learners, s) if they are shared
    estimator_segments_ : array of shape (n_learners,), or None if they are shared
        The column of ``code_`` to which each learner contributes; all 0 in the augmented form.
    code_ : array of shape (k, s)
        Gamma.
    cost_ : array of shape (k, k)
        Delta, row by true class.
    stages_ : sparse array of shape (n_stages, size of ``estimator_weights_``)
        The weights after each round, one row per round, grouped by learner.
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

    @hints_at_names
    def __init__(
        self,
        estimator: Any = "stump",
        n_estimators: int = 200,
        C: float | str = "auto",
        *,
        surrogate: str = "auto",
        taxonomy: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        early_stopping: bool | str = "auto",
        calibrate: str | None = None,
        tol: float = 1e-3,
        options: BoostOptions | None = None,
        random_state: object = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.C = C
        self.surrogate = surrogate
        self.taxonomy = taxonomy
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.calibrate = calibrate
        self.tol = tol
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
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
        sample_weight : array of shape (n,) or number, optional
            A weight of 2 is equivalent to a repeated sample, and 0 to a removed one.
        eval_set : (X, y) or list of them, optional
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
        settings = self._settings
        form = as_choice(settings.label_form, "label_form", ("coded", "augmented"))
        augmented = form == "augmented"
        as_choice(self.surrogate, "surrogate", SURROGATES)
        slack = as_choice(settings.slack, "slack", ("auto", "one", "example"))
        shared = as_choice(settings.columns, "columns", ("shared", "class")) == "shared"
        as_choice(settings.penalty, "penalty", PENALTIES)
        columns_a_round(settings.columns_per_round, 0)
        if self.calibrate is not None:
            as_choice(self.calibrate, "calibrate", METHODS)
        self._check_fit_options()
        as_scoring(settings.scoring)
        check_display(self.verbose, callback)
        deadline = Deadline.of(self.time_limit, armed=False)
        X, y = self._table(X, y, reset=True, accept_sparse="csr")
        check_targets(y)
        weight = without_unit(as_sample_weights(sample_weight, X.shape[0]))
        require_some(weight)
        self.classes_ = np.unique(np.asarray(y)[weight > 0])
        if len(self.classes_) < 2:
            raise ValueError(
                "Classifier can't train when only one class is present: y must hold two classes, "
                f"got {self.classes_.tolist()}"
            )
        # A sample of weight 0 may have a class that no other sample has.
        labels = np.searchsorted(self.classes_[1:], y, side="right").astype(np.int64)
        weight = weight * as_class_weights(self.class_weight, self.classes_, labels, weight)
        examples = Examples(*distinct_rows(X, labels, without_unit(weight)))
        coding = label_code(self.taxonomy, self.classes_, augmented=augmented)
        self.code_, self.cost_ = coding.code, coding.cost
        self._augmented = augmented
        n_segments = 1 if augmented else self.code_.shape[1]
        self._grouped = self._is_grouped(shared=shared) and n_segments > 1
        self._width = columns_a_round(settings.columns_per_round, n_segments * len(examples))
        if slack == "auto":
            few = self.code_.shape[1] * len(examples) < MANY_SCORES
            slack = "example" if few else "one"
        _, _, outside = self._learn(
            examples,
            [self._evaluated(*part) for part in as_eval_set(eval_set)],
            deadline,
            callback,
            hold_out=self.calibrate is not None,
            slack=slack,
            columns="shared" if shared and n_segments > 1 else "class",
            penalty="group" if self._grouped else "l1",
            columns_per_round=self._width,
        )
        if self.calibrate is not None:
            self._calibration = self._calibrated(outside)
        return self

    def _risk(self, examples: Examples) -> ClassRisk:
        unit = self._augmented or np.array_equal(self.code_, np.eye(len(self.cost_)))
        kind = LogisticClassRisk if self._surrogate == "logistic" else ClassRisk
        return kind(
            examples.y,
            self.cost_,
            None if unit else self.code_,
            examples.weight,
            one_segment=self._augmented,
        )

    def _is_grouped(self, *, shared: bool) -> bool:
        """Return whether the penalty is the group norm; check that the parameters allow it."""
        penalty = self._settings.penalty
        steps = isinstance(self.estimator, str) and self.estimator == "step"
        if penalty == "l1" or not (steps or penalty == "group"):
            if steps and self.code_.shape[1] > 1 and not self._augmented:
                raise ValueError(
                    "penalty must be 'auto' or 'group' for estimator='step' and more than one "
                    "score, got 'l1'"
                )
            return False
        if self.code_.shape[1] == 1 or self._augmented:
            return True  # with one weight per learner, its norm is its absolute value
        if not shared:
            raise ValueError("columns must be 'shared' for penalty='group', got 'class'")
        if self.surrogate == "hinge":
            raise ValueError(
                "surrogate must be 'auto' or 'logistic' for penalty='group', which no linear "
                "program has, got 'hinge'"
            )
        return True

    def _surrogates(self) -> tuple[str, ...]:
        if self.surrogate != "auto":
            return (self.surrogate,)
        if self._grouped:
            return ("logistic",)
        return ("logistic", "hinge") if isinstance(self.C, str) else ("hinge",)

    def _search(self, examples: Examples) -> WeakLearnerSearch:
        options = self._stump_options(one_score=self.code_.shape[1] == 1, augmented=self._augmented)
        estimator = self.estimator
        if isinstance(estimator, str) and (estimator == "step" or self._grouped_stumps(options)):
            levels = "balanced" if estimator == "step" else "sign"
            copies = len(self.classes_) if self._augmented else 1
            weight = np.tile(examples.weight, copies)
            estimator, options = "step", {"levels": levels, "sample_weight": weight}
        return make_search(
            estimator,
            self._design(examples.X),
            n_columns=self._width,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            words=SHARED_SEARCHES,
            **options,
        )

    def _grouped_stumps(self, options: dict[str, Any]) -> bool:
        if not (self._grouped and self.estimator == "stump"):
            return False
        categorical = options.get("categorical_features")
        if categorical is not None and np.any(categorical):
            raise ValueError(
                "categorical_features must be None for penalty='group', under which no sum of its "
                f"own says which subset is best, got {self._settings.categorical_features!r}"
            )
        return True
