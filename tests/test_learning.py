"""Learners: one problem, one record, one certificate.

Every law runs over LEARNERS, on risks that are sums of maxima of planes: there the minimum is a
small quadratic program, which tests/helpers/reference.py solves by other means.
"""

import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, masks

from setwise.learning import (
    Fit,
    Progress,
    Serial,
    Threads,
    block_frank_wolfe,
    n_slack,
    one_slack,
)
from setwise.surrogates import LovaszHinge

# What the reference knows its minimum to.
TOLERANCE = 2e-6


@dataclass(frozen=True, eq=False)
class Problem:
    """risk(w) = sum over i of max over k of (b_ik + <a_ik, w>)."""

    planes: list[reference.Planes]
    dimension: int

    @property
    def n(self):
        return len(self.planes)

    def example(self, i, w):
        slopes, offsets = self.planes[i]
        heights = offsets + slopes @ w
        k = heights.argmax()
        return float(heights[k]), slopes[k]

    def risk(self, w):
        answers = [self.example(i, w) for i in range(self.n)]
        slope = np.sum([slope for _, slope in answers], axis=0) + np.zeros(self.dimension)
        return float(sum(value for value, _ in answers)), slope

    def objective(self, w, C):
        return 0.5 * float(w @ w) + C * self.risk(w)[0]

    def least(self, C, nonnegative=()):
        return reference.least_objective(self.planes, C, nonnegative)


@dataclass(frozen=True)
class Learner:
    call: Callable[..., Fit]
    """(problem, C, **options) -> Fit."""
    calls_a_round: Callable[[Problem], int]
    """How often a round asks the oracle at the least."""
    exact: bool = True
    """Whether it comes as close to the minimum as one likes in a few rounds."""


LEARNERS = {
    "one slack": Learner(lambda p, C, **o: one_slack(p.risk, p.dimension, C, **o), lambda p: 1),
    "n slack": Learner(
        lambda p, C, **o: n_slack(p.example, p.n, p.dimension, C, **o), lambda p: p.n
    ),
    "block Frank-Wolfe": Learner(
        lambda p, C, **o: block_frank_wolfe(p.example, p.n, p.dimension, C, **{"rng": 0, **o}),
        lambda p: 6 * p.n,
        exact=False,
    ),
}
each_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
prices = st.sampled_from([0.1, 1.0, 10.0])


@st.composite
def problems(draw, least_n=0, least_dimension=0):
    """Risks that are nowhere negative: the plane 0 is one of each example's."""
    d = draw(st.integers(least_dimension, 3))
    planes = []
    for _ in range(draw(st.integers(least_n, 3))):
        k = draw(st.integers(0, 3))
        slopes = draw(arrays(k * d, -2.0, 2.0)).reshape(k, d)
        planes.append(
            (np.vstack([np.zeros(d), slopes]), np.append(0.0, draw(arrays(k, -2.0, 2.0))))
        )
    return Problem(planes, d)


class Svm(Problem):
    """Hinges of several pieces at noisy points: large enough for some dozens of rounds."""

    def __init__(self, n=40, d=4, seed=0):
        random = np.random.default_rng(seed)
        X = random.normal(size=(n, d))
        y = np.sign(X.sum(axis=1) + 2.0 * random.normal(size=n))
        pieces, offsets = np.array([0.0, 0.3, 1.0, 3.0]), np.array([0.0, 0.5, 1.0, 0.2])
        planes = [(np.outer(pieces, row), offsets) for row in -y[:, None] * X]
        super().__init__(planes, d)

    @cached_property
    def minimum(self):
        return self.least(1.0)


SVM = Svm()


