"""Scorers by loss: for any estimator, in any search, whatever the estimator was trained with."""

import pickle
import re

import numpy as np
import pytest
from loss_registry import LOSSES
from scipy import sparse
from set_classifier_problem import GROUPS, X, Y, n, y
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, hamming_loss, jaccard_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setwise import SetClassifier, losses
from setwise.losses import scorer

TIMES = np.random.default_rng(2).integers(0, 4, size=n)


class Told(BaseEstimator):
    """Predicts what it is told."""

    def __init__(self, answers=None):
        self.answers = answers

    def predict(self, X):
        return self.answers


def answers_for(truth):
    flipped = np.random.default_rng(5).random(truth.shape) < 0.3
    return np.where(flipped, 1 - truth, truth)


KINDS = {
    "rows": (Y, {"sets": "rows"}, {}),
    "columns": (Y, {"sets": "columns"}, {}),
    "cells": (Y, {"sets": "cells"}, {}),
    "groups": (y, {"sets": "groups"}, {"groups": GROUPS}),
    "sample": (y, {"sets": "sample"}, {}),
}


def sets_of(kind, truth):
    """The sets, as index arrays into the truth."""
    if kind == "rows":
        return [(i, slice(None)) for i in range(n)]
    if kind == "columns":
        return [(slice(None), k) for k in range(truth.shape[1])]
    if kind == "groups":
        return [g == GROUPS for g in np.unique(GROUPS)]
    return [...]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", losses.names())
def test_a_score_is_one_minus_the_mean_share_of_the_worst(name, kind):
    """By hand, for every loss that has a name and every kind of set."""
    truth, options, given = KINDS[kind]
    answers, loss = answers_for(truth), losses.get(name)
    shares = []
    for here in sets_of(kind, truth):
        one, other = truth[here].ravel(), answers[here].ravel()
        worst = loss(one, 1 - one)
        shares.append(loss(one, other) / worst if worst else 0.0)
    found = scorer(name, **options)(Told(answers), X, truth, **given)
    assert found == pytest.approx(1.0 - np.mean(shares), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scorer_says_what_the_estimator_of_its_loss_says(kind):
    """For every loss of the registry that takes sets of these sizes; others are refused by both."""
    truth, options, given = KINDS[kind]
    model = SetClassifier(surrogate="hinge", **options).fit(X, truth, **given)
    for name, listed in LOSSES.items():
        model.set_params(loss=listed.loss)
        judge = scorer(listed.loss, **options)
        try:
            told = [model.score(X, truth, **given, sample_weight=w) for w in (None, 1 + TIMES)]
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                judge(model, X, truth, **given)
            continue
        found = [judge(model, X, truth, **given, sample_weight=w) for w in (None, 1 + TIMES)]
        assert found == told, name


def test_the_measures_of_scikit_learn():
    """Rows are its samples, columns its macro, cells its micro; one label its binary average."""
    answers = answers_for(Y)
    some = Y.any(axis=1) | answers.any(axis=1)  # 0 / 0 is 0 there and 1 here
    names = {"rows": "samples", "columns": "macro", "cells": "micro"}
    for sets, average in names.items():
        model = Told(answers[some])
        for loss, measure in (("jaccard", jaccard_score), ("dice", f1_score)):
            expected = measure(Y[some], answers[some], average=average)
            found = scorer(loss, sets=sets)(model, X[some], Y[some])
            assert found == pytest.approx(expected, rel=1e-12)
        expected = 1 - hamming_loss(Y[some], answers[some])
        assert scorer("hamming", sets=sets)(model, X[some], Y[some]) == pytest.approx(expected)
    one = answers_for(y)
    assert scorer("iou")(Told(one), X, y) == pytest.approx(jaccard_score(y, one), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["jaccard", "dice", "hamming", "exponential"])
def test_a_weight_is_how_often_a_sample_is_there(loss, kind):
    truth, options, given = KINDS[kind]
    repeated = np.repeat(np.arange(n), TIMES)
    answers, judge = answers_for(truth), scorer(loss, **options)
    some = {name: value[repeated] for name, value in given.items()}
    found = judge(Told(answers), X, truth, **given, sample_weight=TIMES)
    expected = judge(Told(answers[repeated]), X[repeated], truth[repeated], **some)
    assert found == pytest.approx(expected, rel=1e-12)
    if kind != "groups" and loss in ("jaccard", "dice"):  # ratios: a common factor is none
        half = judge(Told(answers), X, truth, **given, sample_weight=0.5 * TIMES)
        assert half == pytest.approx(found, rel=1e-12)


def test_labels_in_any_form():
    answers, judge = answers_for(Y), scorer("jaccard")
    expected = judge(Told(answers), X, Y)
    for truth in (Y, 2 * Y - 1, Y.astype(bool), Y.tolist(), sparse.csr_matrix(Y)):
        for told in (answers, sparse.csc_array(answers), answers.astype(float)):
            assert judge(Told(told), X, truth) == expected
    judge, words = scorer("jaccard", pos_label="spam"), np.array(["ham", "spam"])
    one = answers_for(y)
    assert judge(Told(words[one]), X, words[y]) == scorer("jaccard")(Told(one), X, y)
    other = scorer("jaccard", pos_label="ham")(Told(words[one]), X, words[y])
    assert other == scorer("jaccard")(Told(1 - one), X, 1 - y)


def test_any_classifier_is_judged():
    other = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    expected = 1 - losses.Jaccard()(Y, other.predict(X)).mean()
    assert scorer("jaccard")(other, X, Y) == pytest.approx(expected, rel=1e-12)
    words = np.array(["ham", "spam"])[y]
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, words)
    found = scorer("dice", pos_label="spam")(plain, X, words)
    assert found == pytest.approx(f1_score(words, plain.predict(X), pos_label="spam"), rel=1e-12)


