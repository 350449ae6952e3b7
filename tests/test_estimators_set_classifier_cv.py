"""SetClassifierCV: the best C by cross-validation, by any scorer, over a path a fold."""

import pickle

import numpy as np
import pytest
from mistaken_checks import MISTAKEN
from scipy import sparse
from set_classifier_problem import GROUPS, X, Y, n, y
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from setwise import SetClassifier, SetClassifierCV
from setwise.losses import EarlyDetection, scorer

CS = [3.0, 0.03, 0.3]
CHECKS = [
    pytest.param(estimator, check, id=f"{estimator.surrogate} {check.func.__name__}")
    for model in (SetClassifierCV(Cs=[0.1], cv=2),)
    for estimator, check in estimator_checks_generator(model)
    if check.func.__name__ not in MISTAKEN
]


@pytest.mark.filterwarnings("ignore:SetClassifierCV predicts no positive")  # labels at random
@pytest.mark.filterwarnings("ignore:The least populated class in y")  # scikit-learn's own
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


KINDS = {
    "rows": ({}, Y, {}, KFold(3)),
    "columns": ({"sets": "columns"}, Y, {}, KFold(3)),
    "groups": ({"sets": "groups"}, y, {"groups": GROUPS}, GroupKFold(3)),
    "sample": ({}, y, {}, StratifiedKFold(3)),
}


@pytest.mark.parametrize(
    ("kind", "scoring"),
    [("rows", None), ("columns", "dice"), ("groups", "dice"), ("sample", "accuracy")],
)
def test_the_scores_are_those_of_fits_one_by_one(kind, scoring):
    """Where no score is so close to 0 that the tolerance of a fit may change its sign."""
    options, truth, given, folds = KINDS[kind]
    judge = None
    if scoring == "dice":
        judge = scorer("dice", sets=options.get("sets", "auto"))
    elif scoring is not None:
        judge = scoring
    model = SetClassifierCV("jaccard", Cs=CS, cv=3, scoring=judge, tol=1e-8, **options)
    model.fit(X, truth, **given)
    expected, clear = np.empty((3, 3)), np.empty((3, 3), bool)
    for i, (train, test) in enumerate(folds.split(X, truth, given.get("groups"))):
        for k, C in enumerate(CS):
            there = {name: value[train] for name, value in given.items()}
            here = {name: value[test] for name, value in given.items()}
            fold = SetClassifier("jaccard", C=C, tol=1e-8, **options)
            fold.fit(X[train], truth[train], **there)
            clear[i, k] = np.abs(fold.decision_function(X[test])).min() > 0.003
            if scoring is None:
                expected[i, k] = fold.score(X[test], truth[test], **here)
            elif scoring == "dice":
                expected[i, k] = judge(fold, X[test], truth[test], **here)
            else:
                expected[i, k] = np.mean(fold.predict(X[test]) == truth[test])
    assert clear.sum() >= 3
    np.testing.assert_allclose(model.scores_[clear], expected[clear], atol=1e-12)
    assert CS[int(np.argmax(model.scores_.mean(axis=0)))] == model.C_
    assert model.Cs_.tolist() == CS
    best = SetClassifier("jaccard", C=model.C_, tol=1e-8, **options).fit(X, truth, **given)
    # P is strongly convex: |W - W*|^2 <= 2 gap, of each of the two.
    np.testing.assert_allclose(model.coef_, best.coef_, atol=0.02)
    assert model.gap_ <= 1e-8
    assert model.certified_


def test_a_score_is_by_the_scorer():
    model = SetClassifierCV(Cs=[1.0], cv=2, scoring=scorer("dice", sets="cells")).fit(X, Y)
    assert model.score(X, Y) == scorer("dice", sets="cells")(model, X, Y)
    plain = SetClassifierCV(Cs=[1.0], cv=2).fit(X, Y)
    assert plain.score(X, Y) == scorer("jaccard")(plain, X, Y)


