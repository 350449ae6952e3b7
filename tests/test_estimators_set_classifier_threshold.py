"""Thresholds and probabilities of SetClassifier, chosen out of fold."""

from __future__ import annotations

import numpy as np
import pytest
from set_classifier_problem import GROUPS, X, Y, n, p, y
from sklearn.base import clone
from sklearn.model_selection import KFold

import setwise as sw
from setwise import SetClassifier

FOLDS = KFold(3, shuffle=True, random_state=0)


def out_of_fold(model, X, y):
    """Scores by the definition: a fit a fold."""
    found = np.zeros(y.shape)
    for train, test in FOLDS.split(X):
        found[test] = clone(model).fit(X[train], y[train]).decision_function(X[test])
    return found


@pytest.mark.parametrize("truth", [y, Y], ids=["sample", "rows"])
def test_no_threshold_out_of_fold_is_better(truth):
    plain = SetClassifier(C=0.5)
    scores = out_of_fold(plain, X, truth)
    model = SetClassifier(C=0.5, calibrate="threshold", cv=FOLDS).fit(X, truth)

    def jaccard(cut):
        return 1 - np.mean(sw.losses.Jaccard()(truth, scores > cut))

    best = max(jaccard(cut) for cut in [0.0, *(np.sort(scores.ravel()) + 1e-12)])
    assert jaccard(model.threshold_) >= best - 0.02  # the candidates are 200 quantiles
    assert jaccard(model.threshold_) >= jaccard(0.0)
    untuned = plain.fit(X, truth)
    assert np.array_equal(model.coef_, untuned.coef_)
    assert model.intercept_ == pytest.approx(untuned.intercept_ - model.threshold_)
    shifted = untuned.decision_function(X) > model.threshold_
    assert np.array_equal(model.predict(X), shifted.astype(int))


def test_warm_starts_begin_at_what_was_learnt():
    model = SetClassifier(calibrate="threshold", cv=FOLDS, warm_start=True).fit(X, y)
    rounds, intercept = model.n_iter_, model.intercept_
    model.fit(X, y)
    assert model.n_iter_ <= rounds
    assert model.intercept_ == pytest.approx(intercept, abs=1e-2)


@pytest.mark.parametrize("calibrate", ["sigmoid", "isotonic"])
def test_probabilities_are_those_of_held_out_scores(calibrate):
    model = SetClassifier(C=0.5, calibrate=("threshold", calibrate), cv=FOLDS).fit(X, Y)
    chances = model.predict_proba(X)
    assert chances.shape == (n, p)
    assert ((chances >= 0) & (chances <= 1)).all()
    scores = model.decision_function(X)
    for k in range(p):
        order = np.argsort(scores[:, k])
        assert np.all(np.diff(chances[order, k]) >= -1e-12)
    # As often as they say, on average, where they were made.
    assert chances.mean(axis=0) == pytest.approx(Y.mean(axis=0), abs=0.1)
    assert sw.decide(chances, "jaccard").exact.all()
    single = SetClassifier(calibrate=calibrate, cv=FOLDS).fit(X, y)
    assert single.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(n))
    agree = np.corrcoef(single.predict_proba(X)[:, 1], y)[0, 1]
    assert agree > 0.3


def test_without_calibration_there_are_no_probabilities():
    assert not hasattr(SetClassifier(), "predict_proba")
    assert not hasattr(SetClassifier(calibrate="threshold"), "predict_proba")
    assert hasattr(SetClassifier(calibrate="sigmoid"), "predict_proba")


def test_groups_stay_whole():
    model = SetClassifier(sets="groups", calibrate=["sigmoid", "threshold"], cv=3)
    model.fit(X, y, groups=GROUPS)
    assert np.isfinite(model.threshold_)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"calibrate": ("sigmoid", "isotonic")}, ValueError, "calibrate must be one of"),
        ({"calibrate": "platt"}, ValueError, "calibrate must be"),
        ({"calibrate": "sigmoid", "cv": 1}, ValueError, "cv"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(options, error, words):
    with pytest.raises(error, match=words):
        SetClassifier(**options).fit(X, y)
