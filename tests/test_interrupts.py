"""Ctrl-C ends every long call, and the call says so: by a flag, or by ``KeyboardInterrupt``.

Moments are counted, not timed. They are the calls of the library's own Python functions in the main
thread, and the polls of the kernels in any thread: the signal is sent at the k-th of them, and
those that follow are counted. Seconds are for ``make fuzz`` alone.
"""

from __future__ import annotations

import dataclasses
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from time import perf_counter, sleep
from types import FrameType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupt_registry import LONG, SHORT, SHORT_METHODS, Call, grid_field, public_callables
from sklearn.base import BaseEstimator

import setwise as sw
from setwise import _core
from setwise._foundation._search import completed
from setwise._foundation._threads import Pool

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* stopped at n_estimators"),  # few, by design
    pytest.mark.skipif(
        not hasattr(signal, "pthread_kill"), reason="signals to a thread are POSIX's"
    ),
]

CASES = {
    f"{name}-{case}" if case else name: make
    for name, cases in LONG.items()
    for case, make in cases.items()
}
HOME = str(Path(_core.__file__).parent)
# Calls and polls of the main thread after Ctrl-C: what it takes to write an answer down, with the
# bounds that hold of it, where the item of a list is finished first: up to 362 over sixty moments
# of three lists. The searches themselves make thousands.
MOST_AFTER = 400


@contextmanager
def no_callbacks_of_the_collector() -> Iterator[None]:
    """Python loses what is raised in such a callback, and Hypothesis has one."""
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    try:
        yield
    finally:
        gc.callbacks[:] = callbacks


