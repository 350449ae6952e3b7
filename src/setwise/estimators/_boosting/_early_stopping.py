"""Early stopping: scores of held-out rows after every round, and the rule that ends the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._progress import ForwardingCallback, stops
from setwise.learning import Column
from setwise.learning._boosting._boost_fit import BoostFit, BoostProgress
from setwise.learning._boosting._problem import Risk
from setwise.learning._weak_learners._rows import respond


class Evaluation(NamedTuple):
    """The score of held-out rows (higher is better) and their loss (lower is better)."""

    score: float
    loss: float


class Evaluator:
    """Held-out rows, on which each weak learner is evaluated once.

    Parameters
    ----------
    X : what the weak learners predict on
    risk : Risk
        The risk of these rows.
    merit : scores (n_segments, n) -> float
    """

    def __init__(self, X: Any, risk: Risk, merit: Callable[[FloatArray], float]) -> None:
        self._X, self._risk, self._merit = X, risk, merit
        self._responses: list[FloatArray] = []
        # Keyed by id, which is unique because the learners stay alive.
        self._places: dict[int, int] = {}
        self._learners: list[object] = []

    def scores(self, columns: Sequence[Column], w: FloatArray) -> FloatArray:
        """Return the scores of the rows, (n_segments, n)."""
        n_segments = len(self._risk.offsets) - 1
        own: dict[int, FloatArray] = {}  # the weights of a learner, by segment
        for place in np.flatnonzero(w).tolist():
            column = columns[place]
            parts = own.setdefault(self._place(column.learner), np.zeros(n_segments))
            parts[column.segment] += w[place]
        if not own:
            return np.zeros((n_segments, self._X.shape[0]))
        responses = np.stack([self._responses[place] for place in own])
        scores: FloatArray = np.stack(list(own.values()), axis=1) @ responses
        return scores

    def __call__(self, columns: Sequence[Column], w: FloatArray) -> Evaluation:
        scores = self.scores(columns, w)
        return Evaluation(float(self._merit(scores)), float(self._risk(scores.ravel())[0]))

    def _place(self, learner: object) -> int:
        """Return the index of a learner's stored response."""
        if id(learner) not in self._places:
            self._places[id(learner)] = len(self._responses)
            self._learners.append(learner)
            self._responses.append(respond(learner, self._X))
        return self._places[id(learner)]


class ScoreWatch:
    """The scores of the evaluators per round, and the weights with the best score of the first.

    Parameters
    ----------
    evaluators : mapping of names
    patience : int, optional
        The fit ends after ``patience`` rounds without a better score or a smaller loss of the first
        evaluator. Rounds before the first weight do not count. None disables this.
    """

    def __init__(self, evaluators: Mapping[str, Evaluator], patience: int | None = None) -> None:
        self._evaluators, self._patience = evaluators, patience
        self.evaluations: dict[str, list[Evaluation]] = {name: [] for name in evaluators}
        self.stopped = False
        self.best: BoostProgress | None = None
        self.evaluation = Evaluation(-np.inf, np.inf)
        self._least, self._idle = np.inf, 0
        self._sizes: set[int] = set()

    def around(
        self, callback: Callable[[BoostProgress], object] | None
    ) -> ForwardingCallback[BoostProgress]:
        """Wrap the user's callback so that each round is evaluated before it is called."""

        def look(progress: BoostProgress) -> bool:
            now = {
                name: evaluator(progress.columns, progress.w)
                for name, evaluator in self._evaluators.items()
            }
            for name, evaluation in now.items():
                self.evaluations[name].append(evaluation)
            if now:
                self._weigh(progress, next(iter(now.values())))
            scores = {name: evaluation.score for name, evaluation in now.items()}
            asked = stops(callback, replace(progress, scores=scores))
            return asked or self.stopped

        return ForwardingCallback(look)

    def _weigh(self, progress: BoostProgress, evaluation: Evaluation) -> None:
        self._sizes.add(len(progress.w))
        better = (evaluation.score, -evaluation.loss) > (
            self.evaluation.score,
            -self.evaluation.loss,
        )
        if better:
            self.best, self.evaluation = progress, evaluation
        if better or evaluation.loss < self._least or not progress.w.any():
            self._idle = 0
        else:
            self._idle += 1
        self._least = min(self._least, evaluation.loss)
        self.stopped = self._patience is not None and self._idle >= self._patience

    def at_best(self, fit: BoostFit, offsets: IntArray) -> BoostFit:
        """Return the fit as of its best round, with the last bound, which holds for all rounds."""
        if self.best is None:
            return fit
        w = self.best.w
        used = fit.columns[: len(w)]
        scores = np.zeros_like(fit.scores)
        for column, part in zip(used, w, strict=True):
            scores[offsets[column.segment] : offsets[column.segment + 1]] += part * column.response
        earlier = len([size for size in self._sizes if 0 < size < len(w)])
        rows = [
            fit.stages[:earlier, : len(w)].toarray(),
            w[None, :] if len(w) else np.empty((0, 0)),
        ]
        return replace(
            fit,
            columns=used,
            w=w,
            scores=scores,
            value=self.best.value,
            stages=csr_array(np.vstack(rows)),
        )

    @property
    def results(self) -> dict[str, dict[str, list[float]]]:
        """The score and the loss of each set, one number per round."""
        return {
            name: {"score": [v.score for v in evaluations], "loss": [v.loss for v in evaluations]}
            for name, evaluations in self.evaluations.items()
        }
