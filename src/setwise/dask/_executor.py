"""An executor whose shards lie on the workers of dask."""

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
from setwise._foundation._one_thread import one_thread
from setwise.dask._placed import Placed, aligned
from setwise.learning._executors import check_shards, with_own
from setwise.learning._tree_sum import tree_level, tree_sum

T = TypeVar("T")
S = TypeVar("S")
# Of so few nodes of the tree the client makes the last sums: workers would wait for one another,
# and small vectors cost no more than the words around them.
_AT_CLIENT = 16
# How many levels of the tree a task goes up: more are fewer tasks for the scheduler, and more
# vectors that one worker waits for.
_LEVELS, _LEVELS_OF_LARGE = 4, 2
_SMALL = 1 << 15  # bytes
# A round is asked again so often when the scheduler was told to forget it (``Client.restart``), or
# when workers died under it more often than the scheduler allows.
_ATTEMPTS = 3


class DaskExecutor:
    """Shards on the workers of a dask cluster; one vector comes back.

    ``place`` puts each shard on a worker, where it stays. A round then is one graph of pure tasks:
    the arguments, which if large go to one worker and from there to those that need them; the
    function on every shard; the sums, along the tree of ``tree_sum``, on the workers but for the
    last few. So answers equal
    those of ``Serial`` over the same shards to the last bit, for any number of workers, and when
    workers die, join or are restarted on the way: what is lost is computed again.

    That holds on processors and libraries of one kind, as for any program: another BLAS rounds
    otherwise.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that was made last in this process.

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
        """The shards on the workers: what ``Delayed`` objects will be, all else from here."""
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
        """The answers, in order."""
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
        """The sum of the answers, or at most ``most`` partial sums of it."""
        level, placed = as_count(most, "most", least=1), self._placed(shards)
        check_shards(placed, each)
        call = _Summed(as_function(function, "function"), level, len(placed))
        # Large answers, as large weights have, are summed where they are: one comes here.
        small = all(map(_is_small, arguments))
        top, levels = max(level, _AT_CLIENT if small else 1), _LEVELS if small else _LEVELS_OF_LARGE

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
        """Nothing to let go of: the client is its owner's, and shards go with their last name."""

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
        """The answers of one round, asked again where the scheduler has lost the question."""
        ask = delayed(_ask, pure=False)
        for attempt in range(_ATTEMPTS):
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
            # A broadcast of many weights is no graph that was made large by mistake.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
                futures = self.client.compute(then(parts, name), optimize_graph=False)
            try:
                return list(self.client.gather(futures))
            except (CancelledError, KilledWorker):
                if attempt + 1 == _ATTEMPTS:
                    raise
                placed.renew()
            except BaseException:  # Ctrl-C among them: the workers need not go on
                self.client.cancel(futures)
                raise
        raise AssertionError("unreachable")


def as_client(client: object) -> Client:
    """The client, or the one that was made last in this process."""
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
    """A function of each shard of a block."""

    function: Callable[..., Any]

    def __call__(self, own: Iterator[tuple[Any, ...]]) -> list[Any]:
        return [self.function(*given) for given in own]


@dataclass(frozen=True)
class _Summed:
    """Its sums over a block, on the level of the whole tree that has at most ``most`` nodes."""

    function: Callable[..., Any]
    most: int
    n: int

    def __call__(self, own: Iterator[tuple[Any, ...]]) -> list[Any]:
        if self.most == 1:
            return [tree_sum(self.function(*given) for given in own)]
        # As many levels up as the whole tree needs, or as the block has.
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
    """A value that dask takes as it is: it would look into lists and tuples for tasks."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _literal(value: Any, name: str) -> Delayed:
    task: Delayed = delayed(_unheld, pure=False)(_Held(value), dask_key_name=name)
    return task


def _unheld(held: _Held) -> Any:
    return held.value


def _is_small(argument: Any) -> bool:
    """Whether to send it with every task: one of its own, which others fetch from, costs more."""
    if isinstance(argument, np.ndarray):
        return argument.nbytes <= _SMALL
    return argument is None or isinstance(argument, bool | int | float)
