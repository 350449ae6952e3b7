"""Learners end at a tolerance, after max_iter, at a callback's word or at Ctrl-C: always honest."""

import pytest
from learner_registry import SVM, Problem, assert_honest, each_learner

from setwise.learning import Progress


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