def assert_honest(fit, problem, C, minimum):
    """The value is the objective of the weights, and the minimum lies between value and bound."""
    slack = TOLERANCE * max(1.0, minimum)
    assert fit.w.shape == (problem.dimension,)
    assert fit.value == pytest.approx(problem.objective(fit.w, C), rel=1e-12, abs=1e-12)
    assert fit.bound - slack <= minimum <= fit.value + slack
    assert fit.gap == fit.value - fit.bound >= 0
    gain = C * problem.risk(np.zeros(problem.dimension))[0] - fit.bound
    assert fit.room == pytest.approx(min(gain, fit.value), rel=1e-12, abs=1e-12)
    assert fit.relative_gap == (0.0 if fit.gap <= fit.rounding else fit.gap / fit.room)
    assert 0.0 <= fit.relative_gap <= 1.0


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


@pytest.mark.parametrize("name", [name for name, learner in LEARNERS.items() if learner.exact])
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


@pytest.mark.parametrize("rng", [3, np.random.default_rng(3)])
def test_the_order_of_the_examples_is_an_argument(rng):
    def fit(rng):
        return LEARNERS["block Frank-Wolfe"].call(SVM, 1.0, max_iter=3, rng=rng)

    given = fit(rng)
    assert np.array_equal(given.w, fit(3).w)
    assert not np.array_equal(given.w, fit(4).w)


# --------------------------------------------------------------------------------- risks, one slack


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


# ----------------------------------------------------------------------------------------- stopping


@each_learner
@pytest.mark.parametrize("rounds", [1, 2])
def test_max_iter(learner, rounds):
    fit = learner.call(SVM, 1.0, tol=0.0, max_iter=rounds)
    assert fit.n_iter == rounds
    assert not fit.converged
    assert not fit.interrupted
    assert_honest(fit, SVM, 1.0, SVM.minimum)


@each_learner
def test_the_callback_sees_every_round(learner):
    seen = []
    fit = learner.call(SVM, 1.0, tol=1e-2, callback=seen.append)
    assert all(type(progress) is Progress for progress in seen)
    assert [progress.n_iter for progress in seen] == list(range(1, fit.n_iter + 1))
    assert [progress.value for progress in seen] == fit.history.primal.tolist()
    assert [progress.bound for progress in seen] == fit.history.dual.tolist()
    assert [progress.seconds for progress in seen] == fit.history.seconds.tolist()
    assert seen[-1].relative_gap == fit.relative_gap
    assert not fit.interrupted


@each_learner
def test_a_callback_that_returns_true_ends_the_fit(learner):
    fit = learner.call(SVM, 1.0, tol=0.0, callback=lambda progress: progress.n_iter == 2)
    assert fit.n_iter == 2
    assert fit.interrupted
    assert not fit.converged
    assert_honest(fit, SVM, 1.0, SVM.minimum)


@each_learner
def test_a_callback_that_stops_what_is_done_does_not_interrupt(learner):
    fit = learner.call(SVM, 1.0, tol=0.1, callback=lambda progress: progress.relative_gap <= 0.1)
    assert fit.converged
    assert not fit.interrupted


class Interrupted(Problem):
    """Ctrl-C arrives at the oracle's call of this number, the first being 0."""

    def __init__(self, problem, at):
        super().__init__(problem.planes, problem.dimension)
        object.__setattr__(self, "calls", 0)
        object.__setattr__(self, "at", at)

    def _count(self):
        object.__setattr__(self, "calls", self.calls + 1)
        if self.calls > self.at:
            raise KeyboardInterrupt

    def example(self, i, w):
        self._count()
        return super().example(i, w)

    def risk(self, w):
        self._count()
        return SVM.risk(w)


@each_learner
def test_control_c_leaves_the_best_model_so_far(learner):
    at = 2 * learner.calls_a_round(SVM)
    fit = learner.call(Interrupted(SVM, at), 1.0, tol=0.0)
    assert fit.interrupted
    assert not fit.converged
    assert fit.n_iter >= 2
    assert (fit.value, fit.bound) == (fit.history.primal[-1], fit.history.dual[-1])
    assert fit.value < fit.history.primal[0]
    assert_honest(fit, SVM, 1.0, SVM.minimum)


