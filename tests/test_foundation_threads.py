"""How many threads ``n_jobs`` stands for: one meaning and one sentence, in every layer."""

import os

import joblib
import numpy as np
import pytest

import setwise as sw
from setwise._foundation._threads import MOST_THREADS, as_threads
from setwise.estimators._threads import threads
from setwise.inference import maxflow_batch
from setwise.learning import StepSearch, StumpSearch, Threads

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
FIELD = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
X, Y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])

# By name: a call that reads ``n_jobs``.
READERS = {
    "as_threads": as_threads,
    "threads": threads,
    "Threads": lambda n_jobs: Threads(n_jobs).close(),
    "StepSearch": lambda n_jobs: StepSearch(X, n_jobs=n_jobs),
    "StumpSearch": lambda n_jobs: StumpSearch(X, n_jobs=n_jobs),
    "solve_map": lambda n_jobs: sw.solve_map(FIELD, n_jobs=n_jobs),
    "marginals": lambda n_jobs: sw.marginals(FIELD, n_jobs=n_jobs),
    "marginals_batch": lambda n_jobs: sw.inference.marginals_batch([FIELD], n_jobs=n_jobs),
    "maxflow": lambda n_jobs: sw.inference.maxflow([[0, 1]], 1, source=0, sink=1, n_jobs=n_jobs),
    "FlowGraph.solve": lambda n_jobs: sw.inference.FlowGraph(1, [], []).solve(n_jobs=n_jobs),
    "EditableCut": lambda n_jobs: sw.inference.EditableCut([[1]], 1, n_jobs=n_jobs),
    "maxflow_batch": lambda n_jobs: maxflow_batch([], n_jobs=n_jobs),
    "diverse": lambda n_jobs: sw.diverse(FIELD, 1, sw.diversities.DivMBest(1.0), n_jobs=n_jobs),
    "SetClassifier": lambda n_jobs: sw.SetClassifier("hamming", n_jobs=n_jobs).fit(X, Y),
    "SetClassifierCV": lambda n_jobs: sw.SetClassifierCV(
        "hamming", Cs=[1.0], cv=2, n_jobs=n_jobs
    ).fit(X, Y),
    "StructBoostRanker": lambda n_jobs: sw.StructBoostRanker(tol=0.9, n_jobs=n_jobs).fit(X, Y),
}


@pytest.mark.parametrize("name", READERS)
def test_one_sentence_for_what_is_no_number_of_threads(name):
    sentence = "n_jobs must not be 0, got 0: -1 is all cores, -2 all but one"
    with pytest.raises(ValueError, match=sentence):
        READERS[name](0)
    for bad in (1.0, "all", True, np.ones(1)):
        kind = type(bad).__name__
        with pytest.raises(TypeError, match=f"n_jobs must be an integer or None, got {kind}"):
            READERS[name](bad)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("n_jobs", [None, 1, np.int64(2), -1, -2, -1000])
def test_every_other_number_is_one(name, n_jobs):
    READERS[name](n_jobs)


@pytest.mark.parametrize("read", [as_threads, threads])
def test_negative_numbers_leave_out_cores(read):
    assert read(-2) == max(read(-1) - 1, 1)
    assert read(-1000) == 1
    assert read(10**30) == MOST_THREADS
    assert [read(count) for count in (1, 2, np.int32(7))] == [1, 2, 7]


def test_none_is_what_the_caller_says():
    assert as_threads(None) == as_threads(-1) == min(CORES, MOST_THREADS)
    assert as_threads(None, default=1) == threads(None) == 1


def test_estimators_know_how_many_threads_are_left():
    with joblib.parallel_config("threading", n_jobs=3):
        assert threads(None) == 3
    with joblib.parallel_config("sequential"):  # as within workers of workers
        assert [threads(n_jobs) for n_jobs in (None, -1, 4)] == [1, 1, 1]
    within = joblib.Parallel(2, "threading")(joblib.delayed(two_deep)(n_jobs) for n_jobs in (-1, 4))
    assert within == [1, 1]


def two_deep(n_jobs: int) -> int:
    """What is left to a worker of a worker."""
    (left,) = joblib.Parallel(2, "threading")([joblib.delayed(threads)(n_jobs)])
    return left
