"""Learners: one problem, one record, one certificate.

Every law runs over LEARNERS, and on problems whose minimum the reference knows.
"""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from learner_registry import (
    LEARNERS,
    SVM,
    TOLERANCE,
    Problem,
    Svm,
    assert_honest,
    each_learner,
    prices,
    problems,
)
from strategies import arrays, masks

from setwise.learning import one_slack
from setwise.learning._cutting_planes._fit import Fit
from setwise.surrogates import LovaszHinge

# --------------------------------------------------------------------------------------------- laws


@each_learner
@given(data=st.data())
def test_the_minimum_lies_between_value_and_bound(learner, data):
    """And the record is in order, whenever the fit ends."""
    problem, C = data.draw(problems()), data.draw(prices)
    tol, rounds = data.draw(st.sampled_from([0.0, 1e-3, 0.1])), data.draw(st.sampled_from([2, 40]))
    fit = learner.call(problem, C, tol=tol, max_iter=rounds)
    assert_honest(fit, problem, C, problem.least(C))
    primal, dual, seconds = fit.history.primal, fit.history.dual, fit.history.seconds
    assert len(primal) == len(dual) == len(seconds) == fit.n_iter <= rounds
    assert np.all(np.diff(primal) <= 0)
    # Where rounding lifts a bound above the minimum, the next value brings it down again.
    assert np.all(np.diff(dual) >= -1e-12 * np.maximum(1.0, primal[1:]))
    assert np.all(np.diff(seconds) >= 0)
    assert np.all(primal >= dual)
    assert (primal[-1], dual[-1]) == (fit.value, fit.bound)
    assert fit.converged == (fit.relative_gap <= tol)
    assert fit.converged or fit.n_iter == rounds
    assert not fit.interrupted


@pytest.mark.parametrize("name", LEARNERS)
@given(data=st.data())
def test_cutting_planes_reach_any_tolerance(name, data):
    problem, C = data.draw(problems()), data.draw(prices)
    fit = LEARNERS[name].call(problem, C, tol=1e-5, max_iter=1000)
    assert fit.converged
    minimum = problem.least(C)
    assert fit.value - minimum <= (1e-5 + TOLERANCE) * max(1.0, minimum)


@given(problems(), prices, st.data())
def test_nonnegative_coordinates(problem, C, data):
    sign = data.draw(masks(problem.dimension))
    fit = one_slack(problem.risk, problem.dimension, C, nonnegative=sign, max_iter=60)
    assert np.all(fit.w[sign] >= 0)
    assert_honest(fit, problem, C, problem.least(C, np.flatnonzero(sign)))


@given(problems(), prices, st.data())
def test_planes_lie_below_the_risk(problem, C, data):
    fit = one_slack(problem.risk, problem.dimension, C)
    w = data.draw(arrays(problem.dimension))
    heights = fit.planes.offsets + fit.planes.slopes @ w
    assert heights.max() <= problem.risk(w)[0] + 1e-9


@given(problems(), prices, prices)
def test_a_fit_at_another_price_is_a_start(problem, before, C):
    """Planes hold for every C: the same minimum, whatever it started from."""
    earlier = one_slack(problem.risk, problem.dimension, before)
    fit = one_slack(problem.risk, problem.dimension, C, tol=1e-4, init=earlier)
    assert fit.converged
    assert_honest(fit, problem, C, problem.least(C))


@given(problems(), st.permutations([0.05, 0.3, 1.0, 4.0, 30.0]))
def test_a_path_of_prices(problem, Cs):
    """In any order: bounds hold at every C, and the answers are those of fits from scratch."""
    fit = None
    for C in Cs:
        fit = one_slack(problem.risk, problem.dimension, C, tol=1e-4, init=fit)
        alone = one_slack(problem.risk, problem.dimension, C, tol=1e-4)
        assert fit.converged
        assert_honest(fit, problem, C, problem.least(C))
        assert fit.bound <= alone.value + 1e-9
        assert alone.bound <= fit.value + 1e-9
        assert abs(fit.value - alone.value) <= 1e-4 * max(1.0, fit.value, alone.value)


# --------------------------------------------------------------------------------- the same minimum


@each_learner
def test_hinge_losses(learner):
    fit = learner.call(SVM, 1.0, tol=1e-3)
    assert fit.converged
    assert_honest(fit, SVM, 1.0, SVM.minimum)
    assert fit.value - SVM.minimum <= 1e-3 * SVM.minimum