class Moments:
    """Counts the moments of a call, and sends Ctrl-C at one of them.

    The function that counts calls must not be the one in which ``KeyboardInterrupt`` comes up:
    Python takes that one away. So one traces, and the other, the profiler, sends.
    """

    def __init__(self, kind: str = "", at: int = 0) -> None:
        self._kind, self._at = kind, at
        self.count, self.sent, self.after = {"call": 0, "poll": 0}, False, 0

    def __enter__(self) -> Moments:
        self._tracer = sys.gettrace()
        _core.watch_polls(self._poll)
        sys.setprofile(self._send_at_a_call)
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._tracer)
        sys.setprofile(None)
        _core.watch_polls(None)

    def _call(self, frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_filename.startswith(HOME):
            self._moment("call")

    def _send_at_a_call(self, frame: FrameType, event: str, argument: object) -> None:
        if self.count["call"] == self._at and self._kind == "call" and not self.sent:
            self._send()

    def _poll(self) -> None:
        self._moment("poll")
        if self.count["poll"] == self._at and self._kind == "poll" and not self.sent:
            self._send()
        if self.sent and threading.current_thread() is not threading.main_thread():
            sleep(0.002)  # lets the main thread get round to it

    def _moment(self, kind: str) -> None:
        self.count[kind] += 1
        self.after += self.sent and threading.current_thread() is threading.main_thread()

    def _send(self) -> None:
        self.sent = True
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def numbers(answer: object) -> list[np.ndarray]:
    """All that an answer says, but for the time it took."""
    if isinstance(answer, np.ndarray | np.generic | int | float | bool):
        return [np.asarray(answer)]
    if isinstance(answer, list | tuple):
        return [array for part in answer for array in numbers(part)]
    if dataclasses.is_dataclass(answer):
        kept = [f.name for f in dataclasses.fields(answer) if f.name not in ("history", "planes")]
        return numbers([getattr(answer, name) for name in kept])
    if isinstance(answer, BaseEstimator):
        fitted = ("coef_", "intercept_", "edge_coef_", "estimator_weights_", "gap_")
        return numbers([getattr(answer, name) for name in fitted if hasattr(answer, name)])
    return []


def says_so(answer: object) -> bool:
    return bool(getattr(answer, "interrupted", False) or getattr(answer, "interrupted_", False))


def assert_same(answer: object, expected: list[np.ndarray]) -> None:
    found = numbers(answer)
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def interrupt(call: Call, kind: str, at: int) -> None:
    """Ctrl-C at one moment: the call says so, and soon."""
    answer: object = None
    raised = False
    try:
        with no_callbacks_of_the_collector(), Moments(kind, at) as moments:
            answer = call()
    except KeyboardInterrupt:
        raised = True
    if moments.sent:  # how often a thread that waits polls is not for us to say
        assert raised or says_so(answer)
        assert moments.after <= MOST_AFTER
    else:
        assert not raised


@pytest.mark.parametrize("name", CASES)
def test_a_long_call_says_that_it_was_interrupted(name):
    call = CASES[name](1)
    expected = numbers(call())
    with Moments() as moments:
        call()
    for kind, share in (("call", 0.3), ("call", 0.9), ("poll", 0.0), ("poll", 0.6)):
        if moments.count[kind]:
            interrupt(call, kind, 1 + int(share * (moments.count[kind] - 1)))
    assert_same(call(), expected)


def test_every_public_callable_is_long_or_short():
    long = set(LONG)
    short = {
        name
        for name in set(public_callables()) - long
        if name in SHORT or (name.rpartition(".")[2] in SHORT_METHODS and name.count(".") == 2)
    }
    assert set(public_callables()) == long | short
    assert not long & SHORT


def test_a_graph_is_right_after_a_solve_that_was_abandoned():
    rng, side = np.random.default_rng(0), 240
    edges, shape = sw.fields.grid_edges((side, side)), (side * side,)
    there, back = rng.integers(1, 99, (2, len(edges)))
    source, sink = np.zeros(shape, int), np.zeros(shape, int)
    source[0] = sink[-1] = 10**6  # few long paths: whole trees lose their parents, again and again
    flow = sw.inference.maxflow(edges, there, back, source=source, sink=sink)
    graph = sw.inference.FlowGraph(side * side, edges, there, back)
    graph.set_terminals(source, sink)
    with Moments() as moments:
        graph.copy().solve()
    assert moments.count["poll"] > 10
    for poll in (1, 5, moments.count["poll"]):
        abandoned = graph.copy()
        with pytest.raises(KeyboardInterrupt), Moments("poll", poll):
            abandoned.solve()
        abandoned.solve()
        assert (abandoned.value, abandoned.bound) == (flow.value, flow.bound)
        abandoned.set_terminals(sink, source)
        with Moments("poll", 1), suppress(KeyboardInterrupt):
            abandoned.solve()
        abandoned.solve()
        turned = sw.inference.maxflow(edges, there, back, source=sink, sink=source)
        assert (abandoned.value, abandoned.bound) == (turned.value, turned.bound)


@cache
def made(name: str, size: int) -> tuple[Call, dict[str, int], list[np.ndarray]]:
    call = CASES[name](size)
    expected = numbers(call())
    with Moments() as moments:
        call()
    return call, moments.count, expected


# Between open() and with, Ctrl-C leaves a file to the garbage collector, whoever opened it.
left_open = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@left_open
@pytest.mark.fuzz
@given(st.sampled_from(list(CASES)), st.sampled_from(["call", "poll"]), st.floats(0.0, 1.0))
def test_a_long_call_says_so_at_any_moment(name, kind, share):
    call, count, expected = made(name, 1)
    if count[kind]:
        interrupt(call, kind, 1 + int(share * (count[kind] - 1)))
        assert_same(call(), expected)


@contextmanager
def signal_after(seconds: float, sent: list[float]) -> Iterator[None]:
    """Ctrl-C from outside, after so long; ``sent`` is told when it came."""

    def send() -> None:
        sent.append(perf_counter())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(seconds, send)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@left_open
@pytest.mark.fuzz
@given(st.sampled_from(list(CASES)), st.integers(2, 8), st.floats(0.0, 0.5))
def test_a_long_call_ends_within_two_seconds(name, size, seconds):
    made(name, 1)  # what is imported by need is imported: torch holds Ctrl-C back for longer
    call = CASES[name](size)
    sent: list[float] = []
    try:
        with no_callbacks_of_the_collector(), signal_after(seconds, sent):
            answer = call()
            ended = perf_counter()
        assert not sent or says_so(answer)
    except KeyboardInterrupt:
        ended = perf_counter()
    assert not sent or ended - sent[0] <= 2.0


def test_a_part_of_an_answer_is_not_taken_for_the_whole():
    field = grid_field(1, 3)
    assert completed(sw.solve_map(field)).labels.shape == (49,)
    with pytest.raises(KeyboardInterrupt):
        completed(sw.solve_map(field, "convex", tol=0.0, callback=lambda now: True))


# --------------------------------------------------------------------------------------- threads


def test_a_pool_ends_the_threads_that_work_for_an_interrupted_call():
    begun, ended = [], threading.Semaphore(0)

    def spin(k: int) -> None:
        begun.append(k)
        if len(begun) == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        try:
            while True:
                _core.poll()
        except CancelledError:
            ended.release()
            raise

    with Pool(2) as pool, pytest.raises(KeyboardInterrupt):
        pool.map(spin, range(5))
    assert all(ended.acquire(timeout=60) for _ in range(2))
    assert sorted(begun) == [0, 1]
    with Pool(2) as pool:
        assert pool.map(abs, [-1, 2]) == [1, 2]


def test_a_pool_ends_when_one_of_its_threads_raises():
    def fail_or_spin(k: int) -> None:
        if k == 0:
            raise ZeroDivisionError
        while True:
            _core.poll()

    with Pool(2) as pool, pytest.raises(ZeroDivisionError):
        pool.map(fail_or_spin, range(5))


def test_a_kernel_ends_at_the_stop_of_its_own_thread_only():
    stop, field = _core.Stop(), grid_field(1, 3)
    labels = np.zeros((4, field.n_variables), np.int64)
    _core.watch_polls(lambda: None)  # or it would look a few times a second only
    try:
        energies = stop.run(field.energy, labels)
        assert not stop.asked
        stop.ask()
        assert stop.asked
        np.testing.assert_array_equal(field.energy(labels), energies)
        with pytest.raises(CancelledError, match="was interrupted"):
            stop.run(field.energy, labels)
        np.testing.assert_array_equal(field.energy(labels), energies)
    finally:
        _core.watch_polls(None)


# --------------------------------------------------------------------------------------- imports

# Ctrl-C in the middle of each import that a call makes by need: the call ends in KeyboardInterrupt,
# and the next one works.
INTERRUPTED_IMPORTS = """
import signal, sys
import numpy as np
import setwise as sw

class Interrupt:
    # sends Ctrl-C when a module is looked for
    name = None
    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            self.name = None
            signal.raise_signal(signal.SIGINT)
        return None

interrupt = Interrupt()
sys.meta_path.insert(0, interrupt)

class Hinge:
    offsets = np.array([0, 2])
    def __call__(self, f):
        y = np.array([1.0, -1.0])
        return np.maximum(1 - y * f, 0).mean(), np.where(y * f < 1, -y, 0) / 2

class Signs:
    exact = True
    def __call__(self, weights):
        return [sw.learning.Column("signs", 0, np.sign(weights))]

F = sw.functions.Table(np.r_[0.0, 1.0, 2.0, 1.0, 3.0, 4.0, 1.0, 2.0])
G = sw.functions.Modular([-1.0, 1.0]) + sw.functions.Cut([[0, 1]], n=2)
calls = {
    "scipy.linalg._decomp_qr": lambda: sw.functions.minimize(G).value,
    "scipy.optimize._linprog": lambda: len(sw.functions.decompose(F).g.gains(np.arange(3))),
    "highspy._core": lambda: sw.learning.struct_boost(Hinge(), Signs(), C=10.0).value,
    "setwise.plots._style": lambda: sw.plots.DiverseDisplay.__name__,
}
for name, call in calls.items():
    assert name not in sys.modules, name
    interrupt.name = name
    try:
        call()
    except KeyboardInterrupt:
        print(name, call())
    else:
        print(name, "went on")
"""


def test_an_interrupted_import_is_whole():
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORTS], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()] == [
        "scipy.linalg._decomp_qr",
        "scipy.optimize._linprog",
        "highspy._core",
        "setwise.plots._style",
    ]
    assert "went on" not in ran.stdout
