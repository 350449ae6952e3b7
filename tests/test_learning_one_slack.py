"""One slack: risks below zero, coordinates that are not negative, starts from an earlier fit."""

import pickle

import numpy as np
import pytest
from learner_registry import SVM, Problem, assert_honest, each_learner

from setwise.learning import one_slack

# -------------------------------------------------------------------------------------------- risks


def test_a_risk_that_is_negative_somewhere():
    """<a, w> + b: the minimum is at w = -C a, and no number is below the risk."""
    slope, C = np.array([1.0, -2.0]), 3.0
    fit = one_slack(lambda w: (float(slope @ w) - 1.0, slope), 2, C, least_risk=None, tol=1e-9)
    assert fit.converged
    assert fit.n_iter == 2  # one plane is the risk itself
    np.testing.assert_allclose(fit.w, -C * slope)
    assert fit.value == pytest.approx(-C - 0.5 * C * C * 5.0)


def test_a_least_risk_above_zero_is_a_plane_for_nothing():
    """risk = 7 + |w - 1|: with 7 known the bound is 7 C from the start."""

    def risk(w):
        return 7.0 + abs(w[0] - 1.0), np.sign(w - 1.0)

    told = one_slack(risk, 1, C=10.0, least_risk=7.0, tol=1e-6)
    untold = one_slack(risk, 1, C=10.0, tol=1e-6)
    assert told.value == pytest.approx(70.5, rel=1e-6)
    assert untold.value == pytest.approx(70.5, rel=1e-6)
    assert told.history.dual[0] >= 70.0 - 1e-6
    assert np.all(told.planes.offsets + told.planes.slopes[:, 0] * 1.0 <= 7.0 + 1e-9)


def test_nonnegative_coordinates_meet_the_conditions_of_karush_kuhn_and_tucker():
    """risk = sum |w_j - t_j| and C = 1: each w_j is t_j cut off at 0 and C."""
    target = np.array([-2.0, -0.5, 0.0, 0.5, 3.0])

    def risk(w):
        return float(np.abs(w - target).sum()), np.sign(w - target)

    fit = one_slack(risk, 5, nonnegative=[0, 1, 2, 3, 4], tol=1e-6, max_iter=2000)
    np.testing.assert_allclose(fit.w, [0.0, 0.0, 0.0, 0.5, 1.0], atol=3e-3)
    free = one_slack(risk, 5, tol=1e-6, max_iter=2000)
    np.testing.assert_allclose(free.w, [-1.0, -0.5, 0.0, 0.5, 1.0], atol=3e-3)
    some = one_slack(risk, 5, nonnegative=target < -1, tol=1e-6, max_iter=2000)
    np.testing.assert_allclose(some.w, [0.0, -0.5, 0.0, 0.5, 1.0], atol=3e-3)


def test_nonnegative_coordinates_at_a_high_price():
    """1/2 |w|^2 + C max(0, 2 - 2 w_0 + w_1, 2 w_1 - w_0) has its minimum at (1, 0)."""
    slopes, offsets = np.array([[0.0, 0.0], [-2.0, 1.0], [-1.0, 2.0]]), np.array([0.0, 2.0, 0.0])
    problem = Problem([(slopes, offsets)], 2)
    assert problem.least(1000.0, [0, 1]) == pytest.approx(0.5)
    fit = one_slack(problem.risk, 2, C=1000.0, nonnegative=[0, 1], max_iter=50)
    assert fit.converged
    assert fit.value == pytest.approx(0.5, abs=1e-3)


def test_a_warm_start_with_other_signs():
    """|w + 1| has its minimum at -1; where w may not be negative, at 0."""

    def risk(w):
        return abs(w[0] + 1.0), np.sign(w + 1.0)

    free = one_slack(risk, 1, C=2.0)
    fit = one_slack(risk, 1, C=2.0, nonnegative=[0], init=free)
    assert fit.w[0] >= 0.0
    assert fit.value == pytest.approx(2.0)


# -------------------------------------------------------------------------------------- warm starts


def test_a_warm_start_takes_fewer_rounds():
    earlier = one_slack(SVM.risk, SVM.dimension, C=5.0, tol=1e-6)
    cold = one_slack(SVM.risk, SVM.dimension, C=6.0, tol=1e-6)
    warm = one_slack(SVM.risk, SVM.dimension, C=6.0, tol=1e-6, init=earlier)
    assert warm.n_iter < cold.n_iter
    assert warm.value == pytest.approx(cold.value, rel=2e-6)
    assert warm.converged


def test_a_warm_start_from_the_same_problem_is_done_at_once():
    earlier = one_slack(SVM.risk, SVM.dimension, tol=1e-4)
    again = one_slack(SVM.risk, SVM.dimension, tol=1e-4, init=earlier)
    assert again.n_iter == 1
    assert again.value == pytest.approx(earlier.value, rel=1e-12)
    assert again.bound >= earlier.bound - 1e-9 * earlier.value


@each_learner
def test_a_warm_start_from_any_learner(learner):
    earlier = learner.call(SVM, 1.0, tol=1e-2)
    fit = one_slack(SVM.risk, SVM.dimension, tol=1e-4, init=earlier)
    assert fit.history.primal[0] <= earlier.value * (1 + 1e-12)
    assert_honest(fit, SVM, 1.0, SVM.minimum)


def test_an_interrupted_fit_can_be_continued():
    stopped = one_slack(SVM.risk, SVM.dimension, tol=1e-6, callback=lambda p: p.n_iter == 5)
    assert stopped.interrupted
    fit = one_slack(SVM.risk, SVM.dimension, tol=1e-6, init=stopped)
    assert fit.converged
    assert_honest(fit, SVM, 1.0, SVM.minimum)


def test_a_warm_start_does_not_change_the_earlier_fit():
    earlier = one_slack(SVM.risk, SVM.dimension)
    copy = pickle.loads(pickle.dumps(earlier))
    one_slack(SVM.risk, SVM.dimension, C=7.0, init=earlier)
    assert np.array_equal(earlier.w, copy.w)
    assert np.array_equal(earlier.planes.slopes, copy.planes.slopes)
    assert np.array_equal(earlier.planes.offsets, copy.planes.offsets)
