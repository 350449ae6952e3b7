"""SetDecision: exact decisions over any classifier's probabilities."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from mistaken_checks import MISTAKEN
from scipy.sparse import csr_array
from set_classifier_problem import GROUPS, X, Y, n, p, y
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

import setwise as sw
from setwise import SetDecision
from setwise.decisions._probabilities import read_probabilities
from setwise.estimators._sets._probability_models import PresenceModel

# A sample that is repeated can be in two folds, and one of weight 2 cannot: calibrated, they
# differ, as those of scikit-learn's CalibratedClassifierCV do.
BY_FOLDS = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
# It asks for rounded probabilities as labels: right for the Hamming loss, and for no other.
ROUNDED = {"check_classifier_multioutput"}
CALIBRATED = SetDecision(LogisticRegression(C=0.5), "hamming", calibrate="sigmoid", cv=2)
CHECKS = [
    pytest.param(estimator, check, id=f"{estimator.calibrate} {check.func.__name__}")
    for model, not_for in ((SetDecision(), ROUNDED), (CALIBRATED, BY_FOLDS))
    for estimator, check in estimator_checks_generator(model)
    if check.func.__name__ not in MISTAKEN | not_for
]

MULTILABEL = {
    "default": None,
    "one-vs-rest": OneVsRestClassifier(LogisticRegression()),
    "multi-output": MultiOutputClassifier(LogisticRegression()),
    "chain": ClassifierChain(LogisticRegression()),
    "forest": RandomForestClassifier(5, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
}


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
@pytest.mark.filterwarnings("ignore:The least populated class")  # ten rows of scikit-learn 1.6
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", MULTILABEL)
@pytest.mark.parametrize("loss", ["jaccard", "hamming"])
def test_rows_are_decided_one_by_one(name, loss):
    model = SetDecision(MULTILABEL[name], loss, presence=None).fit(X, Y)
    chances = model.predict_proba(X)
    assert chances.shape == (n, p)
    best = sw.decide(chances, loss)
    assert np.array_equal(model.predict(X), best.mask.astype(Y.dtype))
    assert np.array_equal(model.expected_loss(X), best.expected)
    assert model.decide(X).exact.all()
    alone = np.concatenate([model.predict(X[[i]]) for i in range(5)])
    assert np.array_equal(alone, model.predict(X)[:5])


@pytest.mark.parametrize("matrix", [True, False])
def test_presence_is_learnt_out_of_fold(matrix):
    """The model by hand: a logistic regression of signs that there is something in a set."""
    folds = GroupKFold(3) if not matrix else KFold(3)
    inner = OneVsRestClassifier(LogisticRegression()) if matrix else LogisticRegression()
    groups = None if matrix else GROUPS
    target = Y if matrix else y
    options = {} if matrix else {"groups": groups}
    model = SetDecision(inner, "jaccard", calibrate=None, cv=folds).fit(X, target, **options)
    held = cross_val_predict(inner, X, target, groups=groups, cv=folds, method="predict_proba")
    chances = model.predict_proba(X)
    names = np.arange(n) if matrix else GROUPS
    if not matrix:
        held, chances = held[:, 1:], chances[:, 1:]
    positive = (Y > 0) if matrix else (y == model.classes_[1])[:, None]

    def signs(p):
        rows = [np.clip(p[names == name], 1e-7, 1 - 1e-7) for name in np.unique(names)]
        told = [(q.max(), q.sum(), -np.log1p(-q).sum()) for q in rows]
        most, number, none = np.array(told).T
        return np.column_stack([np.log(most / (1 - most)), np.log(number), np.log(none)])

    there = np.array([positive[names == name].any() for name in np.unique(names)])
    most = np.array([chances[names == name].max() for name in np.unique(names)])
    if there.all():
        presence = np.full(len(there), (len(there) + 1) / (len(there) + 2))
    else:
        known = LogisticRegression(C=10.0).fit(signs(held), there)
        presence = known.predict_proba(signs(chances))[:, 1]
    presence = np.maximum(presence, most)
    best = sw.decide(chances if matrix else chances[:, 0], "jaccard", presence=presence, **options)
    assert np.array_equal(model.decide(X, **options).mask, best.mask)
    assert model.expected_loss(X, **options) == pytest.approx(best.expected, abs=1e-12)
    if matrix:
        alone = np.concatenate([model.predict(X[[i]]) for i in range(5)])
        assert np.array_equal(alone, model.predict(X)[:5])


def test_rows_that_always_have_a_label_get_one():
    rng = np.random.default_rng(0)
    centre = rng.integers(0, 6, 200)
    points = rng.normal(size=(200, 6)) + 1.2 * np.eye(6)[centre]
    labels = np.eye(6, dtype=int)[centre]
    model = SetDecision(cv=3).fit(points, labels)
    plain = SetDecision(presence=None).fit(points, labels)
    assert model.predict(points).any(axis=1).all()
    assert not plain.predict(points).any(axis=1).all()
    fresh = rng.normal(size=(200, 6)) + 1.2 * np.eye(6)[centre]
    assert model.score(fresh, labels) > plain.score(fresh, labels) + 0.1


def test_no_time_leaves_the_folds_out():
    for options in ({}, {"sets": "columns"}, {"calibrate": "isotonic"}):
        with pytest.warns(ConvergenceWarning, match="time_limit of 0 s reached before all folds"):
            model = SetDecision(time_limit=0, **options).fit(X, Y)
        assert model.predict(X).shape == Y.shape
        plain = SetDecision(presence=None, calibrate=None).fit(X, Y)
        assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_probabilities_pass_through():
    inner = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    model = SetDecision(OneVsRestClassifier(LogisticRegression()), calibrate=None).fit(X, Y)
    assert np.array_equal(model.predict_proba(X), inner.predict_proba(X))
    single = SetDecision().fit(X, y)
    known = LogisticRegression(max_iter=1000).fit(X, y).predict_proba(X)
    assert single.predict_proba(X) == pytest.approx(known, abs=1e-15)


def test_a_sample_is_decided_by_a_threshold_out_of_fold():
    folds = KFold(3, shuffle=True, random_state=0)
    model = SetDecision(LogisticRegression(), "dice", cv=folds).fit(X, y)
    chances = cross_val_predict(LogisticRegression(), X, y, cv=folds, method="predict_proba")[:, 1]
    mask = sw.decide(chances, "dice").mask
    assert np.array_equal(chances > model.thresholds_[0], mask)
    assert np.array_equal(
        model.predict(X) == model.classes_[1], model._chances(X) > model.thresholds_
    )
    exact = model.decide(X)
    assert exact.mask.shape == (n,)
    assert model.expected_loss(X) == pytest.approx([exact.expected])


@pytest.mark.parametrize("sets", ["columns", "cells"])
def test_columns_and_cells_have_thresholds(sets):
    model = SetDecision(loss="jaccard", sets=sets, cv=3).fit(X, Y)
    assert model.thresholds_.shape == ((p,) if sets == "columns" else (1,))
    assert np.array_equal(
        model.predict(X), (model.predict_proba(X) > model.thresholds_).astype(int)
    )
    assert 0 <= model.score(X, Y) <= 1
    assert model.expected_loss(X).shape == ((p,) if sets == "columns" else (1,))


def test_groups_are_sets():
    model = SetDecision(LogisticRegression(), "dice").fit(X, y, groups=GROUPS)
    chances = model.predict_proba(X)[:, 1]
    mask = sw.decide(chances, "dice", groups=GROUPS).mask
    assert np.array_equal(model.predict(X, groups=GROUPS) == model.classes_[1], mask)
    with pytest.raises(ValueError, match="groups must be given, as they were to fit"):
        model.predict(X)
    score = model.score(X, y, groups=GROUPS)
    judged = sw.losses.Dice()
    order = np.argsort(GROUPS, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.unique(GROUPS, return_counts=True)[1])])
    truth = (y == model.classes_[1])[order]
    assert score == pytest.approx(1 - judged(truth, mask[order], offsets=offsets).mean())


def test_groups_are_routed_in_a_search():
    with config_context(enable_metadata_routing=True):
        model = (
            SetDecision(LogisticRegression(), "dice", sets="groups")
            .set_fit_request(groups=True)
            .set_score_request(groups=True)
        )
        search = GridSearchCV(model, {"estimator__C": [0.1, 1.0]}, cv=GroupKFold(3))
        search.fit(X, y, groups=GROUPS)
    assert search.best_params_["estimator__C"] in (0.1, 1.0)


@pytest.mark.parametrize("calibrate", ["sigmoid", "isotonic"])
def test_calibration_is_out_of_fold_and_monotone(calibrate):
    over = GaussianNB()  # too sure of itself where features agree
    wide = np.hstack([X] * 6)
    plain = SetDecision(MultiOutputClassifier(over), calibrate=None).fit(wide, Y)
    model = SetDecision(MultiOutputClassifier(over), calibrate=calibrate, cv=4).fit(wide, Y)

    def brier(estimator):
        return float(np.mean((estimator.predict_proba(wide) - Y) ** 2))

    assert brier(model) < brier(plain)
    before, after = plain.predict_proba(wide), model.predict_proba(wide)
    for k in range(p):
        order = np.argsort(before[:, k], kind="stable")
        assert np.all(np.diff(after[order, k]) >= -1e-12)


def test_labels_that_are_never_or_always_there():
    fixed = Y.copy()
    fixed[:, 0], fixed[:, 1] = 0, 1
    for estimator in (MultiOutputClassifier(RandomForestClassifier(3, random_state=0)), None):
        with np.errstate(all="ignore"):
            model = SetDecision(estimator, calibrate="isotonic", cv=3)
            if estimator is None:
                with pytest.warns(UserWarning, match="Label"):
                    model.fit(X, fixed)
            else:
                model.fit(X, fixed)
        found = model.predict(X)
        assert not found[:, 0].any()
        assert found[:, 1].all()


def test_names_encodings_and_sparse_labels():
    words = np.where(y == y.max(), "yes", "no")
    model = SetDecision(loss="dice").fit(X, words)
    assert set(model.predict(X)) <= {"yes", "no"}
    assert model.predict_proba(X).shape == (n, 2)
    signs = SetDecision().fit(X, 2 * Y - 1)
    assert set(np.unique(signs.predict(X))) <= {-1, 1}
    sparse = SetDecision().fit(csr_array(X), csr_array(Y))
    assert np.array_equal(sparse.predict(X), SetDecision().fit(X, Y).predict(X))


def test_weights_reach_the_estimator():
    weight = np.random.default_rng(0).integers(0, 3, n)
    model = SetDecision(LogisticRegression(C=0.1)).fit(X, y, sample_weight=weight)
    known = LogisticRegression(C=0.1).fit(X, y, sample_weight=weight)
    assert np.array_equal(model.estimator_.coef_, known.coef_)


def test_is_cloned_and_pickled():
    model = SetDecision(LogisticRegression(), "dice", calibrate="sigmoid", cv=3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert clone(model).loss == "dice"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"estimator": LinearSVC()},
            TypeError,
            "estimator must be a classifier with predict_proba",
        ),
        ({"estimator": 3}, TypeError, "estimator must be a classifier with predict_proba"),
        ({"loss": "iuo"}, ValueError, "loss must be one of"),
        ({"calibrate": "beta"}, ValueError, "calibrate must be"),
        ({"sets": "row"}, ValueError, "sets must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(options, error, words):
    with pytest.raises(error, match=words):
        SetDecision(**options).fit(X, y)


def test_weights_reach_the_classifier_of_each_label():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 3))
    Y = (X @ rng.normal(size=(3, 2)) + rng.normal(size=(40, 2)) > 0).astype(np.int64)
    weight = rng.integers(0, 3, 40).astype(float)
    model = SetDecision(loss="jaccard").fit(X, Y, sample_weight=weight)
    for label, own in zip(Y.T, model.estimator_.estimators_, strict=True):
        known = clone(own).fit(X, label, sample_weight=weight)
        np.testing.assert_allclose(own.coef_, known.coef_)
    assert model.predict(X).shape == Y.shape


def test_rows_that_count_nothing_do_not_say_how_often_a_set_is_there():
    """Where no set that counts is empty there is one number, and the removed rows are not in it."""
    p = np.full((6, 3), 0.4)
    truth = np.array([[1, 0, 0]] * 4 + [[0, 0, 0]] * 2, np.bool_)
    few, all_ = (read_probabilities(q, offsets=None, groups=None, sets="rows") for q in (p[:4], p))
    removed = PresenceModel.fit(all_, truth.ravel(), np.array([1.0] * 4 + [0.0] * 2))
    assert removed.always == PresenceModel.fit(few, truth[:4].ravel(), None).always
