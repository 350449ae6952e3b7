"""Where the oracle runs: on one thread, or on several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, Protocol, TypeVar

from setwise._foundation._arguments import as_count, as_function, as_list
from setwise._foundation._pool import Pool
from setwise._foundation._threads import as_threads
from setwise.learning._tree_sum import tree_level

T = TypeVar("T")
S = TypeVar("S")


class Executor(Protocol):
    """Maps a function over shards, and adds up what it says of them.

    The shards, and the tree along which their answers are summed (``tree_sum``), do not depend on
    the executor, so neither does any answer, to the last bit. Functions are pure: an executor may
    ask one again of the same shard, on another machine.

    Examples
    --------
    >>> import setwise as sw
    >>> [type(e).__name__ for e in (sw.learning.Serial(), sw.learning.Threads(2))]
    ['Serial', 'Threads']
    """

    def place(self, shards: Iterable[Any]) -> Sequence[Any]:
        """The shards where the work on them will be done, for ``map`` and ``sums``."""

    def map(
        self, function: Callable[Concatenate[T, ...], S], shards: Iterable[T], *arguments: Any
    ) -> list[S]:
        """``function(shard, *arguments)`` of each shard, in order."""

    def sums(
        self,
        function: Callable[..., S],
        shards: Iterable[Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
        most: int = 1,
    ) -> list[S]:
        """The sum of ``function(shard, *arguments)``, or at most ``most`` partial sums of it.

        Partial sums are nodes of the tree, all of one level. ``each`` has one more argument for
        every shard, which comes last.
        """

    def close(self) -> None:
        """Let go of the threads."""


class Serial:
    """One shard after the other, on the calling thread.

    Examples
    --------
    >>> from setwise.learning import Serial
    >>> Serial().map(abs, [-1, 2])
    [1, 2]
    >>> Serial().sums(pow, [1, 2, 3], 2)
    [14]
    """

    def place(self, shards: Iterable[T]) -> Sequence[T]:
        """The shards themselves."""
        return as_list(shards, "shards", "shards")

    def map(
        self, function: Callable[Concatenate[T, ...], S], shards: Iterable[T], *arguments: Any
    ) -> list[S]:
        """The answers, in order."""
        call = as_function(function, "function")
        return [call(shard, *arguments) for shard in as_list(shards, "shards", "shards")]

    def sums(
        self,
        function: Callable[..., S],
        shards: Iterable[Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
        most: int = 1,
    ) -> list[S]:
        """The sum of the answers, or at most ``most`` partial sums of it; one is held at a time."""
        call = as_function(function, "function")
        level, held = as_count(most, "most", least=1), as_list(shards, "shards", "shards")
        check_shards(held, each)
        return tree_level((call(*own) for own in with_own(held, arguments, each)), level)

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

    def place(self, shards: Iterable[T]) -> Sequence[T]:
        """The shards themselves."""
        return as_list(shards, "shards", "shards")

    def map(
        self, function: Callable[Concatenate[T, ...], S], shards: Iterable[T], *arguments: Any
    ) -> list[S]:
        """The answers, in order."""
        call = as_function(function, "function")
        held = as_list(shards, "shards", "shards")
        return self._pool.map(lambda shard: call(shard, *arguments), held)

    def sums(
        self,
        function: Callable[..., S],
        shards: Iterable[Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
        most: int = 1,
    ) -> list[S]:
        """The sum of the answers, or at most ``most`` partial sums of it."""
        call = as_function(function, "function")
        level, held = as_count(most, "most", least=1), as_list(shards, "shards", "shards")
        check_shards(held, each)
        own = list(with_own(held, arguments, each))
        return tree_level(self._pool.map(lambda given: call(*given), own), level)

    def close(self) -> None:
        """Let go of the threads."""
        self._pool.close()


def with_own(
    shards: Sequence[Any], arguments: Sequence[Any], each: Sequence[Any] | None
) -> Iterator[tuple[Any, ...]]:
    """What a function is called with, shard by shard."""
    if each is None:
        return ((shard, *arguments) for shard in shards)
    return ((shard, *arguments, own) for shard, own in zip(shards, each, strict=True))


def check_shards(shards: Sequence[Any], each: Sequence[Any] | None) -> None:
    """Raise where there is nothing to be summed, or no argument for every shard."""
    if not len(shards):
        raise ValueError("shards must hold at least one shard to be summed over, got none")
    if each is None:
        return
    own = as_list(each, "each", "arguments")
    if len(own) != len(shards):
        raise ValueError(
            f"each must have an entry for each of {len(shards)} shards, got {len(own)}"
        )
