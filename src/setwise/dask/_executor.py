"""An executor whose shards lie on the workers of a dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import count
from typing import Any, Concatenate, TypeVar
from uuid import uuid4

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, KilledWorker, default_client

from setwise._foundation._arguments import as_count, as_function, as_list
from setwise._foundation._threads import one_thread
from setwise.dask._placement import Placed, aligned
from setwise.dask._worker_watch import cancel, check_open, watched
from setwise.learning._executors import check_shards, with_own
from setwise.learning._tree_sum import tree_level, tree_sum

T = TypeVar("T")
S = TypeVar("S")
# The number of levels of the tree that one summing task covers. More levels make fewer tasks for
# the scheduler, but one worker then waits for more vectors. Therefore tasks with large vectors
# cover half as many levels. If the vectors are small, the client itself adds up the top _LEVELS
# levels: workers would wait for one another, and sending a small vector costs no more than the
# message around it. A sum of 1000 small vectors takes 79 tasks on the workers with 4 levels, 333
# with 2 and 1000 with 1.
_LEVELS = 4
# Arrays of at most _SMALL bytes are sent with every task instead of once per worker. Not tuned.
_SMALL = 1 << 15
# The number of attempts per round. An attempt fails if the scheduler forgets the tasks
# (``Client.restart``), or if workers die more often than the scheduler allows.
ATTEMPTS = 3


class DaskExecutor:
    """An executor whose shards lie on the workers of a dask cluster.

    ``place`` puts each shard on a worker, where it stays. Each round is one graph of pure tasks:

    - the arguments; a large argument goes to one worker and from there to the others,
    - the function on every shard,
    - the sums along the tree of ``tree_sum``, on the workers except for the last few.

    Therefore answers are bitwise those of ``Serial`` over the same shards, for any number of
    workers. If workers die, join or are restarted, lost results are computed again. This holds if
    all machines have processors of one kind and the same libraries, because another BLAS may round
    differently.

    A round waits while there is no worker. It raises a ``TimeoutError`` after ten minutes, or after
    dask's setting ``distributed.scheduler.no-workers-timeout`` on the client.

    Parameters
    ----------
    client : distributed.Client, optional
        The default is the client that was created last in this process.

    Examples
    --------
    >>> from distributed import Client
    >>> from setwise.dask import DaskExecutor
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     executor = DaskExecutor(client)
    ...     shards = executor.place([1, 2, 3])
    ...     executor.map(pow, shards, 2), executor.sums(pow, shards, 2)
    ([1, 4, 9], [14])
    """

    def __init__(self, client: Client | None = None) -> None:
        self.client = as_client(client)
        self._name, self._rounds = f"setwise-{uuid4().hex[:12]}", count()

    def place(self, shards: Iterable[Any]) -> Placed:
        """Place shards on the workers: values of ``Delayed`` objects, or objects of the client."""
        held = as_list(shards, "shards", "shards")
        name = f"{self._name}-{next(self._rounds)}"
        tasks = [
            shard if isinstance(shard, Delayed) else _literal(shard, f"{name}-shard-{place}")
            for place, shard in enumerate(held)
        ]
        return Placed(self.client, tasks, name)

    def map(
        self, function: Callable[Concatenate[T, ...], S], shards: Iterable[T], *arguments: Any
    ) -> list[S]:
        """Return ``function(shard, *arguments)`` for each shard, in order."""
        call = _Mapped(as_function(function, "function"))
        placed = self._placed(shards)
        if not len(placed):
            return []
        blocks = self._computed(call, placed, arguments, None, lambda parts, _: parts)
        return [answer for block in blocks for answer in block]

    def sums(
        self,
        function: Callable[..., S],
        shards: Iterable[Any],
        *arguments: Any,
        each: Sequence[Any] | None = None,
        most: int = 1,
    ) -> list[S]:
        """Return the sum of the answers of the shards, as at most ``most`` partial sums."""
        level, placed = as_count(most, "most", least=1), self._placed(shards)
        check_shards(placed, each)
        call = _Summed(as_function(function, "function"), level, len(placed))
        # Large arguments have large answers, which are summed on the workers: one sum comes here.
        small = all(map(_is_small, arguments))
        top, levels = (1 << _LEVELS, _LEVELS) if small else (1, _LEVELS // 2)
        top = max(level, top)

        def summed(parts: list[Delayed], name: str) -> list[Delayed]:
            left = 0
            while -(-len(parts) >> left) > top:
                left += 1
            places, plus = count(), delayed(_sum_of_nodes, pure=False)
            while left:
                width = 1 << min(left, levels)
                left -= min(left, levels)
                parts = [
                    plus(*parts[i : i + width], dask_key_name=f"{name}-sum-{next(places)}")
                    for i in range(0, len(parts), width)
                ]
            return parts

        found = self._computed(call, placed, arguments, each, summed)
        return tree_level([node for nodes in found for node in nodes], level)

    def close(self) -> None:
        """Do nothing: the caller owns the client, and dask frees shards without references."""

    def _placed(self, shards: Iterable[Any]) -> Placed:
        return shards if isinstance(shards, Placed) else self.place(shards)

    def _computed(
        self,
        call: Callable[..., list[Any]],
        placed: Placed,
        arguments: Sequence[Any],
        each: Sequence[Any] | None,
        then: Callable[[list[Delayed], str], list[Delayed]],
    ) -> list[list[Any]]:
        """Return the answers of one round. If the scheduler loses the tasks, submit them again."""
        ask = delayed(_ask, pure=False)
        for attempt in range(ATTEMPTS):
            check_open(self.client)
            name = f"{self._name}-{next(self._rounds)}"
            sent = [
                _Held(own) if _is_small(own) else _literal(own, f"{name}-argument-{k}")
                for k, own in enumerate(arguments)
            ]
            parts = [
                ask(
                    call,
                    block,
                    None if each is None else _Held(each[own]),
                    *sent,
                    dask_key_name=f"{name}-part-{own.start}",
                )
                for block, own in zip(placed.blocks, placed.stretches, strict=True)
            ]
            # The graph may be large on purpose: it contains the weights that all workers need.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
                futures = self.client.compute(then(parts, name), optimize_graph=False)
            try:
                with watched(self.client, futures, placed.is_stuck) as watch:
                    return list(self.client.gather(futures))
            except (CancelledError, KilledWorker):
                watch.check()
                if attempt + 1 == ATTEMPTS:
                    raise
                placed.renew()
            except BaseException:  # for instance after Ctrl-C, when the workers need not continue
                cancel(self.client, futures)
                raise
        raise AssertionError("unreachable")


def as_client(client: object) -> Client:
    """Return ``client``, or if it is None the client that was created last in this process."""
    if client is None:
        try:
            return default_client()
        except ValueError:
            raise ValueError(
                "client must be given where no distributed.Client was made before, got None"
            ) from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
    return client


@dataclass(frozen=True)
class _Mapped:
    """A function applied to each shard of a block."""

    function: Callable[..., Any]

    def __call__(self, own: Iterator[tuple[Any, ...]]) -> list[Any]:
        return [self.function(*given) for given in own]


@dataclass(frozen=True)
class _Summed:
    """The sums of a function over a block, at the level of the tree with at most ``most`` nodes."""

    function: Callable[..., Any]
    most: int
    n: int

    def __call__(self, own: Iterator[tuple[Any, ...]]) -> list[Any]:
        if self.most == 1:
            return [tree_sum(self.function(*given) for given in own)]
        # Go up as many levels as the whole tree needs, or as the block has.
        nodes, whole = [self.function(*given) for given in own], self.n
        while whole > self.most and len(nodes) > 1:
            nodes = tree_level(nodes, -(-len(nodes) // 2))
            whole = -(-whole // 2)
        return nodes


def _ask(call: Callable[..., list[Any]], block: list[Any], each: Any, *arguments: Any) -> list[Any]:
    block[:] = aligned(block)
    given = [aligned(own.value if isinstance(own, _Held) else own) for own in arguments]
    with one_thread():
        return call(with_own(block, given, None if each is None else aligned(each.value)))


def _sum_of_nodes(*nodes: list[Any]) -> list[Any]:
    return [tree_sum(own for found in nodes for own in found)]


class _Held:
    """A wrapper that keeps dask from searching lists and tuples for tasks."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _literal(value: Any, name: str) -> Delayed:
    task: Delayed = delayed(_unheld, pure=False)(_Held(value), dask_key_name=name)
    return task


def _unheld(held: _Held) -> Any:
    return held.value


def _is_small(argument: Any) -> bool:
    """Return whether to send ``argument`` with every task, instead of as a task of its own."""
    if isinstance(argument, np.ndarray):
        return argument.nbytes <= _SMALL
    return argument is None or isinstance(argument, bool | int | float)
