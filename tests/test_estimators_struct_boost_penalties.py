"""Weights of a learner by their norm, and steps: the optimum over all, and who may have it."""

import itertools
import warnings

import numpy as np
import pytest
import reference
from boost_options import boost_options
from numpy.linalg import norm
from scipy.special import log_softmax
from sklearn.datasets import load_iris

import setwise as sw
from setwise.estimators._boosting._class_risk import ClassRisk, LogisticClassRisk
from setwise.learning import StepSearch, StumpSearch, struct_boost
from setwise.learning._weak_learners._steps import Step

X, y = load_iris(return_X_y=True)


def problem(seed, k, m=24, missing=False):
    """Few rows of two rounded features, every class among them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(m) % k
    rows = np.round(rng.normal(size=(m, 2)) + labels[:, None] / 2, 1)
    if missing:
        rows[rng.random(rows.shape) < 0.2] = np.nan
    return rows, labels


def all_steps(rows, shares, *, balanced=True):
    """Every step there is, by enumeration: the constant, and each way to cut each feature."""
    steps = [np.ones(len(rows))]
    for column in rows.T:
        gone = np.isnan(column)
        values = np.unique(column[~gone])
        above = [column > v for v in values[:-1]]  # NaN lies below
        above += [a | gone for a in above] + [gone]
        for side in above:
            if side.any() and not side.all():
                p = shares[side].sum() if balanced else 0.5
                root = np.sqrt(2 * np.sqrt(p * (1 - p))) if balanced else 1.0
                steps.append(np.where(side, 2 * (1 - p), -2 * p).astype(np.float32) / root)
    return np.array(steps)


def objective(model, rows, labels, C):
    scores = model.decision_function(rows)
    loss = -log_softmax(scores, axis=1)[np.arange(len(labels)), labels].mean()
    return norm(model.estimator_weights_, axis=1).sum() + C * loss


@pytest.mark.parametrize("estimator", ["step", "stump"])
@pytest.mark.parametrize(("k", "C"), [(3, 20.0), (4, 60.0), (6, 200.0)])
def test_the_gap_is_the_distance_to_the_optimum_over_all_learners(estimator, k, C):
    rows, labels = problem(k, k, missing=k == 4)
    model = sw.StructBoostClassifier(
        estimator, C=C, options=sw.learning.BoostOptions(penalty="group"), tol=1e-4
    ).fit(rows, labels)
    value, bound = model.history_.primal[-1], model.history_.dual[-1]
    shares = np.full(len(rows), 1 / len(rows))
    columns = all_steps(rows, shares, balanced=estimator == "step")
    least = reference.group_minimum(columns, labels, k, C)
    assert model.surrogate_ == "logistic"
    assert model.certified_
    assert model.gap_ <= 1e-4
    assert value == pytest.approx(objective(model, rows, labels, C), rel=1e-9)
    assert bound <= least * (1 + 1e-6)
    assert least * (1 - 1e-6) <= value <= least * (1 + 2e-4)


def test_every_round_is_a_bracket():
    model = sw.StructBoostClassifier("step", C=50.0).fit(X[::3], y[::3])
    columns = all_steps(X[::3], np.full(50, 0.02))
    least = reference.group_minimum(columns, y[::3], 3, 50.0)
    assert (model.history_.dual <= least * (1 + 1e-6)).all()
    assert (model.history_.primal >= least * (1 - 1e-6)).all()
    assert (np.diff(model.history_.primal) <= 1e-9).all()


def test_stages_are_the_fits_with_fewer_learners():
    long, short = (
        sw.StructBoostClassifier(
            "step", C=80.0, n_estimators=n, options=sw.learning.BoostOptions(columns_per_round=1)
        )
        for n in (12, 6)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        long.fit(X, y), short.fit(X, y)
    stage = long.stages_[[5]].toarray().reshape(12, 3)
    assert np.array_equal(stage[:6], short.estimator_weights_)
    assert not stage[6:].any()


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_segments", [1, 3, 5])
@pytest.mark.parametrize("levels", ["balanced", "sign"])
def test_the_search_finds_the_largest_norm_of_all_steps(missing, n_segments, levels):
    for seed in range(20):
        rows, _ = problem(seed, 3, 15, missing=missing)
        rng = np.random.default_rng(seed)
        weights, v = rng.normal(size=(n_segments, 15)), rng.integers(1, 4, 15).astype(float)
        search = StepSearch(rows, 2, levels=levels, sample_weight=v)
        every = all_steps(rows, v / v.sum(), balanced=levels == "balanced")
        found = search(weights)
        gains = [norm(weights @ column.response) for column in found]
        assert gains[0] == pytest.approx(norm(every @ weights.T, axis=1).max(), rel=1e-6)
        assert gains == sorted(gains, reverse=True)
        for column in found:
            assert np.array_equal(column.learner.predict(rows), column.response)
            if n_segments == 1:
                assert weights[0] @ column.response >= 0


def test_balanced_levels_have_mean_zero_and_the_root_of_the_deviation():
    rng = np.random.default_rng(0)
    rows, v = rng.normal(size=(40, 3)), rng.random(40)
    shares = v / v.sum()
    for seed in range(10):
        weights = np.random.default_rng(seed).normal(size=(3, 40))
        response = StepSearch(rows, sample_weight=v)(weights)[0].response
        if len(np.unique(response)) == 2:
            assert shares @ response == pytest.approx(0.0, abs=1e-6)
            deviation = np.sqrt(shares @ response**2)
            p = shares[response > 0].sum()
            assert deviation == pytest.approx(np.sqrt(2 * np.sqrt(p * (1 - p))), rel=1e-6)


def test_repeated_rows_are_weights_and_sparse_rows_are_dense():
    from scipy.sparse import csr_array

    rows = np.round(np.maximum(np.random.default_rng(1).normal(size=(30, 3)), 0), 1)
    labels, v = np.arange(30) % 3, 1 + np.arange(30) % 2
    model = sw.StructBoostClassifier("step", C=40.0, tol=1e-3)
    whole = model.fit(rows, labels, sample_weight=v).decision_function(rows)
    repeated = model.fit(np.repeat(rows, v, axis=0), np.repeat(labels, v)).decision_function(rows)
    assert repeated == pytest.approx(whole, abs=1e-9)
    sparse = model.fit(csr_array(rows), labels, sample_weight=v).decision_function(csr_array(rows))
    assert np.array_equal(sparse, whole)


def test_a_learner_has_weights_for_all_classes():
    rows, labels = problem(0, 6, 120)
    l1, group = (
        sw.StructBoostClassifier(
            C=60.0, surrogate="logistic", options=sw.learning.BoostOptions(penalty=p), tol=1e-2
        ).fit(rows, labels)
        for p in ("l1", "group")
    )
    used = [np.count_nonzero(m.estimator_weights_, axis=1) for m in (l1, group)]
    assert set(used[1].tolist()) <= {0, 6}
    assert used[0].mean() < 4


def test_one_score_has_one_weight_a_learner():
    rows, labels = problem(3, 2, 40)
    for surrogate, estimator in itertools.product(("hinge", "logistic"), ("step", "stump")):
        fits = [
            sw.StructBoostClassifier(
                estimator, C=10.0, surrogate=surrogate, options=sw.learning.BoostOptions(penalty=p)
            ).fit(rows, labels)
            for p in ("l1", "group")
        ]
        assert fits[0].gap_ <= 1e-3
        assert np.array_equal(*(fit.decision_function(rows) for fit in fits))


def test_a_search_that_misses_proves_nothing():
    model = sw.StructBoostClassifier(
        "perceptron", C=20.0, options=sw.learning.BoostOptions(penalty="group"), tol=1e-2
    ).fit(X, y)
    assert not model.certified_
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l2"}, "penalty must be"),
        ({"estimator": "step", "penalty": "l1"}, "penalty must be 'auto' or 'group'"),
        ({"estimator": "step", "surrogate": "hinge"}, "surrogate must be 'auto' or 'logistic'"),
        ({"penalty": "group", "columns": "class"}, "columns must be 'shared'"),
        ({"penalty": "group", "categorical_features": [0]}, "categorical_features must be None"),
    ],
)
def test_what_cannot_be_is_said(options, message):
    with pytest.raises(ValueError, match=message):
        sw.StructBoostClassifier(C=10.0, **boost_options(**options)).fit(X, y)


def test_struct_boost_says_what_a_group_needs():
    hinge, smooth = (kind(y, 1 - np.eye(3)) for kind in (ClassRisk, LogisticClassRisk))
    with pytest.raises(ValueError, match="columns='shared'"):
        struct_boost(smooth, StepSearch(X), penalty="group")
    with pytest.raises(TypeError, match="temperature"):
        struct_boost(hinge, StepSearch(X), columns="shared", penalty="group")

    fit = struct_boost(smooth, StumpSearch(X), columns="shared", penalty="group", tol=0.1)
    assert not fit.certified  # it looks at one class at a time

    for columns in ("shared", "class"):  # the largest norm is not the largest sum of one class
        with pytest.raises(ValueError, match="penalty must be 'group' for a search"):
            struct_boost(smooth, StepSearch(X), columns=columns)

    class Thirds(StumpSearch):
        def __call__(self, weights):
            column = super().__call__(weights)[0]
            return [sw.learning.Column(column.learner, 0, column.response / 3)]

    with pytest.raises(ValueError, match="single precision"):
        struct_boost(smooth, Thirds(X), 100.0, columns="shared", penalty="group")


def test_a_step_says_its_levels():
    step = Step(0, 0.5, low=-1.0, high=3.0, missing=2.0)
    assert step.predict([[0.0], [1.0], [np.nan]]).tolist() == [-1.0, 3.0, 2.0]
    assert step.importances(2).tolist() == [1.0, 0.0]
    assert Step(0, -np.inf, 1.0, 1.0, 1.0).importances(2).tolist() == [0.0, 0.0]
    assert Step(0, -np.inf, 1.0, 1.0, -1.0).importances(1).tolist() == [1.0]
