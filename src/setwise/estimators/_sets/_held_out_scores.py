"""Scores of a linear model out of fold: for a threshold, and for probabilities."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from setwise._foundation._arguments import FloatArray
from setwise.estimators._sets._folds import Sample, split_into_folds
from setwise.losses import Loss
from setwise.losses._scoring._layout import Sets
from setwise.losses._scoring._score import score_of_sets

# Offsets to choose from: between the scores of as many quantiles.
_CANDIDATES = 200


def held_out_scores(model: Any, sample: Sample, cv: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Scores for the positive class by fits that did not see the sample, and which have one."""
    found = np.zeros(sample.positive.shape)
    seen = np.zeros(len(found), np.bool_)
    plain = clone(model).set_params(threshold=0.0, calibrate=None, warm_start=False, verbose=False)
    for train, test in split_into_folds(cv, sample):
        part = sample.take(train)
        with warnings.catch_warnings():  # the last fit says what there is to say
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message=".*predicts no positive")
            fitted = clone(plain).fit(
                part.X, part.labels, groups=part.groups, sample_weight=part.weight
            )
        scores = fitted.decision_function(sample.X[test])
        found[test] = fitted._encoding.sign * scores
        seen[test] = True
    return found, seen


def best_offset(
    scores: FloatArray, sample: Sample, seen: NDArray[np.bool_], loss: Loss, sets: Sets
) -> float:
    """The threshold of least loss on scores out of fold; 0 where nothing is better."""
    judged = sample.take(np.flatnonzero(seen))
    held = scores[seen]
    levels = np.unique(np.quantile(held, np.linspace(0.0, 1.0, _CANDIDATES + 1)))
    cuts = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2])

    def merit(cut: float) -> float:
        return score_of_sets(loss, judged.positive, held > cut, sets, judged.groups, judged.weight)

    return float(cuts[int(np.argmax([merit(cut) for cut in cuts]))])
