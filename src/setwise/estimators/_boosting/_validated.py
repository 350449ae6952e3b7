"""Boosted estimators that use held-out rows for early stopping and for the choice of C."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, as_choice, as_count, as_flag
from setwise._foundation._clock import Deadline
from setwise.estimators._boosting._boosted import Boosted
from setwise.estimators._boosting._early_stopping import Evaluation, Evaluator, ScoreWatch
from setwise.estimators._boosting._held_out import (
    MANY_ROWS,
    Examples,
    as_fraction,
    enough_of,
    folds,
    split_off,
)
from setwise.estimators._boosting._path_of_c import (
    PATH_TIME,
    PATH_TOLERANCE,
    USUAL,
    PathOfC,
    least_c,
)
from setwise.learning import BoostOptions
from setwise.learning._boosting._boost_fit import BoostFit, BoostProgress
from setwise.learning._boosting._options import read_options
from setwise.learning._boosting._problem import Risk, WeakLearnerSearch


class HeldOut(NamedTuple):
    """Held-out rows and their scores, (n_segments, n)."""

    examples: Examples
    scores: FloatArray


class Validated(Boosted):
    """A boosted estimator with ``early_stopping``, ``eval_set`` and C="auto".

    A subclass defines the risk, the search and the merit of scores; ``_learn`` does the rest.
    """

    C: float | str  # type: ignore[assignment]
    early_stopping: bool | str
    options: BoostOptions | None
    random_state: object
    _surrogate: str

    def _risk(self, examples: Examples) -> Risk:
        raise NotImplementedError

    def _search(self, examples: Examples) -> WeakLearnerSearch:
        raise NotImplementedError

    def _merit(self, examples: Examples) -> Callable[[FloatArray], float]:
        raise NotImplementedError

    def _design(self, X: Any) -> Any:
        """Return the features of rows in the form that weak learners take."""
        return X

    def _surrogates(self) -> tuple[str, ...]:
        """Return the surrogates among which held-out rows choose; there may be only one."""
        return ("hinge",)

    @property
    def _settings(self) -> BoostOptions:
        return read_options(self.options, type(self).__name__)

    def _check_fit_options(self) -> None:
        """Raise an error if a parameter is invalid."""
        if isinstance(self.C, str):
            as_choice(self.C, "C", ("auto",))
        if isinstance(self.early_stopping, str):
            as_choice(self.early_stopping, "early_stopping", ("auto",))
        else:
            as_flag(self.early_stopping, "early_stopping")
        settings = self._settings
        as_fraction(settings.validation_fraction)
        as_count(settings.n_iter_no_change, "n_iter_no_change", least=1)
        if settings.n_folds is not None:
            as_count(settings.n_folds, "n_folds", least=2)

    def _learn(
        self,
        examples: Examples,
        eval_set: Sequence[Examples],
        deadline: Deadline,
        callback: Callable[[BoostProgress], object] | None,
        *,
        hold_out: bool = False,
        **options: Any,
    ) -> tuple[Examples, BoostFit, list[HeldOut]]:
        """Choose C, fit, and store the result.

        Return the fitted rows, the fit, and scores of held-out rows if requested.
        """
        settings = self._settings
        watched = {f"valid_{k}": part for k, part in enumerate(eval_set)}
        stopping = self._stops_early(len(examples), bool(eval_set))
        patience = int(settings.n_iter_no_change) if stopping else None
        if not stopping:
            masks = folds(examples, settings.n_folds, self.random_state)
            parts = [examples.parted(mask) for mask in masks]
        elif eval_set:
            parts = [(examples, eval_set[0])]
        else:
            fraction = as_fraction(settings.validation_fraction)
            examples, held = split_off(examples, fraction, self.random_state)
            parts = [(examples, held)]
            watched = {"validation": held}
        search = self._search(examples)
        outside: list[HeldOut] = []
        self._surrogate = self._surrogates()[0]
        if isinstance(self.C, str):
            few = parts
            # Without early stopping, calibration needs scores of all rows, out of fold.
            if stopping or not hold_out:
                enough = partial(enough_of, random_state=self.random_state)
                few = [(enough(train), enough(held)) for train, held in parts]
            outside = self._choose(examples, search, few, patience, options)
        else:
            self.C_ = self.C
            if hold_out and not stopping:
                outside = self._try(parts, self.C_, patience, Deadline(), options)[1]
        risk = self._risk(examples)
        evaluators = {name: self._evaluator(part) for name, part in watched.items()}
        watch = ScoreWatch(evaluators, patience)
        fit = self._boost(risk, search, deadline, callback, C=self.C_, watch=watch, **options)
        stopped = watch.stopped
        fit = replace(fit, interrupted=fit.interrupted and not stopped)
        self.evals_result_ = watch.results
        self.best_iteration_ = fit.n_iter
        if stopping and watch.best is not None:
            self.best_iteration_ = watch.best.n_iter
            stopped = stopped or self.best_iteration_ < fit.n_iter
            fit = watch.at_best(fit, risk.offsets)
            evaluator = next(iter(evaluators.values()))
            outside = [HeldOut(parts[0][1], evaluator.scores(fit.columns, fit.w))]
        shared = options.get("columns") == "shared"
        self._store(fit, len(risk.offsets) - 1, stopped=stopped, shared=shared)
        return examples, fit, outside

    def _stops_early(self, n_rows: int, evaluated: bool) -> bool:
        if isinstance(self.early_stopping, str):
            return evaluated or n_rows > MANY_ROWS
        return bool(self.early_stopping)

    def _evaluator(self, examples: Examples) -> Evaluator:
        return Evaluator(self._design(examples.X), self._risk(examples), self._merit(examples))

    def _choose(
        self,
        examples: Examples,
        search: WeakLearnerSearch,
        parts: list[tuple[Examples, Examples]],
        patience: int | None,
        options: dict[str, Any],
    ) -> list[HeldOut]:
        """Choose the best C and surrogate, and return the scores of held-out rows."""
        parts = [part for part in parts if self._can_be_scored(*part)]
        self.C_scores_: dict[float, float] = {}
        limit = None if self.time_limit is None else PATH_TIME * float(self.time_limit)
        deadline = Deadline(limit, armed=False)
        best: tuple[str, PathOfC[list[HeldOut]]] | None = None
        for surrogate in self._surrogates():
            self._surrogate = surrogate
            grouped = options.get("penalty") == "group"
            least = least_c(self._risk(examples), search, grouped=grouped)
            if not parts:
                self.C_ = USUAL * least
                return []
            if best is not None and deadline.over():
                break
            path = PathOfC(
                least,
                lambda C: self._try(parts, C, patience, deadline, options),
                lambda: not deadline.over(),
                None if best is None else best[1],
            )
            # The losses of surrogates cannot be compared, so the first surrogate wins a tie.
            if best is None or path.best > best[1].best:
                best = surrogate, path
        assert best is not None
        self._surrogate, path = best
        self.C_, self.C_scores_ = path.C, path.scores
        return path.left

    def _can_be_scored(self, train: Examples, held: Examples) -> bool:
        """Return whether training rows have two classes and held-out rows can be scored."""
        if len(np.unique(train.y)) < 2 or not len(held):
            return False
        try:
            self._risk(train), self._risk(held)
        except ValueError:  # the held-out rows have no pairs to compare
            return False
        return True

    def _try(
        self,
        parts: list[tuple[Examples, Examples]],
        C: float,
        patience: int | None,
        deadline: Deadline,
        options: dict[str, Any],
    ) -> tuple[Evaluation, list[HeldOut]]:
        """Fit with C to each part; return the mean evaluation and the scores of held-out rows."""
        evaluations: list[Evaluation] = []
        outside: list[HeldOut] = []
        for train, held in parts:
            if evaluations and deadline.over():
                break
            evaluator, risk = self._evaluator(held), self._risk(train)
            watch = ScoreWatch({"": evaluator} if patience else {}, patience)
            search = self._search(train)
            with warnings.catch_warnings():  # only the last fit warns
                warnings.simplefilter("ignore")
                fit = self._boost(
                    risk,
                    search,
                    deadline,
                    C=C,
                    watch=watch,
                    quiet=True,
                    tol=max(self.tol, PATH_TOLERANCE),
                    **options,
                )
            if fit.interrupted and not watch.stopped:
                raise KeyboardInterrupt
            fit = watch.at_best(fit, risk.offsets)
            evaluations.append(evaluator(fit.columns, fit.w))
            outside.append(HeldOut(held, evaluator.scores(fit.columns, fit.w)))
        score, loss = np.mean(evaluations, axis=0)
        return Evaluation(float(score), float(loss)), outside
