"""Ensembles with fewer trees: the optimum, its certificate, and the predictions."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import setwise as sw

KINDS = {
    "forest": RandomForestClassifier(12, max_depth=3, random_state=0),
    "extra": ExtraTreesClassifier(12, max_depth=3, random_state=0),
    "bagging": BaggingClassifier(
        DecisionTreeClassifier(max_depth=2), 8, max_features=0.5, random_state=0
    ),
    "votes": BaggingClassifier(RidgeClassifier(), 6, max_features=2, random_state=0),
    "adaboost": AdaBoostClassifier(n_estimators=8, random_state=0),
    "gradient": GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0),
    "histogram": HistGradientBoostingClassifier(max_iter=5, max_depth=2, min_samples_leaf=4),
}


@cache
def data(k):
    X, y = make_classification(
        150, 6, n_informative=4, n_classes=k, n_clusters_per_class=1, flip_y=0.1, random_state=k
    )
    return X, np.array(list("abcd"))[y]


@cache
def fitted(kind, k):
    X, y = data(k)
    with threadpool_limits(1, user_api="openmp"):
        return clone(KINDS[kind]).fit(X[:90], y[:90])


def class_outputs(model, X):
    """(T, n, k) of each tree, by public methods, and what comes with no tree, (1, k).

    Of a single score of two classes only the difference counts: it is the second's.
    """
    k, n = len(model.classes_), len(X)
    if isinstance(model, GradientBoostingClassifier | HistGradientBoostingClassifier):
        stages = np.array(list(model.staged_decision_function(X))).reshape(
            -1, n, 1 if k == 2 else k
        )
        prior = (
            stages[:1]
            - model.learning_rate * np.transpose([t.predict(X) for t in model.estimators_[0]])
            if isinstance(model, GradientBoostingClassifier)
            else np.broadcast_to(model._baseline_prediction, stages[:1].shape)
        )
        steps = np.diff(np.concatenate([prior, stages]), axis=0)
        places = [1] if k == 2 else range(k)
        h = np.zeros((len(steps), len(places), n, k))
        for c, place in enumerate(places):
            h[:, c, :, place] = steps[:, :, c]
        return h.reshape(-1, n, k)
    h = []
    for t, tree in enumerate(model.estimators_):
        if isinstance(model, AdaBoostClassifier):
            h.append(np.where(tree.predict(X)[:, None] == model.classes_, 1.0, -1.0 / (k - 1)))
        elif not isinstance(model, BaggingClassifier):
            h.append(tree.predict_proba(X))
        elif hasattr(tree, "predict_proba"):
            h.append(tree.predict_proba(X[:, model.estimators_features_[t]]))
        else:
            h.append(np.eye(k)[tree.predict(X[:, model.estimators_features_[t]])])
    return np.array(h)


def full_program(h, y, cost, weight, C, share=None):
    """The optimum over all trees and constants, by one linear program with every constraint."""
    T, n, k = h.shape
    sizes = np.abs(h[:, :, 1] - h[:, :, 0] if k == 2 else h).reshape(T, -1).max(axis=1)
    h = h / np.where(sizes > 0, sizes, 1.0)[:, None, None]
    if share is not None:
        h = h * share[:, :, None]
    units = np.eye(k)[1:] if k == 2 else np.eye(k)
    columns = np.concatenate(
        [h, *(np.tile(sign * e, (1, n, 1)) for e in units for sign in (1, -1))]
    )
    rows, right = [], []
    for i in range(n):
        for other in set(range(k)) - {y[i]}:
            slack = -np.eye(n)[i]
            rows.append(np.r_[columns[:, i, other] - columns[:, i, y[i]], slack])
            right.append(-cost[y[i], other])
    objective = np.r_[np.ones(len(columns)), C * weight / weight.sum()]
    return linprog(objective, csr_array(np.array(rows)), right, method="highs").fun


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_that_of_the_full_program(kind, k):
    model, (X, y) = fitted(kind, k), data(k)
    X, y = X[90:], y[90:]
    weight = np.arange(len(y)) % 3 / 2.0
    few = sw.thin(model, X, y, C=15.0, tol=1e-9, sample_weight=weight)
    some = weight > 0
    places = np.searchsorted(model.classes_, y)[some]
    h = class_outputs(model, X[some])
    optimum = full_program(h, places, 1.0 - np.eye(k), weight[some], 15.0)
    assert few.n_trees_ == len(h)
    assert few.bound_ <= optimum * (1 + 1e-9)
    assert few.value_ == pytest.approx(optimum, rel=1e-7)
    assert few.gap_ <= 1e-7
    assert few.certified_


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_weighted_sums_of_the_kept_trees(kind, k):
    model, (X, y) = fitted(kind, k), data(k)
    few = sw.thin(model, X[90:], y[90:], C=30.0)
    assert 0 < few.n_kept == len(few.indices_) <= few.n_trees_
    assert few.gap_ <= 1e-2
    assert (few.weights_ > 0).all()
    h = class_outputs(model, X)[few.indices_]
    total = np.tensordot(few.weights_, h, axes=1)
    scores = total[:, 1] - total[:, 0] + few.intercept_[0] if k == 2 else total + few.intercept_
    np.testing.assert_allclose(few.decision_function(X), scores, atol=1e-9)
    chosen = scores > 0 if k == 2 else scores.argmax(axis=1)
    assert (few.predict(X) == model.classes_[chosen.astype(int)]).all()
    again = pickle.loads(pickle.dumps(few))
    assert (again.decision_function(X) == few.decision_function(X)).all()
    assert len(again._trees.members) == few.n_kept  # the others are not stored


@pytest.mark.parametrize("kind", ["forest", "bagging"])
def test_out_of_bag_rows_are_those_that_a_tree_has_not_seen(kind):
    X, y = data(3)
    model = clone(KINDS[kind]).set_params(oob_score=True, n_estimators=40).fit(X, y)
    few = sw.thin(model, X, y, C=15.0, tol=1e-9, oob=True)
    outside = np.ones((40, len(X)), bool)
    for row, drawn in zip(outside, model.estimators_samples_, strict=True):
        row[drawn] = False
    share = outside * (40 / outside.sum(axis=0))
    h = class_outputs(model, X)
    # With equal weights the program sees the ensemble's own out-of-bag decision.
    own = (h * share[:, :, None]).mean(axis=0)
    np.testing.assert_allclose(own, model.oob_decision_function_, atol=1e-12)
    places = np.searchsorted(model.classes_, y)
    optimum = full_program(h, places, 1.0 - np.eye(3), np.ones(len(X)), 15.0, share)
    assert few.value_ == pytest.approx(optimum, rel=1e-7)


def test_what_a_mistake_costs_is_the_taxonomys():
    model, (X, y) = fitted("forest", 3), data(3)
    few = sw.thin(model, X[90:], y[90:], C=9.0, tol=1e-9, taxonomy=[["a"], ["b", "c"]])
    cost = np.array([[0.0, 2, 2], [2, 0, 1], [2, 1, 0]])
    places = np.searchsorted(model.classes_, y[90:])
    optimum = full_program(class_outputs(model, X[90:]), places, cost, np.ones(60), 9.0)
    assert few.value_ == pytest.approx(optimum, rel=1e-7)


def test_weights_are_repeated_rows():
    model, (X, y) = fitted("gradient", 3), data(3)
    X, y = X[90:], y[90:]
    count = np.arange(len(y)) % 3
    one = sw.thin(model, X, y, C=20.0, tol=1e-9, sample_weight=count)
    many = sw.thin(model, np.repeat(X, count, axis=0), np.repeat(y, count), C=20.0, tol=1e-9)
    assert one.value_ == pytest.approx(many.value_, rel=1e-8)


def test_c_is_chosen_and_trees_are_limited():
    model, (X, y) = fitted("forest", 3), data(3)
    few = sw.thin(model, X[90:], y[90:])
    path = few.path_
    assert path["C"][path["loss"].argmin()] == few.C_
    assert set(path) == {"C", "loss", "n_kept"}
    assert (np.diff(path["C"]) > 0).all()
    again = sw.thin(model, X[90:], y[90:])
    assert (again.indices_ == few.indices_).all()
    assert (again.weights_ == few.weights_).all()
    whole = sw.thin(model, X[90:], y[90:], C=50.0)
    two = sw.thin(model, X[90:], y[90:], C=50.0, max_trees=2)
    assert 0 < two.n_kept <= 2 < whole.n_kept
    assert two.path_ == {}
    assert two.bound_ == whole.bound_
    assert two.value_ > whole.value_
    assert two.gap_ > whole.gap_


def test_equal_trees_and_idle_ones_are_one_column():
    X, y = data(2)
    forest = RandomForestClassifier(6, max_depth=2, random_state=0).fit(X[:90], y[:90])
    forest.estimators_ = forest.estimators_ * 2
    few = sw.thin(forest, X[90:], y[90:], C=10.0)
    assert few.n_trees_ == 12
    assert few.indices_.max() < 6


def test_rows_that_the_trees_know_are_told():
    X, y = data(3)
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="in their bags .* oob=True"):
        sw.thin(forest, X, y, C=5.0)
    sure = ExtraTreesClassifier(20, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="no tree makes a mistake"):
        sw.thin(sure, X, y, C=5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sw.thin(fitted("forest", 3), X[90:], y[90:], C=5.0)


def test_it_is_a_classifier_of_scikit_learn():
    X, y = data(3)
    few = sw.thin(FrozenEstimator(fitted("histogram", 3)), X[90:], y[90:], C=30.0)
    assert clone(few) is few
    assert few.fit(X, y) is few
    assert few.score(X, y) == np.mean(few.predict(X) == y)
    shares = CalibratedClassifierCV(FrozenEstimator(few), cv=2).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    with pytest.raises(NotFittedError, match=r"sw\.thin"):
        sw.estimators.ThinnedEnsemble().predict(X)


def test_tables_sparse_rows_and_gaps():
    pandas = pytest.importorskip("pandas")
    X, y = data(3)
    table = pandas.DataFrame(X, columns=list("uvwxyz"))
    table["z"] = pandas.Categorical(np.where(X[:, 5] > 0, "up", "down"))
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    model.fit(table[:90], y[:90])
    few = sw.thin(model, table[90:], y[90:], C=50.0)
    assert few.feature_names_in_.tolist() == list("uvwxyz")
    assert few.decision_function(table).shape == (150, 3)
    sparse = sw.thin(fitted("forest", 3), csr_array(X[90:]), y[90:], C=10.0)
    dense = sw.thin(fitted("forest", 3), X[90:], y[90:], C=10.0)
    assert (sparse.weights_ == dense.weights_).all()
    gaps = np.where(X > 1.5, np.nan, X)
    forest = RandomForestClassifier(10, random_state=0).fit(gaps[:90], y[:90])
    assert sw.thin(forest, gaps[90:], y[90:], C=10.0).predict(gaps).shape == (150,)


def test_trees_of_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    for k in (2, 3):
        X, y = data(k)
        model = lightgbm.LGBMClassifier(n_estimators=6, num_leaves=4, verbose=-1).fit(
            X[:90], y[:90]
        )
        few = sw.thin(model, X[90:], y[90:], C=15.0, tol=1e-9)
        codes = np.searchsorted(model.classes_, y)
        bare = sw.thin(model.booster_, X[90:], codes[90:], C=15.0, tol=1e-9)
        h = np.zeros((6, k - (k == 2), 150, k))
        for t in range(6):
            raw = model.predict(X, raw_score=True, start_iteration=t, num_iteration=1)
            for c in range(h.shape[1]):
                h[t, c, :, 1 if k == 2 else c] = raw.reshape(150, -1)[:, c]
        h = h.reshape(-1, 150, k)
        optimum = full_program(h[:, 90:], codes[90:], 1.0 - np.eye(k), np.ones(60), 15.0)
        assert few.value_ == pytest.approx(optimum, rel=1e-7)
        assert bare.value_ == few.value_
        assert (model.classes_[bare.predict(X)] == few.predict(X)).all()
        total = np.tensordot(few.weights_, h[few.indices_], axes=1)
        scores = total[:, 1] + few.intercept_[0] if k == 2 else total + few.intercept_
        np.testing.assert_allclose(few.decision_function(X), scores, atol=1e-9)
    with pytest.raises(TypeError, match="ensemble must be a classifier"):
        sw.thin(
            lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(X, X[:, 0]).booster_, X, codes
        )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            {"ensemble": RandomForestRegressor()},
            TypeError,
            "ensemble must be a fitted .*Regressor",
        ),
        ({"ensemble": DummyClassifier()}, TypeError, "ensemble must be a fitted"),
        ({"ensemble": RandomForestClassifier}, TypeError, "got the class RandomForest"),
        ({"ensemble": RandomForestClassifier()}, NotFittedError, "ensemble must be fitted"),
        ({"y": list("abca")}, ValueError, "X and y must have the same number of rows"),
        ({"y": ["e"] * 60}, ValueError, "y must hold classes of the ensemble"),
        ({"y": ["a"] * 60}, ValueError, "y must hold two classes"),
        ({"C": "best"}, ValueError, "C must be 'auto' or a positive number"),
        ({"C": -1.0}, ValueError, "C must be positive"),
        ({"max_trees": 0}, ValueError, "max_trees must be"),
        ({"cv": 1}, ValueError, "cv must be"),
        ({"oob": "yes"}, TypeError, "oob must be"),
        ({"oob": True}, ValueError, "oob=True needs X, y as the ensemble was fitted on, 90 rows"),
    ],
)
def test_what_is_refused(change, error, words):
    X, y = data(3)
    call = {"ensemble": fitted("forest", 3), "X": X[90:], "y": y[90:], "C": 10.0} | change
    with pytest.raises(error, match=words):
        sw.thin(**call)


def test_boosting_has_no_rows_out_of_bag():
    X, y = data(3)
    with pytest.raises(ValueError, match="oob=True needs a forest or bagging with bootstrap=True"):
        sw.thin(fitted("histogram", 3), X[:90], y[:90], oob=True)


@pytest.mark.parametrize("most", [None, 2])
def test_no_time_is_an_answer_with_a_bound_that_holds(most):
    X, y = data(3)
    options = {"max_trees": most, "tol": 1e-6}
    with pytest.warns(ConvergenceWarning, match="time_limit of 0 s reached") as said:
        short = sw.thin(fitted("forest", 3), X[90:], y[90:], time_limit=0.0, **options)
    assert said[-1].filename == __file__
    long = sw.thin(fitted("forest", 3), X[90:], y[90:], C=short.C_, tol=1e-6)
    assert short.bound_ <= long.value_ <= short.value_ * (1 + 1e-9)
    assert short.n_kept <= (most or short.n_trees_)
    assert len(short.path_["C"]) == 1


def test_a_limit_that_is_not_reached_changes_nothing():
    X, y = data(3)
    a, b = (
        sw.thin(fitted("forest", 3), X[90:], y[90:], C=20.0, time_limit=limit)
        for limit in (None, 1e6)
    )
    assert np.array_equal(a.decision_function(X), b.decision_function(X))


def test_trees_that_say_nothing_are_left_out():
    X, y = np.zeros((40, 2)), np.arange(40) % 2
    forest = RandomForestClassifier(5, bootstrap=False, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="no weak learner lowers the objective") as said:
        found = sw.thin(forest, X, y, C=1.0)
    assert all(warning.filename == __file__ for warning in said)
    assert found.n_kept == 0
    assert found.predict(X).shape == (40,)
