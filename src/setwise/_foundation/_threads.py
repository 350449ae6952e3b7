"""Threads: the argument ``n_jobs``, pools that end with their call, and BLAS on one thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np

from setwise._foundation import _kernels as _core

T = TypeVar("T")
S = TypeVar("S")

MOST_THREADS = 1024  # larger values of ``n_jobs`` are reduced to this, far above any machine
# The seconds between two checks while a thread waits, for instance for a pool within a time limit.
# It is also the time by which the app delays a preview if the full mask may come first. A person
# does not notice the delay, and the cost of the checks cannot be measured.
PAUSE = 0.02


def as_jobs(n_jobs: object) -> int | None:
    """Return ``n_jobs`` after checking that it is None or a nonzero integer."""
    if n_jobs is None or (type(n_jobs) is int and n_jobs != 0):
        return n_jobs
    if isinstance(n_jobs, bool | np.bool_) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs must be an integer or None, got {type(n_jobs).__name__}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0, got 0: -1 is all cores, -2 all but one")
    return int(n_jobs)


def as_threads(n_jobs: object, *, default: int = -1) -> int:
    """Return the number of threads: -1 means all cores of this process, -2 one fewer, and so on.

    None means ``default``. The result is between 1 and 1024.
    """
    given = as_jobs(n_jobs)
    jobs = default if given is None else given
    if jobs < 0:
        if hasattr(os, "sched_getaffinity"):
            available = len(os.sched_getaffinity(0))
        else:  # os.sched_getaffinity does not exist on macOS and Windows
            available = os.cpu_count() or 1
        jobs = max(available + 1 + jobs, 1)
    return min(jobs, MOST_THREADS)


def machine_memory() -> int:
    """Return the bytes of the machine's memory, 2 GiB if the system does not report them."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2 << 30


class Pool:
    """A map over threads, all of which end at Ctrl-C or at an exception of one of them.

    Python raises Ctrl-C in the main thread only, which waits here, and time limits in the thread
    that was given them. That thread stops the others by a ``Stop``, which their kernels and every
    round of a search check. They end with a ``CancelledError``, which no search catches, and calls
    that have not begun are cancelled.
    """

    def __init__(self, n_threads: int) -> None:
        self._threads = ThreadPoolExecutor(n_threads)

    def map(self, function: Callable[[T], S], items: Iterable[T]) -> list[S]:
        """Return ``function(item)`` for each item, in order."""
        stop = _core.Stop()
        begun: list[Future[S]] = []
        try:
            begun.extend(self._threads.submit(stop.run, function, item) for item in items)
            return [_result(future) for future in begun]
        except BaseException:
            stop.ask()
            for future in begun:
                future.cancel()
            raise

    def close(self) -> None:
        """Wait for the threads and release them."""
        self._threads.shutdown()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _result(future: Future[S]) -> S:
    """Return the result of a thread. While waiting, check the time limit of the calling thread."""
    while _core.has_check() and not wait([future], PAUSE).done:
        _core.poll()
    return future.result()


_lock = threading.Lock()
# One entry per thread inside ``one_thread``: the limit for the first, None for the others.
_users: list[Any] = []


@cache
def _controller() -> Any:
    """Return a controller of all loaded libraries, made once, since that takes milliseconds."""
    import scipy.linalg  # noqa: F401, which has its own BLAS
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _open_to_all() -> None:
    """Release control of the limits, so that any thread can set the next one.

    From threadpoolctl 3.8 on, only the first thread that sets a limit may change it until it
    releases control. The calls of all other threads are ignored.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any thread of this process is inside the context.

    The limit belongs to the process. The first thread sets it and the last one lifts it, since
    otherwise one thread would lift it while another computes.
    """
    with _lock:
        limit = None
        if not _users:
            _open_to_all()
            limit = _controller().limit(limits=1, user_api="blas")
        _users.append(limit)
    try:
        yield
    finally:
        with _lock:
            if (held := _users.pop()) is not None:
                _open_to_all()
                held.restore_original_limits()
                _open_to_all()
