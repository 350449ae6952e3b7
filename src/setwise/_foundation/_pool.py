"""Threads that end with the call they work for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from setwise._foundation import _kernels as _core

T = TypeVar("T")
S = TypeVar("S")
_LOOK = 0.02  # seconds between looks at a time limit, while the threads work


class Pool:
    """A map over threads which Ctrl-C, or what one of them raises, ends for all of them.

    Python shows Ctrl-C to the main thread alone, which waits here, and time limits strike in the
    thread that was given them. It tells the others by a ``Stop``, which their kernels and the
    rounds of every search look at: they end with a ``CancelledError``, that no search takes for an
    answer, and what has not begun never does.
    """

    def __init__(self, n_threads: int) -> None:
        self._threads = ThreadPoolExecutor(n_threads)

    def map(self, function: Callable[[T], S], items: Iterable[T]) -> list[S]:
        """The answers, in the order of the items."""
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
        """Wait for the threads, and let go of them."""
        self._threads.shutdown()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _result(future: Future[S]) -> S:
    """What a thread says, waiting for it and for the time limits of this one."""
    while _core.heeds() and not wait([future], _LOOK).done:
        _core.poll()
    return future.result()