def test_the_second_class_is_that_of_the_score_of_an_estimator():
    words = np.array(["ham", "spam"])[y]
    model = SetClassifier().fit(X, words)
    assert scorer("jaccard", pos_label="spam")(model, X, words) == model.score(X, words)
    numbers = SetClassifier().fit(X, y)
    assert scorer("jaccard")(numbers, X, y) == numbers.score(X, y)


# --------------------------------------------------------------------------------------- searches


def test_a_search_over_losses_is_judged_by_one():
    choices = {"loss": ["jaccard", "hamming", "dice"], "sets": ["rows", "columns"]}
    search = GridSearchCV(SetClassifier(tol=0.1), choices, scoring=scorer("jaccard"), cv=3).fit(
        X, Y
    )
    for found, params in zip(
        search.cv_results_["mean_test_score"], search.cv_results_["params"], strict=True
    ):
        model = clone(search.estimator).set_params(**params)
        by_hand = cross_val_score(model, X, Y, cv=3, scoring=scorer("jaccard"))
        assert found == by_hand.mean()
    assert search.score(X, Y) == scorer("jaccard")(search.best_estimator_, X, Y)


@pytest.mark.parametrize(
    ("name", "choices"), [("loss", ["jaccard", "hamming"]), ("sets", ["rows", "columns"])]
)
def test_a_search_that_compares_different_measures_warns(name, choices):
    sentence = f"a search sets {name}, with which score evaluates"
    with pytest.warns(UserWarning, match=sentence):
        GridSearchCV(SetClassifier(tol=0.1), {name: choices}, cv=2, refit=False).fit(X, Y)
    pipe = make_pipeline(StandardScaler(), SetClassifier(tol=0.1))
    with pytest.warns(UserWarning, match=sentence):
        GridSearchCV(pipe, {f"setclassifier__{name}": choices}, cv=2, refit=False).fit(X, Y)


def test_what_compares_nothing_does_not_warn():
    model = SetClassifier().set_params(loss="hamming").fit(X, Y)
    assert 0 < model.score(X, Y) <= 1
    cross_val_score(model, X, Y, cv=2)
    GridSearchCV(SetClassifier(), {"C": [0.1, 1.0], "surrogate": ["lovasz", "slack"]}, cv=2).fit(
        X, Y
    )