@each_learner
def test_control_c_in_the_midst_of_a_round(learner):
    at = 2 * learner.calls_a_round(SVM) + learner.calls_a_round(SVM) // 2
    fit = learner.call(Interrupted(SVM, at), 1.0, tol=0.0)
    assert fit.interrupted
    assert_honest(fit, SVM, 1.0, SVM.minimum)


@each_learner
def test_control_c_in_the_callback(learner):
    """A progress bar is drawn there: it is as likely a place as any."""

    def callback(progress):
        if progress.n_iter == 3:
            raise KeyboardInterrupt

    fit = learner.call(SVM, 1.0, tol=0.0, callback=callback)
    assert fit.interrupted
    assert fit.n_iter == 3
    assert_honest(fit, SVM, 1.0, SVM.minimum)


@each_learner
def test_control_c_before_there_is_a_model(learner):
    with pytest.raises(KeyboardInterrupt):
        learner.call(Interrupted(SVM, 0), 1.0)


@each_learner
def test_other_errors_of_the_oracle_pass_through(learner):
    class Broken(Problem):
        def example(self, i, w):
            raise RuntimeError("the oracle is broken")

    with pytest.raises(RuntimeError, match="the oracle is broken"):
        learner.call(Broken(SVM.planes, SVM.dimension), 1.0)


# ---------------------------------------------------------------------------------------- bad input