def test_without_a_refit_the_weights_are_the_mean_of_the_folds():
    model = SetClassifierCV(Cs=CS, cv=3, refit=False, tol=1e-6).fit(X, Y)
    chosen = model.scores_.argmax(axis=1)
    assert np.mean(np.array(CS)[chosen]) == model.C_
    coefs = [
        SetClassifier(C=CS[k], tol=1e-6).fit(X[train], Y[train]).coef_
        for k, (train, _) in zip(chosen, KFold(3).split(X), strict=True)
    ]
    np.testing.assert_allclose(model.coef_, np.mean(coefs, axis=0), atol=0.02)


@pytest.mark.parametrize("truth", [Y, y], ids=["rows", "sample"])
def test_the_number_of_threads_changes_no_bit(truth):
    one = SetClassifierCV(Cs=CS, cv=3).fit(X, truth)
    two = SetClassifierCV(Cs=CS, cv=3, n_jobs=2).fit(X, truth)
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.scores_, two.scores_)
    assert np.array_equal(one.n_iter_, two.n_iter_)


def test_a_path_takes_fewer_rounds_than_fits_one_by_one():
    Cs = np.logspace(-2, 1, 8)
    model = SetClassifierCV(Cs=Cs, cv=2).fit(X, Y)
    train = next(KFold(2).split(X))[0]
    apart = [SetClassifier(C=C).fit(X[train], Y[train]).n_iter_ for C in Cs]
    assert model.n_iter_[0].sum() < sum(apart)


def test_a_count_of_values_spans_eight_powers_of_ten():
    model = SetClassifierCV(Cs=3, cv=2, tol=0.1).fit(X, Y)
    np.testing.assert_allclose(model.Cs_, [1e-4, 1.0, 1e4])


def test_groups_stay_whole():
    """A count of folds, and a splitter of one's own; sets that are cut in two would be others."""
    model = SetClassifierCV(Cs=[0.1, 1.0], cv=3, sets="groups").fit(X, y, groups=GROUPS)
    same = SetClassifierCV(Cs=[0.1, 1.0], cv=GroupKFold(3), sets="groups").fit(X, y, groups=GROUPS)
    assert np.array_equal(model.scores_, same.scores_)
    with pytest.raises(ValueError, match="groups must be given when sets='groups', got None"):
        SetClassifierCV(Cs=[0.1], cv=3, sets="groups").fit(X, y)


def test_groups_in_a_pipeline_and_a_search():
    with config_context(enable_metadata_routing=True):
        last = SetClassifierCV(Cs=[0.1, 1.0], cv=3, sets="groups").set_fit_request(groups=True)
        pipe = make_pipeline(StandardScaler(), last).fit(X, y, groups=GROUPS)
        assert pipe[-1].C_ in (0.1, 1.0)
        judge = scorer("jaccard", sets="groups").set_score_request(groups=True)
        search = GridSearchCV(
            clone(last).set_params(tol=0.05),
            {"loss": ["jaccard", "dice"]},
            cv=GroupKFold(2),
            scoring=judge,
            error_score="raise",
        ).fit(X, y, groups=GROUPS)
        assert search.best_params_["loss"] in ("jaccard", "dice")


def test_every_fit_of_a_fold_can_be_watched(capsys):
    model = SetClassifierCV(Cs=[1.0, 0.1], cv=2, verbose=True).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["C 0.1", "C 1"] * 2
    assert f"score {model.scores_[0, 1]:.4f}, {model.n_iter_[0, 1]} rounds" in lines[0]
    SetClassifierCV(Cs=[1.0], cv=2).fit(X, Y)
    assert not capsys.readouterr().err


def test_a_fold_without_positives_is_scored():
    """The classes are those of the whole sample."""
    order = np.argsort(y)
    model = SetClassifierCV(Cs=[1.0], cv=KFold(2)).fit(X[order], y[order])
    assert model.scores_.shape == (2, 1)


