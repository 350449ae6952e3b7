"""Where the oracle runs: on one thread, or on several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from setwise._foundation._arguments import as_function, as_list
from setwise._foundation._pool import Pool
from setwise._foundation._threads import as_threads

T = TypeVar("T")
S = TypeVar("S")


class Executor(Protocol):
    """Maps a function over shards; the answers come in the order of the shards.

    The shards, and the order in which their answers are summed, do not depend on the executor, so
    neither does any answer, to the last bit.

    Examples
    --------
    >>> import setwise as sw
    >>> [type(e).__name__ for e in (sw.learning.Serial(), sw.learning.Threads(2))]
    ['Serial', 'Threads']
    """

    def map(self, function: Callable[[T], S], shards: Iterable[T]) -> list[S]:
        """The answers, in order."""

    def close(self) -> None:
        """Let go of the threads."""


class Serial:
    """One shard after the other, on the calling thread.

    Examples
    --------
    >>> from setwise.learning import Serial
    >>> Serial().map(abs, [-1, 2])
    [1, 2]
    """

    def map(self, function: Callable[[T], S], shards: Iterable[T]) -> list[S]:
        """The answers, in order."""
        call = as_function(function, "function")
        return [call(shard) for shard in as_list(shards, "shards", "shards")]

    def close(self) -> None:
        """Nothing to let go of."""


class Threads:
    """Shards on a pool of threads: the kernels and NumPy release the interpreter's lock.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; None and -1 for all cores, -2 for all but one. A copy, by pickle or ``copy``, has
        as many of its own.

    Examples
    --------
    >>> from setwise.learning import Threads
    >>> threads = Threads(2)
    >>> threads.map(abs, [-1, 2])
    [1, 2]
    >>> threads.close()
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self._n_jobs = as_threads(n_jobs)
        self._pool = Pool(self._n_jobs)

    def __reduce__(self) -> tuple[type[Threads], tuple[int]]:
        return type(self), (self._n_jobs,)

    def map(self, function: Callable[[T], S], shards: Iterable[T]) -> list[S]:
        """The answers, in order."""
        call = as_function(function, "function")
        return self._pool.map(call, as_list(shards, "shards", "shards"))

    def close(self) -> None:
        """Let go of the threads."""
        self._pool.close()
