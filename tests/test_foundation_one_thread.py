"""BLAS on one thread: whichever threads come in, and whoever leaves last."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import setwise as sw
from setwise._foundation._threads import one_thread

BLAS = ThreadpoolController().select(user_api="blas")


def numbers() -> set[int]:
    """Of threads, of every BLAS that has them for the whole process."""
    return {info["num_threads"] for info in BLAS.info() if info.get("threading_layer") != "openmp"}


@pytest.fixture(autouse=True)
def two_threads():
    """As on a machine with more than one core; set by this thread, which then has the say."""
    with BLAS.limit(limits=2):
        if numbers() != {2}:
            pytest.skip("the BLAS here has no threads of the whole process")
        yield


def seen_in_a_thread() -> set[int]:
    seen: list[set[int]] = []

    def look() -> None:
        with one_thread():
            seen.append(numbers())

    other = threading.Thread(target=look)
    other.start()
    other.join()
    return seen[0]


def test_a_limit_holds_in_any_thread_and_is_lifted_again() -> None:
    for _ in range(2):
        with one_thread(), one_thread():
            assert numbers() == {1}
        assert numbers() == {2}
        assert seen_in_a_thread() == {1}
        assert numbers() == {2}


def test_after_a_fit_here_a_fit_elsewhere_is_on_one_thread() -> None:
    X = np.tile([[1.0], [-1.0]], (4, 1))
    sw.SetClassifier("hamming").fit(X, np.hstack([X > 0, X < 0]))
    assert numbers() == {2}
    assert seen_in_a_thread() == {1}
    assert numbers() == {2}


def test_the_last_one_lifts_what_the_first_one_set() -> None:
    inside, done = threading.Event(), threading.Event()

    def stay() -> None:
        with one_thread():
            inside.set()
            done.wait(60)

    other = threading.Thread(target=stay)
    with one_thread():
        other.start()
        inside.wait(60)
    assert numbers() == {1}  # for the other one's sake
    done.set()
    other.join()
    assert numbers() == {2}


def test_an_error_lifts_it_too() -> None:
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert numbers() == {2}