def test_groups_are_routed_to_a_scorer():
    with config_context(enable_metadata_routing=True):
        model = SetClassifier(sets="groups").set_fit_request(groups=True)
        judge = scorer("dice", sets="groups").set_score_request(groups=True)
        search = GridSearchCV(
            model, {"C": [0.1, 1.0]}, cv=GroupKFold(3), scoring=judge, error_score="raise"
        ).fit(X, y, groups=GROUPS)
        by_hand = []
        for train, test in GroupKFold(3).split(X, y, GROUPS):
            fold = SetClassifier(sets="groups").fit(X[train], y[train], groups=GROUPS[train])
            by_hand.append(judge(fold, X[test], y[test], groups=GROUPS[test]))
        assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(by_hand))
        several = {"dice": judge, "iou": scorer("iou").set_score_request(groups=False)}
        found = cross_validate(
            SetClassifier().set_fit_request(groups=False),
            X,
            y,
            cv=GroupKFold(3),
            scoring=several,
            params={"groups": GROUPS},
        )
        assert {"test_dice", "test_iou"} <= set(found)
        with pytest.raises(UnsetMetadataPassedError):
            cross_validate(
                model, X, y, cv=GroupKFold(3), scoring=scorer("dice"), params={"groups": GROUPS}
            )


def test_weights_are_routed_to_a_scorer():
    with config_context(enable_metadata_routing=True):
        model = SetClassifier().set_fit_request(sample_weight=False)
        judge = scorer("jaccard").set_score_request(sample_weight=True)
        found = cross_val_score(
            model, X, Y, cv=3, scoring=judge, params={"sample_weight": 1.0 + TIMES}
        )
        # the first release with routing here takes no params=None
        plain = cross_val_score(model, X, Y, cv=3, scoring=scorer("jaccard"), params={})
        assert np.abs(found - plain).max() > 1e-3


def test_groups_that_were_dropped_are_an_error():
    model = SetClassifier(sets="groups").fit(X, y, groups=GROUPS)
    with pytest.raises(ValueError, match="groups must be given to the scorer of an estimator with"):
        scorer("jaccard")(model, X, y)
    assert scorer("jaccard", sets="sample")(model, X, y) > 0


def test_a_scorer_is_stored_and_shown():
    judge = scorer(losses.Hamming([1.0, 2.0, 0.5]), sets="rows").set_score_request(groups=False)
    again = pickle.loads(pickle.dumps(judge))
    model = SetClassifier().fit(X, Y)
    assert again(model, X, Y) == judge(model, X, Y) == clone(judge, safe=False)(model, X, Y)
    assert repr(again) == repr(judge) == "scorer(Hamming([1.0, 2.0, 0.5]), sets='rows')"
    assert repr(scorer("dice", pos_label="a")) == "scorer(Dice(), pos_label='a')"
    assert again._requests == judge._requests


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: scorer("overlap"), ValueError, "loss must be one of dice, .*, got 'overlap'"),
        (lambda: scorer(3), TypeError, "loss must be a Loss or a name, got int"),
        (
            lambda: scorer("dice", sets="bags"),
            ValueError,
            "sets must be one of .*, got 'bags'",
        ),
        (lambda: scorer("dice", sets=3), TypeError, "sets must be a string, got int"),
        (lambda: scorer("dice", pos_label=[1]), TypeError, "pos_label must be a label or None"),
        (
            lambda: scorer("dice")(Told(np.array(list("ab") * 30)), X, list("ab") * 30),
            ValueError,
            r"pos_label must be given when y holds other labels than .* got \['a', 'b'\]",
        ),
        (
            lambda: scorer("dice", pos_label=2)(SetClassifier().fit(X, y), X, y),
            ValueError,
            r"pos_label must be one of the classes of fit, \[0, 1\], got 2",
        ),
        (
            lambda: scorer("dice", pos_label=1)(Told(Y), X, Y),
            ValueError,
            "pos_label must be None when y is a matrix, got 1",
        ),
        (lambda: scorer("dice")(Told(Y), X, y), ValueError, r"y must have shape \(60, 3\), got"),
        (
            lambda: scorer("dice").set_score_request(groups=3),
            TypeError,
            "groups must be True, False, None or a name, got int",
        ),
    ],
)
def test_bad_input(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
