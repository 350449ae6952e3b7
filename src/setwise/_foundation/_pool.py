"""A pool of threads that end with the call they work for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from setwise._foundation import _kernels as _core

T = TypeVar("T")
S = TypeVar("S")
_LOOK = 0.02  # seconds between checks of the time limit while the threads work


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
    """Return the result of a thread, and check the time limits of this one while waiting."""
    while _core.heeds() and not wait([future], _LOOK).done:
        _core.poll()
    return future.result()
