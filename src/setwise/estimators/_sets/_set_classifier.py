"""A linear classifier that learns with the loss it is judged by."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from setwise._foundation._arguments import FloatArray, as_array, as_flag
from setwise.estimators._checked import check_size, checked
from setwise.estimators._progress import check_display, progress_callback
from setwise.estimators._sets._judgment import is_certified, mean_share, warn_of_gap
from setwise.estimators._sets._label_encoding import encode, learn_encoding, weigh_classes
from setwise.estimators._sets._set_layout import Arrangement, Sets, arrange
from setwise.estimators._sets._set_risk import LinearRisk, linear_scores
from setwise.estimators._threads import threads
from setwise.learning import Fit, Progress, Serial, Threads
from setwise.learning._dual_blocks._learn_linear import learn_linear
from setwise.losses import Loss, get
from setwise.surrogates import Surrogate
from setwise.surrogates import get as get_surrogate


class SetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Linear predictors of many labels at once, trained with a convex surrogate of a set loss.

    .. math:: \min_W\ \tfrac12 |W|^2 + C \sum_{\text{sets } i} S(y_i, g_i), \qquad g = X W^T

    where S is the surrogate of the loss. Three kinds of sets:

    - Y of shape (n, p): each row is a set of p labels, with one weight vector a label;
    - y of shape (n,) with ``groups=``: each group is a set, weights shared (bags, tracks, images);
    - y of shape (n,) alone: the whole sample is one set.

    A Lovász hinge of rows or groups is solved by dual blocks where the samples are few beside the
    features, all else by one-slack cutting planes. ``gap_`` says how far the objective P can be
    from its minimum, as a share of what there is to gain over W = 0. A fit that ends above ``tol``
    warns (``ConvergenceWarning``), and so does one that predicts no positive on its own sample
    (``UserWarning``): the minimum of the surrogate lies there then, however well it was found.

    Parameters
    ----------
    loss : Loss or str, default="jaccard"
        A loss, or the name of one (``sw.losses.names()``).
    surrogate : {"lovasz", "margin", "slack", "decomposed", "hinge"} or Surrogate, default="lovasz"
        The Lovász hinge needs a submodular loss; "decomposed" (B_D) takes any; "hinge" trains with
        the sum of hinge losses whatever ``loss``, which then only scores. A surrogate has its own
        loss: leave ``loss`` as it is, or give the same one.
    C : float, default=1.0
        Weight of the sum over the sets against 1/2 |W|^2.
    tol : float, default=1e-3
        Relative gap at which the fit stops: gap / min(P(0) - bound, P), which no unit changes.
    max_iter : int, default=10000
        The most rounds, of blocks and of planes.
    fit_intercept : bool, default=True
        As a constant feature, penalised as in liblinear.
    sets : {"auto", "rows", "groups", "sample"}, default="auto"
        What is judged together. "auto": rows for a matrix Y, groups if they are given, else the
        whole sample. With "groups" a call without ``groups=`` is an error; set it in a grid
        search, which drops groups in silence unless they are routed.
    class_weight : dict or "balanced", default=None
        Weights of the classes of a one-dimensional y, times ``sample_weight``.
    n_jobs : int, default=None
        Threads for the oracle; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.
    callback : callable, default=None
        Called with a ``Progress`` after each round; the fit stops when it returns something true.

    Attributes
    ----------
    coef_ : array of shape (p, d), or (1, d)
    intercept_ : array of shape (p,), or (1,)
    classes_ : array of shape (2,)
        The labels of a one-dimensional y; for rows, the encoding, [0, 1] or [-1, 1].
    gap_ : float
        The relative gap that was reached, in [0, 1]; 0 where it is within rounding.
    certified_ : bool
        Whether the surrogate is known to be convex and was computed exactly, so that ``gap_`` is a
        certificate.
    learner_ : str
        Which learner ran, "dual_blocks" or "one_slack", or both, in this order.
    n_iter_ : int
        Rounds.
    interrupted_ : bool
        Whether Ctrl-C or the callback ended the fit, with the best weights so far.
    history_ : History
        Primal, dual and seconds of each round.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> import setwise as sw
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> model = sw.SetClassifier(loss="jaccard", C=10.0).fit(X, y)
    >>> model.gap_ <= 1e-3, model.coef_.shape
    (True, (1, 20))
    """

    def __init__(
        self,
        loss: Loss | str = "jaccard",
        surrogate: str | Surrogate = "lovasz",
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        sets: Sets = "auto",
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self.loss = loss
        self.surrogate = surrogate
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.sets = sets
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : array of shape (n, p) or (n,)
        groups : array of shape (n,), optional
            Which set each sample belongs to.
        sample_weight : array of shape (n,) or number, optional
            2 equals a repeated sample, 0 a removed one.

        Returns
        -------
        self
        """
        surrogate, n_jobs = self._surrogate(), threads(self.n_jobs)
        as_flag(self.fit_intercept, "fit_intercept")
        check_display(self.verbose, self.callback)
        if issparse(y):
            raise TypeError(f"y must be dense, got {type(y).__name__}")
        X, y = checked(self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True)
        check_size(X, "X")
        labels = np.asarray(y)
        self._rows = labels.ndim == 2
        self.classes_, positive = learn_encoding(labels)
        weight = weigh_classes(self.class_weight, self.classes_, labels, sample_weight)
        # A modular loss is a sum over elements: each is a set of its own, of any weight.
        sets = arrange(
            positive,
            self.sets,
            groups,
            weight,
            separate=surrogate._is_separable,
            fractional=surrogate._takes_multiplicity,
        )
        if sets.multiplicity is not None:
            surrogate = surrogate._with_multiplicity(sets.multiplicity)
        self.certified_ = is_certified(surrogate, sets)
        self._store(self._solve(X, sets, surrogate, n_jobs))
        # A weight of 0 is a removed sample, here as well.
        self._warn_of_no_positive(X if weight is None else X[np.unique(sets.order)], sets.positive)
        return self

    def _surrogate(self) -> Surrogate:
        return get_surrogate(self.surrogate, self._given_loss)

    @property
    def _given_loss(self) -> Loss | str | None:
        """The loss, unless a surrogate brings its own and the loss was left as it is."""
        brings = isinstance(self.surrogate, Surrogate)
        default = isinstance(self.loss, str) and self.loss == "jaccard"
        return None if brings and default else self.loss

    def _scored_loss(self) -> Loss:
        """What ``score`` tells: the loss, or that of a surrogate with one of its own."""
        if isinstance(self.surrogate, Surrogate):
            return self._surrogate().loss
        return get(self.loss)

    def _solve(self, X: Any, sets: Arrangement, surrogate: Surrogate, n_jobs: int) -> Fit:
        executor = Serial() if n_jobs == 1 else Threads(n_jobs)
        try:
            risk = LinearRisk(X, sets, surrogate, bool(self.fit_intercept), executor)
            # Threads are over shards: a product that split itself further would fight them for the
            # cores, and round differently with each number of them.
            with (
                threadpool_limits(1, user_api="blas"),
                progress_callback(self.verbose, self.tol, self.callback) as callback,
            ):
                return learn_linear(
                    risk.linear_sets(),
                    self.C,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    callback=callback,
                )
        finally:
            executor.close()

    def _store(self, fit: Fit) -> None:
        self._found = fit.converged
        warn_of_gap(fit, self.tol, self.max_iter)
        weights = fit.w.reshape(-1, self.n_features_in_ + bool(self.fit_intercept))
        self.coef_ = weights[:, : self.n_features_in_].copy()
        self.intercept_ = weights[:, -1].copy() if self.fit_intercept else np.zeros(len(weights))
        self.gap_ = fit.relative_gap
        self.learner_ = fit.learner
        self.n_iter_ = fit.n_iter
        self.interrupted_ = fit.interrupted
        self.history_ = fit.history

    def _warn_of_no_positive(self, X: Any, positive: NDArray[np.bool_]) -> None:
        """Where the minimum was found and predicts nothing, that is the surrogate's doing."""
        weights = np.column_stack([self.coef_, self.intercept_])
        if not (self._found and positive.any()) or (linear_scores(X, weights, True) > 0).any():
            return
        zero = "all weights are zero" if not weights.any() else "every score is negative or zero"
        balance = "" if self._rows else "class_weight='balanced', "
        warnings.warn(
            f"SetClassifier predicts no positive on the sample it was fitted to, {zero}: the "
            f"minimum of the surrogate {self.surrogate!r} lies there (relative gap "
            f"{self.gap_:.1e}); try another surrogate, a larger C, {balance}or a threshold below 0 "
            "on decision_function",
            UserWarning,
            stacklevel=3,
        )

    def decision_function(self, X: Any) -> FloatArray:
        """Scores: positive for the second class. Shape (n, p) for rows, else (n,)."""
        check_is_fitted(self)
        X = checked(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        weights = np.column_stack([self.coef_, self.intercept_])
        scores = linear_scores(X, weights, intercept=True)
        return scores if self._rows else scores[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """The labels, in the encoding that ``fit`` was given. Shape (n, p) for rows, else (n,)."""
        scores = self.decision_function(X)
        labels: NDArray[Any] = self.classes_[(scores > 0).astype(np.int64)]
        return labels

    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """1 - the mean over the sets of (loss / loss of everything wrong)."""
        predicted = self.predict(X) == self.classes_[1]
        labels = as_array(y, "y")
        if labels.shape != predicted.shape:
            raise ValueError(f"y must have shape {predicted.shape}, got {labels.shape}")
        loss = self._scored_loss()
        sets = arrange(
            encode(labels, self.classes_),
            self.sets,
            groups,
            sample_weight,
            # The share of mistakes in the one set of a sample is their mean, whatever they weigh.
            separate=loss._is_count and groups is None,
            fractional=loss._takes_multiplicity,
        )
        if sets.multiplicity is not None:
            loss = loss._with_multiplicity(sets.multiplicity)
        return 1.0 - mean_share(loss, sets, predicted)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
