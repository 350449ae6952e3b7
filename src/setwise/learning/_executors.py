"""Executors, which run an oracle over shards on one thread or on several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, Protocol, TypeVar

from setwise._foundation._arguments import as_count, as_function, as_list
from setwise._foundation._threads import Pool, as_threads
from setwise.learning._tree_sum import tree_level

T = TypeVar("T")
S = TypeVar("S")


class Executor(Protocol):
    """An executor that maps a function over shards and adds up the results.

    The shards, and the tree along which results are summed (``tree_sum``), do not depend on the
    executor. Therefore results are bitwise equal for all executors. Functions must be pure: an
    executor may call one again for the same shard, on another machine.

    Examples
    --------
    >>> import setwise as sw
    >>> [type(e).__name__ for e in (sw.learning.Serial(), sw.learning.Threads(2))]
    ['Serial', 'Threads']
    """

    def place(self, shards: Iterable[Any]) -> Sequence[Any]:
        """Return the shards, placed where ``map`` and ``sums`` will process them."""

    def map(
        self, function: Callable[Concatenate[T, ...], S], shards: Iterable[T], *arguments: Any
    ) -> list[S]:
        """Return ``function(shard, *arguments)`` for each shard, in order."""

    def sums(
        self,
        function: Callable[..., S],
        shards: Iterable[Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
        most: int = 1,
    ) -> list[S]:
        """Return the sum of ``function(shard, *arguments)``, as at most ``most`` partial sums.

        Partial sums are the nodes of one level of the tree. ``each`` holds an additional last
        argument for every shard.
        """

    def close(self) -> None:
        """Release the threads."""


class Serial:
    """An executor that processes one shard after the other, on the calling thread.

    Examples
    --------
    >>> from setwise.learning import Serial
    >>> Serial().map(abs, [-1, 2])
    [1, 2]
    >>> Serial().sums(pow, [1, 2, 3], 2)
    [14]
    """

    def place(self, shards: Iterable[T]) -> Sequence[T]:
        """Return the shards as a list."""
        return as_list(shards, "shards", "shards")

    def map(
        self, function: Callable[Concatenate[T, ...], S], shards: Iterable[T], *arguments: Any
    ) -> list[S]:
        """Return ``function(shard, *arguments)`` for each shard, in order."""
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
        """Return the sum of the results, as at most ``most`` partial sums."""
        call = as_function(function, "function")
        level, held = as_count(most, "most", least=1), as_list(shards, "shards", "shards")
        check_shards(held, each)
        return tree_level((call(*own) for own in with_own(held, arguments, each)), level)

    def close(self) -> None:
        """Do nothing, since there are no threads."""


class Threads:
    """An executor with a pool of threads. Kernels and NumPy release the interpreter's lock.

    Parameters
    ----------
    n_jobs : int, optional
        The number of threads: None and -1 mean all cores, -2 all cores but one. A copy, by pickle
        or ``copy``, has its own pool of the same size.

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
        """Return the shards as a list."""
        return as_list(shards, "shards", "shards")

    def map(
        self, function: Callable[Concatenate[T, ...], S], shards: Iterable[T], *arguments: Any
    ) -> list[S]:
        """Return ``function(shard, *arguments)`` for each shard, in order."""
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
        """Return the sum of the results, as at most ``most`` partial sums."""
        call = as_function(function, "function")
        level, held = as_count(most, "most", least=1), as_list(shards, "shards", "shards")
        check_shards(held, each)
        own = list(with_own(held, arguments, each))
        return tree_level(self._pool.map(lambda given: call(*given), own), level)

    def close(self) -> None:
        """Release the threads."""
        self._pool.close()


def with_own(
    shards: Sequence[Any], arguments: Sequence[Any], each: Sequence[Any] | None
) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of each call of a function, shard by shard."""
    if each is None:
        return ((shard, *arguments) for shard in shards)
    return ((shard, *arguments, own) for shard, own in zip(shards, each, strict=True))


def check_shards(shards: Sequence[Any], each: Sequence[Any] | None) -> None:
    """Raise an error if there are no shards, or if ``each`` has the wrong length."""
    if not len(shards):
        raise ValueError("shards must hold at least one shard to be summed over, got none")
    if each is None:
        return
    own = as_list(each, "each", "arguments")
    if len(own) != len(shards):
        raise ValueError(
            f"each must have an entry for each of {len(shards)} shards, got {len(own)}"
        )
