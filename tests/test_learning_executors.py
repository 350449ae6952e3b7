"""Executors: answers in the order of the shards, errors passed on, the same fit bit for bit."""

import threading

import numpy as np
import pytest
from learner_registry import SVM

from setwise.learning import Serial, Threads, one_slack


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
