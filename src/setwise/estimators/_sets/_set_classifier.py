"""A linear classifier that is trained with a set loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from setwise._foundation._arguments import FloatArray, as_choice, as_flag
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import Progress, check_display, progress_callback
from setwise._foundation._threads import one_thread
from setwise.estimators._calibration import METHODS, Calibration, needs_calibrate, words_of
from setwise.estimators._sets._certificates import warn_of_gap, warn_of_no_positive
from setwise.estimators._sets._folds import LabeledSample, best_offset, held_out_scores
from setwise.estimators._sets._label_encoding import weigh_classes
from setwise.estimators._sets._linear_model import LinearModel
from setwise.estimators._sets._set_problem import SetProblem, pose
from setwise.estimators._sets._surrogate_choice import first_surrogate, own_loss
from setwise.estimators._threads import threads
from setwise.learning import Serial, Threads
from setwise.learning._cutting_planes._fit import Fit
from setwise.losses import Loss
from setwise.losses._scoring._layout import Sets
from setwise.surrogates import Surrogate


class SetClassifier(LinearModel):
    r"""A linear classifier of one or many labels, trained with a convex surrogate of a set loss.

    .. math:: \min_W\ \tfrac12 |W|^2 + C \sum_{\text{sets } i} S(y_i, g_i), \qquad g = X W^T

    where S is the surrogate of the loss. There are five kinds of sets:

    - Y of shape (n, p): each row is a set of p labels, with one weight vector per label. With
      ``sets="columns"`` the n samples of each label are a set, with ``sets="cells"`` all n p labels
      are one set.
    - y of shape (n,) with ``groups=``: each group is a set, with shared weights (bags, tracks,
      images).
    - y of shape (n,) without groups: the whole sample is one set.

    If there are few samples per feature, a Lovász hinge of rows or groups is solved by dual blocks,
    and any other convex surrogate of rows by keeping a few planes per row. All other problems are
    solved by one-slack cutting planes. ``gap_`` bounds the distance of the objective P from its
    minimum, relative to the possible gain over W = 0. A fit that ends above ``tol`` warns
    (``ConvergenceWarning``). A fit that predicts no positive on its own sample warns too
    (``UserWarning``): this is then a property of the surrogate and not of the optimisation.

    Parameters
    ----------
    loss : Loss or str, default="jaccard"
        A loss, or the name of one (``sw.losses.names()``).
    surrogate : str or Surrogate, default="auto"
        "auto": the Lovász hinge if the loss is submodular, otherwise B_D. "lovasz" needs a
        submodular loss; "decomposed" (B_D), "margin" and "slack" take any loss. "hinge" is the sum
        of hinge losses; ``loss`` then only affects scores. A surrogate object has its own loss:
        keep the default of ``loss``, or pass the same one.
    C : float, default=1.0
        Weight of the sum over the sets against 1/2 |W|^2. The sum grows with the sample. For a C
        with the same effect on 100 and on 100,000 sets, divide a constant by the number of sets.
    tol : float, default=1e-3
        Relative gap at which the fit stops: gap / min(P(0) - bound, P), which does not depend on
        units.
    max_iter : int, default=10000
        The largest number of rounds, of blocks and of planes.
    time_limit : float, default=None
        The largest number of seconds that ``fit`` may take, None for no limit. It then ends with
        the best weights so far, after at least one round, and warns (``ConvergenceWarning``);
        ``gap_`` is valid. The result then depends on the speed and the load of the machine.
    fit_intercept : bool, default=True
        Whether to add a constant feature, penalised as in liblinear.
    sets : {"auto", "rows", "columns", "cells", "groups", "sample"}, default="auto"
        Which elements form a set. "auto": rows for a matrix Y, groups if they are given, otherwise
        the whole sample. With "groups" a call without ``groups=`` is an error. Use it in a grid
        search, which silently drops groups unless metadata routing is enabled.
    calibrate : {None, "threshold", "sigmoid", "isotonic"} or a pair, default=None
        The calibration that is learned from scores out of fold. "threshold" subtracts the threshold
        of least loss from ``intercept_``, so that positive labels have positive scores. "sigmoid"
        and "isotonic" calibrate ``predict_proba``, whose result ``sw.decide`` takes. A pair such as
        ``("threshold", "sigmoid")`` does both.
    cv : int, splitter or iterable, default=None
        The folds of ``calibrate``; by default 5, which keep groups whole.
    class_weight : dict or "balanced", default=None
        Weights of the classes of a one-dimensional y, which multiply ``sample_weight``.
    warm_start : bool, default=False
        Whether to start from ``coef_`` and ``intercept_`` of the last fit, which must have the same
        shape. The result is never worse than the start, and has its own gap.
    n_jobs : int, default=None
        Threads for the oracle; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.

    Attributes
    ----------
    coef_ : array of shape (p, d), or (1, d)
    intercept_ : array of shape (p,), or (1,)
    classes_ : array of shape (2,)
        The sorted labels of a one-dimensional y, of which the second is the positive one; for a
        matrix the encoding, [0, 1] or [-1, 1].
    threshold_ : float
        The threshold that was subtracted from the scores; 0 if none was chosen.
    gap_ : float
        The final relative gap, in [0, 1]; 0 if it is within rounding.
    certified_ : bool
        Whether the surrogate is known to be convex and was computed exactly, so that ``gap_`` is a
        certificate.
    learner_ : str
        The learner that ran: "dual_blocks", "splitting", "kept_planes", "interior_point" or
        "one_slack", or several of them in this order.
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

    @hints_at_names
    def __init__(
        self,
        loss: Loss | str = "jaccard",
        surrogate: str | Surrogate = "auto",
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        sets: Sets = "auto",
        calibrate: str | Sequence[str] | None = None,
        cv: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.surrogate = surrogate
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.sets = sets
        self.calibrate = calibrate
        self.cv = cv
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @hints_at_names
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        callback: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : array of shape (n, p) or (n,), or sparse matrix of shape (n, p)
            A sparse matrix has zeros and ones, and is converted to one byte per label.
        groups : array of shape (n,), optional
            The set of each sample.
        sample_weight : array of shape (n,) or number, optional
            A weight of 2 is equivalent to a repeated sample, and 0 to a removed one.
        callback : callable, optional
            Called with a ``Progress`` after each round; a true return value stops the fit.

        Returns
        -------
        self
        """
        first_surrogate(self.surrogate, self.loss)
        n_jobs = threads(self.n_jobs)
        as_flag(self.fit_intercept, "fit_intercept")
        check_display(self.verbose, callback)
        deadline = Deadline.of(self.time_limit, armed=False)
        before = self._last_weights() if as_flag(self.warm_start, "warm_start") else None
        wanted = self._calibrations()
        X, labels, positive = self._read(X, y)
        weight = weigh_classes(self.class_weight, self.classes_, labels, sample_weight)
        executor = Serial() if n_jobs == 1 else Threads(n_jobs)
        try:
            problem = pose(self, X, positive, groups, weight, executor)
            fit = self._solve(problem, before, deadline, callback)
        finally:
            executor.close()
        self.certified_ = problem.certified
        self._keep(fit)
        self._settle(wanted, LabeledSample.of(X, labels, positive, groups, sample_weight))
        # A weight of 0 removes a sample here as well.
        self._warn_of_no_positive(
            X if weight is None else X[np.unique(problem.sets.order)], problem
        )
        return self

    def _last_weights(self) -> FloatArray | None:
        """Return the weights of the last fit, the intercept last."""
        if not hasattr(self, "coef_"):
            return None
        learnt = self.intercept_ + self.threshold_
        parts = [self.coef_, learnt] if self.fit_intercept else [self.coef_]
        return np.column_stack(parts)

    def _calibrations(self) -> tuple[str, ...]:
        """Return the calibrations that ``calibrate`` requests."""
        wanted = words_of(self.calibrate)
        for word in wanted:
            as_choice(word, "calibrate", ("threshold", *METHODS))
        if len(wanted) - ("threshold" in wanted) > 1:
            raise ValueError(
                f"calibrate must be one of 'threshold', {', '.join(map(repr, METHODS))}, or a pair "
                f"of 'threshold' and another one, got {self.calibrate!r}"
            )
        return wanted

    def _settle(self, wanted: tuple[str, ...], sample: LabeledSample) -> None:
        """Choose the threshold and the calibration of the scores."""
        self.threshold_ = 0.0
        self._calibration: Calibration | None = None
        if not wanted:
            return
        scores, seen = held_out_scores(self, sample, self.cv)
        for word in wanted:
            if word == "threshold":
                loss = own_loss(self.surrogate, self.loss)
                self.threshold_ = best_offset(scores, sample, seen, loss, self.sets)
                self.intercept_ = self.intercept_ - self.threshold_
            else:
                held = expit(scores[seen])
                self._calibration = Calibration.fit(word, held, sample.positive[seen])

    @needs_calibrate(*METHODS)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities, (n, p) of positive labels or (n, 2); needs ``calibrate``."""
        scores = self.decision_function(X) + self.threshold_
        assert self._calibration is not None
        p = self._calibration(expit(scores))
        if self._rows:
            return np.asarray(p)
        return np.stack([1 - p, p], axis=1)

    def _solve(
        self,
        problem: SetProblem,
        before: FloatArray | None,
        deadline: Deadline,
        callback: Callable[[Progress], object] | None,
    ) -> Fit:
        shape = problem.risk.rows, problem.risk.columns
        if before is not None and before.shape != shape:
            raise ValueError(
                "warm_start must be False when the last fit had other labels or features, got "
                f"True and weights of shape {before.shape} in the place of {shape}"
            )
        init = None if before is None else before.reshape(-1)
        # Shards are distributed over threads. Threads inside a product would compete for the same
        # cores, and rounding would depend on their number.
        with (
            one_thread(),
            progress_callback(self.verbose, self.tol, callback) as reporting,
        ):
            learn = partial(problem.minimize, self.C, self, init=init, callback=reporting)
            return deadline.run(partial(learn, time_limit=deadline.inherited))

    def _keep(self, fit: Fit) -> None:
        self._found = fit.converged
        warn_of_gap(type(self).__name__, fit, self.tol, self.max_iter)
        self._keep_weights(fit.w)
        self.gap_ = fit.relative_gap
        self.learner_ = fit.learner
        self.n_iter_ = fit.n_iter
        self.interrupted_ = fit.interrupted
        self.history_ = fit.history

    def _warn_of_no_positive(self, X: Any, problem: SetProblem) -> None:
        if not (self._found and problem.sets.positive.any()):
            return
        if (self._scores(X) > 0).any():
            return
        zero = not (self.coef_.any() or self.intercept_.any())
        warn_of_no_positive(
            "SetClassifier", problem.surrogate, self.gap_, zero=zero, rows=self._rows
        )