OPTIONS = [
    ({"C": 0.0}, ValueError, "C must be positive, got 0"),
    ({"C": -1.0}, ValueError, "C must be positive, got -1"),
    ({"C": np.nan}, ValueError, "C must be finite, got nan"),
    ({"C": np.inf}, ValueError, "C must be finite, got inf"),
    ({"C": "1"}, TypeError, "C must be a real number, got str"),
    ({"tol": -1e-3}, ValueError, "tol must not be negative, got -0.001"),
    ({"tol": np.nan}, ValueError, "tol must be finite, got nan"),
    ({"tol": None}, TypeError, "tol must be a real number, got NoneType"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1, got 0"),
    ({"max_iter": 10.0}, TypeError, "max_iter must be an integer, got float"),
    ({"max_iter": True}, TypeError, "max_iter must be an integer, got bool"),
]


@each_learner
@pytest.mark.parametrize(("options", "error", "sentence"), OPTIONS)
def test_bad_options(learner, options, error, sentence):
    with pytest.raises(error, match=sentence):
        learner.call(SVM, **{"C": 1.0, **options})


def never(*arguments):
    raise AssertionError("bad input is refused before any work is done")


BAD = [
    (lambda: one_slack(never, -1), ValueError, "dimension must be at least 0, got -1"),
    (lambda: one_slack(never, 2.0), TypeError, "dimension must be an integer, got float"),
    (lambda: n_slack(never, 1, -1), ValueError, "dimension must be at least 0, got -1"),
    (lambda: n_slack(never, -1, 1), ValueError, "n must be at least 0, got -1"),
    (lambda: n_slack(never, 1.5, 1), TypeError, "n must be an integer, got float"),
    (lambda: block_frank_wolfe(never, 1, -1), ValueError, "dimension must be at least 0, got -1"),
    (lambda: block_frank_wolfe(never, -1, 1), ValueError, "n must be at least 0, got -1"),
    (lambda: block_frank_wolfe(never, 1, 1, passes=0), ValueError, "passes must be at least 1"),
    (
        lambda: block_frank_wolfe(never, 1, 1, rng="a"),
        TypeError,
        "rng must be None, an integer or a numpy generator, got str",
    ),
    (
        lambda: one_slack(never, 2, nonnegative=[2]),
        ValueError,
        "nonnegative must lie between 0 and 1, got 2",
    ),
    (
        lambda: one_slack(never, 2, nonnegative=[1, 1]),
        ValueError,
        "nonnegative must hold distinct elements, got 1 more than once",
    ),
    (
        lambda: one_slack(never, 2, nonnegative=[True]),
        ValueError,
        r"nonnegative must have shape \(2,\) when boolean, got \(1,\)",
    ),
    (lambda: one_slack(never, 2, least_risk=np.nan), ValueError, "least_risk must be finite"),
    (lambda: one_slack(never, 2, least_risk="0"), TypeError, "least_risk must be a real number"),
    (
        lambda: one_slack(never, 2, init=one_slack(SVM.risk, SVM.dimension, max_iter=1)),
        ValueError,
        "init must have 2 weights, as this problem has, got 4",
    ),
    (lambda: Threads(0), ValueError, "n_jobs must not be 0, got 0"),
    (lambda: Threads(1.0), TypeError, "n_jobs must be an integer or None, got float"),
]


@pytest.mark.parametrize(("call", "error", "sentence"), BAD)
def test_bad_input(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


BAD_ORACLES = [
    (np.nan, [0.0, 0.0], "oracle must return finite numbers"),
    (np.inf, [0.0, 0.0], "oracle must return finite numbers"),
    (1.0, [np.nan, 0.0], "oracle must return finite numbers"),
    (1.0, [0.0, 0.0, 0.0], r"oracle must return a subgradient of shape \(2,\), got \(3,\)"),
    (1.0, [[0.0, 0.0]], r"oracle must return a subgradient of shape \(2,\), got \(1, 2\)"),
    (-1.0, [0.0, 0.0], "oracle must not return a risk below 0"),
]


@each_learner
@pytest.mark.parametrize(("risk", "slope", "sentence"), BAD_ORACLES)
def test_bad_oracles(learner, risk, slope, sentence):
    """Never a wrong bound in silence: a risk below the least one has planes above it."""

    class Bad(Problem):
        def example(self, i, w):
            return risk, np.array(slope)

        def risk(self, w):
            return self.example(0, w)

    with pytest.raises(ValueError, match=sentence):
        learner.call(Bad([None], 2), 1.0, max_iter=3)


# ---------------------------------------------------------------------------------------- executors


@pytest.fixture(params=[Serial, lambda: Threads(1), lambda: Threads(3)])
def executor(request):
    made = request.param()
    yield made
    made.close()


def test_answers_come_in_the_order_of_the_shards(executor):
    assert executor.map(lambda k: k * k, range(20)) == [k * k for k in range(20)]
    assert executor.map(abs, []) == []
    assert executor.map(abs, iter([-1, 1])) == [1, 1]


def test_an_executor_passes_errors_on(executor):
    with pytest.raises(ZeroDivisionError):
        executor.map(lambda k: 1 // k, [1, 0, 1])
    assert executor.map(abs, [-3]) == [3]


def test_threads_run_side_by_side_and_keep_the_order():
    """The first shard waits for the second: on one thread it would wait for ever."""
    second = threading.Event()

    def work(shard):
        if shard == 0:
            assert second.wait(timeout=60)
        second.set()
        return shard

    threads = Threads(2)
    assert threads.map(work, [0, 1]) == [0, 1]
    threads.close()


def test_executors_give_the_same_fit_bit_for_bit(executor):
    shards = np.array_split(np.arange(SVM.n), 7)

    def risk(w, executor):
        def part(shard):
            answers = [SVM.example(i, w) for i in shard]
            return sum(value for value, _ in answers), np.sum([s for _, s in answers], axis=0)

        answers = executor.map(part, shards)
        return sum(value for value, _ in answers), np.sum([slope for _, slope in answers], axis=0)

    fit = one_slack(lambda w: risk(w, executor), SVM.dimension, tol=1e-6)
    serial = one_slack(lambda w: risk(w, Serial()), SVM.dimension, tol=1e-6)
    assert np.array_equal(fit.w, serial.w)
    assert np.array_equal(fit.history.primal, serial.history.primal)
    assert np.array_equal(fit.history.dual, serial.history.dual)
