"""``SetClassifier`` with C chosen by cross-validation."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from setwise._foundation._arguments import FloatArray, IntArray, as_flag, as_number
from setwise._foundation._clock import Deadline, TimeUp
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._search import completed
from setwise._foundation._threads import one_thread
from setwise._foundation._warnings import callers_level
from setwise.estimators._sets._certificates import warn_of_gap, warn_of_no_positive
from setwise.estimators._sets._folds import (
    LabeledSample,
    Scoring,
    as_grid,
    as_scoring,
    metadata,
    split_into_folds,
)
from setwise.estimators._sets._label_encoding import weigh_classes
from setwise.estimators._sets._linear_model import LinearModel
from setwise.estimators._sets._set_classifier import SetClassifier
from setwise.estimators._sets._set_problem import SetProblem, pose
from setwise.estimators._sets._surrogate_choice import first_surrogate
from setwise.estimators._threads import threads
from setwise.learning import Serial, Threads
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._executors import Executor
from setwise.losses import Loss
from setwise.losses._scoring._layout import Sets
from setwise.surrogates import Surrogate


class SetClassifierCV(LinearModel):
    r"""``SetClassifier`` with C chosen by cross-validation.

    The conventions are those of scikit-learn's ``LogisticRegressionCV``. Each fold is fitted for
    all values of C, from the smallest to the largest. The planes of one fit are valid for the next,
    so that a path costs little more than its hardest fit. Every fit has the same tolerance.

    Parameters
    ----------
    loss, surrogate, tol, max_iter, fit_intercept, sets, class_weight
        As in ``SetClassifier``.
    Cs : int or array, default=10
        The values of C, or their number: they then go from 1e-4 to 1e4 on a logarithmic scale.
    cv : int, splitter or iterable of (train, test), default=None
        None for five folds: of whole groups if groups are given, otherwise stratified for a
        one-dimensional y.
    scoring : str or callable, default=None
        A scorer; None for the loss and the sets of this estimator. ``sw.losses.scorer`` makes a
        scorer of any loss.
    refit : bool, default=True
        Whether to fit the whole sample with the best C. If False, the weights are the mean over the
        folds, each at its own best C, and ``C_`` is the mean of these values.
    time_limit : float, default=None
        The largest number of seconds that ``fit`` may take, None for no limit. Each fold and the
        last fit have an equal share. A fold ends with the values of C that it had time for, the
        smallest first (at least one round of the smallest). The values that all folds have are
        compared, and the last fit ends with the best weights so far. The fit warns
        (``ConvergenceWarning``). The result then depends on the speed and the load of the machine.
    n_jobs : int, default=None
        Threads, over folds; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Write a line on stderr for each fit of a fold: its C, score, rounds and gap.

    Attributes
    ----------
    C_ : float
        The best C.
    Cs_ : array of shape (n_Cs,)
        All values, in the given order.
    scores_ : array of shape (n_folds, n_Cs)
        The score of each fold for each C; nan if there was no time for it.
    coef_, intercept_, classes_, n_features_in_
        As in ``SetClassifier``.
    gap_ : float
        The largest relative gap of the fits behind ``coef_``.
    certified_ : bool
        Whether the gaps are certificates.
    n_iter_ : array of shape (n_folds, n_Cs)
        Rounds; 0 if there was no time.
    interrupted_ : bool
        Whether Ctrl-C ended the last fit, of the whole sample, with the best weights so far. In a
        fold Ctrl-C raises ``KeyboardInterrupt``, and no result is kept.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> import setwise as sw
    >>> X, Y = make_multilabel_classification(n_samples=60, n_classes=3, random_state=0)
    >>> model = sw.SetClassifierCV("jaccard", Cs=[0.001, 0.01, 0.1], cv=3).fit(X, Y)
    >>> model.scores_.shape, model.C_ in model.Cs_
    ((3, 3), True)
    """

    @hints_at_names
    def __init__(
        self,
        loss: Loss | str = "jaccard",
        surrogate: str | Surrogate = "auto",
        Cs: int | ArrayLike = 10,
        *,
        cv: Any = None,
        scoring: str | Scoring | None = None,
        refit: bool = True,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        sets: Sets = "auto",
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.surrogate = surrogate
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.sets = sets
        self.class_weight = class_weight
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
    ) -> Self:
        """Score every C by cross-validation, and fit with the best.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : array of shape (n, p) or (n,), or sparse matrix of shape (n, p)
        groups : array of shape (n,), optional
            The set of each sample, for the splitter, the fits and the scores.
        sample_weight : array of shape (n,) or number, optional
            The weights, for the fits and the scores.

        Returns
        -------
        self
        """
        first_surrogate(self.surrogate, self.loss)
        n_jobs, refit = threads(self.n_jobs), as_flag(self.refit, "refit")
        as_flag(self.fit_intercept, "fit_intercept")
        as_flag(self.verbose, "verbose")
        scoring = as_scoring(self.scoring)
        deadline = Deadline.of(self.time_limit, armed=False)
        self.Cs_ = as_grid(self.Cs)
        X, labels, positive = self._read(X, y)
        sample = LabeledSample.of(X, labels, positive, groups, sample_weight)
        folds = split_into_folds(self.cv, sample)
        share = None
        if deadline.seconds is not None:
            share = deadline.seconds / (-(-len(folds) // n_jobs) + refit)

        def along(fold: tuple[IntArray, IntArray]) -> dict[int, _PathStep]:
            return self._path(sample, *fold, scoring, share)

        executor = Serial() if n_jobs == 1 else Threads(n_jobs)
        try:
            with one_thread():
                paths = executor.map(along, folds)
                self.scores_ = np.full((len(folds), len(self.Cs_)), np.nan)
                self.n_iter_ = np.zeros(self.scores_.shape, np.int64)
                for i, path in enumerate(paths):
                    for k, step in path.items():
                        self.scores_[i, k], self.n_iter_[i, k] = step.score, step.n_iter
                self._warn_of_gaps([step for path in paths for step in path.values()])
                if refit:
                    self._refit(sample, paths, executor, deadline)
                else:
                    self._average(paths)
        finally:
            executor.close()
        return self

    def _path(
        self,
        sample: LabeledSample,
        train: IntArray,
        test: IntArray,
        scoring: Scoring | None,
        seconds: float | None,
    ) -> dict[int, _PathStep]:
        """Fit one fold for every C, the smallest first, and key the fits by the index of C."""
        deadline = Deadline(seconds, armed=False)
        fitted, held_out = sample.take(train), sample.take(test)
        problem = self._pose(fitted, Serial(), warn=False)
        model = self._without_weights()
        path: dict[int, _PathStep] = {}
        last: Fit | None = None
        for k in np.argsort(self.Cs_, kind="stable").tolist():
            learn = partial(problem.minimize, self.Cs_[k], self, init=last)
            try:
                fit = completed(deadline.run(partial(learn, time_limit=deadline.inherited)))
            except TimeUp:
                break
            if deadline.expired and last is not None:
                break
            last = fit
            model.C = self.Cs_[k]
            model._keep_weights(last.w)
            score = _score(model, held_out, scoring)
            # Only small parts are stored, because the planes are needed for the next fit only.
            path[k] = _PathStep(
                score, last.w, last.n_iter, last.relative_gap, last.converged, problem.certified
            )
            if self.verbose:
                sys.stderr.write(
                    f"C {self.Cs_[k]:.3g}: score {score:.4f}, {last.n_iter} rounds, relative gap "
                    f"{last.relative_gap:.1e}\n"
                )
            if deadline.expired:
                break
        return path

    def _without_weights(self) -> SetClassifier:
        """Return the model that is passed to a scorer, without weights."""
        model = SetClassifier(
            self.loss,
            self.surrogate,
            fit_intercept=self.fit_intercept,
            sets=self.sets,
        )
        model.classes_, model._rows = self.classes_, self._rows
        model.n_features_in_ = self.n_features_in_
        return model

    def _pose(self, sample: LabeledSample, executor: Executor, *, warn: bool) -> SetProblem:
        weight = weigh_classes(self.class_weight, self.classes_, sample.labels, sample.weight)
        return pose(self, sample.X, sample.positive, sample.groups, weight, executor, warn=warn)

    def _refit(
        self,
        sample: LabeledSample,
        paths: list[dict[int, _PathStep]],
        executor: Executor,
        deadline: Deadline,
    ) -> None:
        means = self.scores_.mean(axis=0)  # nan if there was no time for a fold
        best = int(np.nanargmax(means))
        self.C_ = float(self.Cs_[best])
        problem = self._pose(sample, executor, warn=True)
        start = None
        if not problem.begins_with_blocks:
            start = np.mean([path[best].w for path in paths], axis=0)
        learn = partial(problem.minimize, self.C_, self, init=start)
        fit = deadline.run(partial(learn, time_limit=deadline.inherited))
        warn_of_gap("SetClassifierCV", fit, self.tol, self.max_iter)
        self._keep_weights(fit.w)
        self.gap_, self.certified_ = fit.relative_gap, problem.certified
        self.interrupted_ = fit.interrupted
        if not (fit.converged and problem.sets.positive.any()):
            return
        counted = sample.weight is None and self.class_weight is None
        X = sample.X if counted else sample.X[np.unique(problem.sets.order)]
        if not (self._scores(X) > 0).any():
            warn_of_no_positive(
                "SetClassifierCV",
                problem.surrogate,
                self.gap_,
                zero=not fit.w.any(),
                rows=self._rows,
            )

    def _average(self, paths: list[dict[int, _PathStep]]) -> None:
        chosen = np.nanargmax(self.scores_, axis=1)
        steps = [path[k] for path, k in zip(paths, chosen.tolist(), strict=True)]
        self.C_ = float(self.Cs_[chosen].mean())
        self._keep_weights(np.mean([step.w for step in steps], axis=0))
        self.gap_ = max(step.gap for step in steps)
        self.certified_ = all(step.certified for step in steps)
        self.interrupted_ = False

    def _warn_of_gaps(self, steps: list[_PathStep]) -> None:
        left = self.scores_.size - len(steps)
        if left:
            warnings.warn(
                f"SetClassifierCV: {Deadline.of(self.time_limit).sentence}, {left} of "
                f"{self.scores_.size} fits of folds were left out: raise it, or give fewer Cs",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )
        open_gaps = [step.gap for step in steps if not step.converged]
        if open_gaps:
            warnings.warn(
                f"SetClassifierCV: {len(open_gaps)} of {len(steps)} fits stopped at relative gaps "
                f"up to {max(open_gaps):.1e}, above tol={self.tol:g}: raise max_iter or tol, or "
                "leave out the largest Cs",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )

    @hints_at_names
    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the score by ``scoring``, or without it the same score as ``SetClassifier``."""
        scoring = as_scoring(self.scoring)
        if scoring is None:
            return super().score(X, y, groups=groups, sample_weight=sample_weight)
        given = metadata(scoring, groups, sample_weight)
        return float(scoring(self, X, y, **given))


@dataclass(frozen=True, eq=False)
class _PathStep:
    """The part of a fit that is kept, for one fold and one C."""

    score: float
    w: FloatArray
    n_iter: int
    gap: float
    converged: bool
    certified: bool


def _score(model: SetClassifier, sample: LabeledSample, scoring: Scoring | None) -> float:
    if scoring is None:
        return model.score(
            sample.X, sample.labels, groups=sample.groups, sample_weight=sample.weight
        )
    given = metadata(scoring, sample.groups, sample.weight)
    return as_number(scoring(model, sample.X, sample.labels, **given), "what scoring returns")