def test_sparse_labels_words_and_weights():
    dense = SetClassifierCV(Cs=[0.1, 1.0], cv=2, tol=0.01).fit(X, Y)
    thin = SetClassifierCV(Cs=[0.1, 1.0], cv=2, tol=0.01).fit(
        sparse.csr_array(X), sparse.csr_array(Y)
    )
    assert np.array_equal(dense.scores_, thin.scores_)
    words = np.array(["ham", "spam"])[y]
    model = SetClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, words)
    other = SetClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, y)
    assert np.array_equal(model.scores_, other.scores_)
    assert np.array_equal(model.coef_, other.coef_)
    weight = 1 + np.arange(n) % 3
    weighted = SetClassifierCV(Cs=[0.1, 1.0], cv=2, class_weight={0: 1, 1: 2})
    weighted.fit(X, y, sample_weight=weight)
    product = SetClassifierCV(Cs=[0.1, 1.0], cv=2)
    product.fit(X, y, sample_weight=weight * np.where(y == 1, 2, 1))
    assert np.array_equal(weighted.coef_, product.coef_) or weighted.C_ != product.C_


def test_cross_validation_around_it_and_pickle():
    model = SetClassifierCV(Cs=[0.1, 1.0], cv=2, tol=0.05)
    assert cross_val_score(model, X, Y, cv=2).shape == (2,)
    again = pickle.loads(pickle.dumps(model.fit(X, Y)))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.score(X, Y) == model.score(X, Y)


def test_gaps_that_stay_open_are_said_once_for_the_folds():
    with pytest.warns(ConvergenceWarning) as caught:
        SetClassifierCV(Cs=CS, cv=2, max_iter=2).fit(X, Y)
    folds, refit = (str(warning.message) for warning in caught)
    assert folds.startswith("SetClassifierCV: 6 of 6 fits stopped at relative gaps up to")
    assert refit.startswith("SetClassifierCV stopped after 2 rounds")


def test_no_exact_maximiser_is_said_once():
    many = np.random.default_rng(7).integers(0, 2, size=(n, 17))
    model = SetClassifierCV(EarlyDetection(), "slack", Cs=[0.001], cv=2, tol=0.5)
    with pytest.warns(UserWarning, match="has no exact maximiser for 17 elements") as caught:
        model.fit(X, many)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not model.certified_


def test_a_minimum_that_predicts_nothing_is_said_once():
    noise = np.random.default_rng(8).normal(size=(n, 2))
    with pytest.warns(
        UserWarning, match="SetClassifierCV predicts no positive on the sample"
    ) as told:
        SetClassifierCV(Cs=[0.1, 1.0], cv=2, sets="groups").fit(
            noise, np.arange(n) % 5 == 0, groups=np.arange(n) // 5
        )
    assert len(told) == 1


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"Cs": 0}, ValueError, "Cs must be at least 1, got 0"),
        ({"Cs": [1.0, -1.0]}, ValueError, "Cs must be positive numbers, at least one, got"),
        ({"Cs": []}, ValueError, "Cs must be positive numbers, at least one, got"),
        ({"Cs": "many"}, TypeError, "Cs must hold real numbers, got dtype <U4"),
        ({"scoring": "overlap"}, ValueError, "scoring must be the name of a scorer, got 'overlap'"),
        ({"scoring": 3}, TypeError, "scoring must be a name, a scorer or None, got int"),
        ({"scoring": lambda *_: np.nan}, ValueError, "what scoring returns must be finite"),
        ({"cv": "folds"}, ValueError, "cv: Expected `?cv`? as an integer"),
        ({"verbose": 1}, TypeError, "verbose must be True or False, got int"),
        ({"refit": 1}, TypeError, "refit must be True or False, got int"),
        ({"loss": "dice", "surrogate": "lovasz"}, ValueError, "surrogate must be 'auto', "),
    ],
)
def test_bad_input(options, error, sentence):
    with pytest.raises(error, match=sentence):
        SetClassifierCV(**{"Cs": [1.0], "cv": 2, **options}).fit(X, Y)
