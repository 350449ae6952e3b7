"""The logistic surrogate of the boosted classifier: its risk, its certificate, who chooses it."""

import numpy as np
import pytest
import reference
from boost_options import boost_options
from scipy.optimize import check_grad
from scipy.special import log_softmax
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

import setwise as sw
from setwise.estimators._boosting._class_risk import ClassRisk, LogisticClassRisk
from setwise.estimators._boosting._held_out import Examples

X, y = load_iris(return_X_y=True)


def problem(seed, k, m=24):
    """Few rows of two rounded features, every class among them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(m) % k
    return np.round(rng.normal(size=(m, 2)) + labels[:, None] / 2, 1), labels


def objective(model, rows, labels, C):
    """1'w + C R(f) from what the fitted model says."""
    scores = model.decision_function(rows)
    if scores.ndim == 1:
        scores = np.column_stack([-scores / 2, scores / 2])
    loss = -log_softmax(scores, axis=1)[np.arange(len(labels)), labels].mean()
    return np.abs(model.estimator_weights_).sum() + C * loss


def test_the_risk_is_the_likelihood_of_the_classes():
    rng = np.random.default_rng(0)
    labels, scores, v = rng.integers(0, 4, 9), rng.normal(size=(4, 9)), rng.random(9)
    risk = LogisticClassRisk(labels, 1.0 - np.eye(4), None, v)
    probabilities = np.exp(log_softmax(scores.T, axis=1))
    expected = log_loss(labels, probabilities, sample_weight=v, labels=range(4))
    assert risk(scores.ravel())[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_slopes_are_those_of_the_sum_over_mistakes(k):
    rng = np.random.default_rng(k)
    labels, cost = rng.integers(0, k, 7), rng.random((k, k)) + 0.1
    np.fill_diagonal(cost, 0.0)
    code = rng.normal(size=(k, 2))
    risk = LogisticClassRisk(labels, cost, code)
    point = rng.normal(size=14)
    by_class = code @ point.reshape(2, 7)
    sums = [
        1 + sum(cost[t, c] * np.exp(by_class[c, i] - by_class[t, i]) for c in range(k))
        for i, t in enumerate(labels)
    ]
    assert risk(point)[0] == pytest.approx(np.mean(np.log(sums)), rel=1e-12)
    assert check_grad(lambda f: risk(f)[0], lambda f: risk(f)[1], point) < 1e-6
    values, slopes = risk.each(point)
    assert values.mean() == pytest.approx(risk(point)[0], rel=1e-12)
    assert slopes.sum(axis=0) / 7 == pytest.approx(risk(point)[1], abs=1e-12)


def test_margins_of_large_scores_do_not_overflow():
    risk = LogisticClassRisk(np.array([0, 1]), 1.0 - np.eye(2))
    value, slope = risk(np.array([-1e4, 0.0, 1e4, 0.0]))
    assert value == pytest.approx((2e4 + np.log(2)) / 2)
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("columns", ["shared", "class"])
@pytest.mark.parametrize(("k", "C"), [(2, 8.0), (3, 20.0), (4, 60.0), (6, 200.0)])
def test_the_gap_is_the_distance_to_the_optimum_over_all_stumps(columns, k, C):
    rows, labels = problem(k, k)
    model = sw.StructBoostClassifier(
        C=C, surrogate="logistic", options=sw.learning.BoostOptions(columns=columns), tol=1e-4
    )
    model.fit(rows, labels)
    value, bound = model.history_.primal[-1], model.history_.dual[-1]
    code = np.array([[-0.5], [0.5]]) if k == 2 else np.eye(k)
    least = reference.logistic_minimum(rows, labels, code, C)
    assert model.surrogate_ == "logistic"
    assert model.certified_
    assert model.gap_ <= 1e-4
    assert value == pytest.approx(objective(model, rows, labels, C), rel=1e-9)
    assert bound <= least * (1 + 1e-7)
    assert least * (1 - 1e-7) <= value <= least * (1 + 2e-4)


def test_every_round_is_a_bracket():
    model = sw.StructBoostClassifier(C=50.0, surrogate="logistic").fit(X[::3], y[::3])
    least = reference.logistic_minimum(X[::3], y[::3], np.eye(3), 50.0)
    assert (model.history_.dual <= least * (1 + 1e-7)).all()
    assert (model.history_.primal >= least * (1 - 1e-7)).all()
    assert (np.diff(model.history_.primal) <= 1e-9).all()


@pytest.mark.parametrize("options", [{"taxonomy": [[0], [1, 2]]}, {"label_form": "augmented"}])
def test_taxonomies_and_the_augmented_form_reach_their_gap(options):
    """The second has one segment, and is cut by planes alone."""
    model = sw.StructBoostClassifier(
        C=20.0, surrogate="logistic", tol=1e-2, **boost_options(**options)
    )
    model.fit(X[::3], y[::3])
    value = (
        np.abs(model.estimator_weights_).sum()
        + 20.0
        * model._risk(Examples(X[::3], y[::3], np.ones(50)))(
            model._segment_scores(model._rows(X[::3])).ravel()
        )[0]
    )
    assert model.gap_ <= 1e-2
    assert model.history_.primal[-1] == pytest.approx(value, rel=1e-9)


def test_rows_held_out_choose_the_surrogate_where_they_choose_c():
    rows, labels = problem(1, 3, 60)
    auto = sw.StructBoostClassifier(random_state=0, tol=1e-2).fit(rows, labels)
    kinds = {
        kind: sw.StructBoostClassifier(random_state=0, tol=1e-2, surrogate=kind).fit(rows, labels)
        for kind in ("logistic", "hinge")
    }
    scores = {kind: max(model.C_scores_.values()) for kind, model in kinds.items()}
    assert auto.surrogate_ == max(scores, key=scores.get)  # the first of equal ones
    chosen = kinds[auto.surrogate_]
    assert (auto.C_, auto.C_scores_) == (chosen.C_, chosen.C_scores_)
    assert np.array_equal(auto.decision_function(rows), chosen.decision_function(rows))


def test_a_given_c_is_that_of_the_hinge():
    model = sw.StructBoostClassifier(C=20.0).fit(X, y)
    hinge = sw.StructBoostClassifier(C=20.0, surrogate="hinge").fit(X, y)
    assert model.surrogate_ == "hinge"
    assert np.array_equal(model.decision_function(X), hinge.decision_function(X))


def test_the_loss_of_rows_held_out_is_that_of_the_surrogate():
    held = X[1::3], y[1::3]
    model = sw.StructBoostClassifier(C=30.0, surrogate="logistic")
    model.fit(X[::3], y[::3], eval_set=held)
    shares = np.exp(log_softmax(model.decision_function(held[0]), axis=1))
    least = model.evals_result_["valid_0"]["loss"][model.best_iteration_ - 1]
    assert least == pytest.approx(log_loss(held[1], shares), rel=1e-9)


def test_few_scores_have_a_slack_each_and_the_same_optimum():
    values = [
        sw.StructBoostClassifier(C=20.0, options=sw.learning.BoostOptions(slack=slack), tol=1e-6)
        .fit(X, y)
        .history_.primal[-1]
        for slack in ("auto", "example", "one")
    ]
    assert values[0] == values[1]
    assert values == pytest.approx([values[0]] * 3, rel=1e-5)


def test_an_unknown_surrogate():
    with pytest.raises(ValueError, match="surrogate must be one of"):
        sw.StructBoostClassifier(surrogate="exponential").fit(X, y)
    assert ClassRisk.temperature is None


def test_ends_where_the_linear_program_does_not_see_the_last_planes():
    """C times what they are violated by is much, and itself below the accuracy of the program."""
    points = np.round(np.random.default_rng(8).normal(size=(8, 3)), 1)
    model = sw.StructBoostClassifier(
        "step", C=1e8, surrogate="logistic", n_estimators=20, tol=1e-4, time_limit=20.0
    )
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(points, np.arange(8) % 2)
    assert "time_limit" not in str(caught[0].message)
    assert model.gap_ < 2e-4
