"""Cross-validation: samples that can be split, a grid of C, a scorer, scores out of fold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GroupKFold, check_cv

from setwise._foundation._arguments import (
    SQUARABLE,
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_number,
    as_numbers,
    as_sample_weights,
    did_you_mean,
)
from setwise.losses import Loss
from setwise.losses._scoring._layout import Sets
from setwise.losses._scoring._score import score_of_sets
from setwise.losses._scoring._scorer import Scorer

Scoring = Callable[..., float]

# The number of candidates for a threshold: quantiles of the scores on other data, so that half a
# per cent of the predictions change from one to the next. A fixed sequence of tests pays nothing
# for more of them. It is not tuned.
CANDIDATES = 200


@dataclass(frozen=True, eq=False)
class LabeledSample:
    """Samples with their labels, and optionally a group and a weight each."""

    X: Any
    labels: Any
    positive: NDArray[np.bool_]
    groups: NDArray[Any] | None
    weight: FloatArray | None

    @classmethod
    def of(
        cls,
        X: Any,
        labels: Any,
        positive: NDArray[np.bool_],
        groups: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> LabeledSample:
        """Make a sample from groups and weights as users give them."""
        n = X.shape[0]
        names = None if groups is None else as_array(groups, "groups")
        if names is not None and names.shape != (n,):
            raise ValueError(f"groups must have shape ({n},), got {names.shape}")
        weight = None if sample_weight is None else as_sample_weights(sample_weight, n)
        return cls(X, labels, positive, names, weight)

    def take(self, rows: IntArray) -> LabeledSample:
        """Return the samples at the given indices."""
        groups = None if self.groups is None else self.groups[rows]
        weight = None if self.weight is None else self.weight[rows]
        return LabeledSample(self.X[rows], self.labels[rows], self.positive[rows], groups, weight)


def metadata(
    scoring: Scoring, groups: ArrayLike | None, weight: ArrayLike | None
) -> dict[str, Any]:
    """Return keyword arguments of a scorer: groups if it takes sets, weights if there are any."""
    given = {"groups": groups} if isinstance(scoring, Scorer) else {}
    return given if weight is None else {**given, "sample_weight": weight}


def as_scoring(scoring: object) -> Scoring | None:
    """Return the scorer for a name or a scorer; None means the estimator's own score."""
    if scoring is None:
        return None
    if isinstance(scoring, type) or not (isinstance(scoring, str) or callable(scoring)):
        raise TypeError(f"scoring must be a name, a scorer or None, got {type(scoring).__name__}")
    try:
        scorer: Scoring = get_scorer(scoring)
    except ValueError as error:
        near = did_you_mean(scoring, get_scorer_names())
        raise ValueError(f"scoring must be the name of a scorer, got {scoring!r}{near}") from error
    return scorer


def as_grid(Cs: object) -> FloatArray:
    """Return the values of C; a number gives the size of a grid from 1e-4 to 1e4."""
    if isinstance(Cs, int | np.integer) and not isinstance(Cs, bool):
        return np.logspace(-4.0, 4.0, as_count(Cs, "Cs", least=1, most=10_000))
    grid = as_numbers(Cs, "Cs")  # type: ignore[arg-type]
    if not grid.size or grid.min() <= 0:
        raise ValueError(f"Cs must be positive numbers, at least one, got {grid.tolist()}")
    return np.array([as_number(C, "Cs", positive=True, largest=SQUARABLE) for C in grid.tolist()])


def split_into_folds(cv: Any, sample: LabeledSample) -> list[tuple[IntArray, IntArray]]:
    """Split a sample. If ``cv`` is a number, groups stay whole, as a part is another set."""
    if isinstance(cv, np.integer):
        cv = int(cv)
    whole_groups = sample.groups is not None and (cv is None or isinstance(cv, int))
    y = sample.positive if issparse(sample.labels) else sample.labels
    try:
        splitter = (
            GroupKFold(5 if cv is None else cv)
            if whole_groups
            else check_cv(5 if cv is None else cv, y, classifier=True)
        )
        folds: Iterable[tuple[IntArray, IntArray]] = splitter.split(sample.X, y, sample.groups)
        found = list(folds)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{'cv or groups' if whole_groups else 'cv'}: {error}") from error
    if not found:
        raise ValueError("cv must give at least one split, got none")
    for split in found:
        for rows in split:
            array = np.asarray(rows)
            if array.ndim != 1 or array.dtype.kind not in "iub":
                raise ValueError(
                    f"cv must give pairs of arrays of row numbers, got dtype {array.dtype} of "
                    f"shape {array.shape}"
                )
    return found


def held_out_scores(
    model: Any, sample: LabeledSample, cv: Any
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return out-of-fold scores for the positive class, and which samples have one."""
    found = np.zeros(sample.positive.shape)
    seen = np.zeros(len(found), np.bool_)
    plain = clone(model).set_params(calibrate=None, warm_start=False, verbose=False)
    for train, test in split_into_folds(cv, sample):
        part = sample.take(train)
        with warnings.catch_warnings():  # only the last fit warns
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message=".*predicts no positive")
            fitted = clone(plain).fit(
                part.X, part.labels, groups=part.groups, sample_weight=part.weight
            )
        found[test] = fitted.decision_function(sample.X[test])
        seen[test] = True
    return found, seen


def best_offset(
    scores: FloatArray, sample: LabeledSample, seen: NDArray[np.bool_], loss: Loss, sets: Sets
) -> float:
    """Return the threshold of least loss on scores out of fold; 0 if none is better."""
    scored = sample.take(np.flatnonzero(seen))
    held = scores[seen]
    levels = np.unique(np.quantile(held, np.linspace(0.0, 1.0, CANDIDATES + 1)))
    cuts = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2])

    def merit(cut: float) -> float:
        return score_of_sets(loss, scored.positive, held > cut, sets, scored.groups, scored.weight)

    return float(cuts[int(np.argmax([merit(cut) for cut in cuts]))])
