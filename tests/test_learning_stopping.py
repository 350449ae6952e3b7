"""Learners end at a tolerance, after max_iter, at a callback's word or at Ctrl-C: always honest."""

import numpy as np
import pytest
from learner_registry import SVM, Problem, assert_honest, each_learner

from setwise._foundation._progress import Progress
from setwise.learning import one_slack
from setwise.learning._cutting_planes._learner import Learner


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


def test_a_bound_of_large_numbers_counts_without_their_rounding():
    """5 as a difference of numbers of 1e20 proves nothing; 5 of numbers of 10 stands as it is."""

    class Idle(Learner):
        def step(self):
            return True

    search = Idle(1, 1.0, 1e-3, 10, None)
    search.offer(np.zeros(1), 100.0)
    assert search.bound == 0.0  # a risk is not negative
    search.know(5.0, 1e20)
    assert search.bound == 0.0
    search.know(5.0, 10.0)
    search.know(6.0, 1e20)
    assert search.bound == 5.0


@pytest.mark.parametrize("seed", [1, 10, 13])
def test_no_bound_lies_above_the_minimum_at_a_large_price(seed):
    """Without a least risk the first bounds are differences of numbers of 1e24."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(6, 5, 3)) * [1.0, 1e2, 1e4]
    heights = rng.normal(size=(6, 5))

    def risk(w, constant=1e3):
        planes = np.maximum(slopes @ w + heights, 0.0)
        best = planes.argmax(axis=1)
        slope = np.where(planes.max(axis=1) > 0, 1.0, 0.0) @ slopes[np.arange(6), best]
        return planes.max(axis=1).sum() + constant, slope

    known = one_slack(lambda w: risk(w, 0.0), 3, 1e10, tol=1e-8, max_iter=300)
    fit = one_slack(risk, 3, 1e10, tol=1e-6, least_risk=None, max_iter=300)
    assert fit.bound - 1e13 <= known.value * (1 + 1e-6)