@each_learner
def test_lovasz_hinges_of_jaccard(learner):
    """The learner sees values and subgradients; the reference, every vertex and violator."""
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(5, 2)), random.integers(0, 2, size=(5, 3))
    hinge = LovaszHinge("jaccard")

    class Jaccard(Problem):
        def example(self, i, w):
            value, slope = hinge.value_and_gradient(Y[i], w.reshape(3, 2) @ X[i])
            return value, np.outer(slope, X[i]).ravel()

    planes = []
    for x, y in zip(X, Y, strict=True):
        table = reference.all_values(hinge.loss.set_function(y))
        slopes, offsets = reference.hinge_planes(table, case=1)
        planes.append((slopes @ np.kron(np.diag(2.0 * y - 1.0), x), offsets))
    problem = Jaccard(planes, 6)
    fit = learner.call(problem, 2.0, tol=1e-3)
    assert fit.converged
    assert_honest(fit, problem, 2.0, problem.least(2.0))


@each_learner
@pytest.mark.parametrize("C", [0.1, 0.25, 4.0])
def test_one_example_in_one_dimension(learner, C):
    """1/2 w^2 + C max(0, 1 - 2 w) has its minimum at min(2 C, 1/2)."""
    problem = Problem([(np.array([[0.0], [-2.0]]), np.array([0.0, 1.0]))], 1)
    fit = learner.call(problem, C, tol=1e-9)
    assert fit.converged
    assert fit.w == pytest.approx([min(2 * C, 0.5)], abs=1e-4)


@each_learner
@pytest.mark.parametrize("dimension", [0, 1, 3])
def test_no_risk_at_all(learner, dimension):
    problem = Problem([(np.zeros((1, dimension)), np.zeros(1))] * 2, dimension)
    fit = learner.call(problem, 5.0, tol=0.0)
    assert (fit.value, fit.bound, fit.gap, fit.relative_gap) == (0.0, 0.0, 0.0, 0.0)
    assert fit.w.tolist() == [0.0] * dimension
    assert fit.converged
    assert fit.n_iter == 1


@each_learner
def test_no_example(learner):
    fit = learner.call(Problem([], 2), 1.0)
    assert (fit.value, fit.bound, fit.w.tolist()) == (0.0, 0.0, [0.0, 0.0])


@each_learner
def test_no_weights(learner):
    """A risk of no variable is a constant, and known."""
    problem = Problem([(np.zeros((2, 0)), np.array([0.0, 1.5]))], 0)
    fit = learner.call(problem, 2.0, tol=0.0)
    assert fit.converged
    assert (fit.w.shape, fit.value, fit.bound) == ((0,), 3.0, 3.0)


def test_every_learner_gives_the_same_record():
    fits = [learner.call(SVM, 1.0, tol=1e-3) for learner in LEARNERS.values()]
    for fit in fits:
        assert type(fit) is Fit
        assert type(fit.n_iter) is int
        assert {type(fit.value), type(fit.bound), type(fit.gap)} == {float}
        assert {type(fit.converged), type(fit.interrupted)} == {bool}
        assert fit.w.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            fit.w[0] = 1.0
        with pytest.raises(AttributeError):
            fit.value = 0.0
        assert "planes" not in repr(fit)
        assert np.array_equal(pickle.loads(pickle.dumps(fit)).w, fit.w)
    for one in fits:
        for other in fits:
            assert one.bound <= other.value


def test_the_best_weights_met_are_kept():
    """The objective is not monotone along the questions: the answer is the best of them."""
    asked = []

    def risk(w):
        asked.append(SVM.objective(w, 1.0))
        return SVM.risk(w)

    fit = one_slack(risk, SVM.dimension, tol=1e-6)
    assert len(asked) == fit.n_iter
    assert np.any(np.diff(asked) > 0)
    assert fit.value == pytest.approx(min(asked), rel=1e-12)
    np.testing.assert_allclose(fit.history.primal, np.minimum.accumulate(asked), rtol=1e-12)


def test_idle_planes_are_dropped():
    problem = Svm(n=100, d=12)
    fit = one_slack(problem.risk, problem.dimension, C=10.0, tol=1e-6)
    assert fit.n_iter > 40
    assert len(fit.planes.offsets) < fit.n_iter
    assert fit.planes.slopes.shape == (len(fit.planes.offsets), problem.dimension)
