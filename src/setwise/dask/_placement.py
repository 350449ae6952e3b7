"""Shards on workers, in blocks that are nodes of the tree of ``tree_sum``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any
from weakref import WeakSet

import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, Future
from scipy.sparse import issparse

# The least number of blocks per thread, if there are enough shards. With more than one, fast
# threads can take over blocks from slow ones. Not tuned.
BLOCKS_PER_THREAD = 2

# All placed shards of all executors.
_PLACED: WeakSet[Placed] = WeakSet()
_LOCK = Lock()


class Placed(Sequence[Any]):
    """Shards on the workers, made by tasks that the scheduler can run again.

    A block is a range of 2^k shards that begins at a multiple of 2^k. It is a node of the tree of
    ``tree_sum`` for any k, so that the number of workers decides where sums are computed but not
    their values. Neighbouring blocks go to one worker. Blocks that are lost with a worker are
    computed again from the tasks.

    Suppose that a task prefers a worker, that no worker is present when the task is due, and that
    the preferred worker does not come back. Then the scheduler never starts the task. Therefore
    blocks prefer a worker only when they are placed for the first time.
    """

    def __init__(self, client: Client, tasks: Sequence[Delayed], name: str) -> None:
        self._client, self._tasks, self._name = client, tasks, name
        self._tied: set[str] = set()
        live = client.nthreads()
        size = 1
        while len(tasks) >= 2 * size * max(1, sum(live.values()) * BLOCKS_PER_THREAD):
            size *= 2
        self.stretches = [
            slice(begin, min(begin + size, len(tasks))) for begin in range(0, len(tasks), size)
        ]
        share = max(1, -(-len(self.stretches) // max(1, len(live))))
        begins = range(0, len(self.stretches), share)
        self._place(
            {
                address: slice(begin, begin + share)
                for address, begin in zip(sorted(live), begins, strict=False)
            }
        )
        with _LOCK:
            _PLACED.add(self)

    def renew(self) -> None:
        """Place all shards again, on any workers."""
        again = self._together()
        for one in again:
            self._client.cancel(one.blocks)
        for one in again:
            one._place({})

    def is_stuck(self, live: set[str]) -> bool:
        """Return whether blocks wait for workers that are gone and none is being computed."""
        tied = set().union(*(one._tied for one in self._together()))
        if tied <= live or all(block.done() for block in self.blocks):
            return False
        own = self._keys()
        return not any(own.intersection(keys) for keys in self._client.processing().values())

    def _together(self) -> list[Placed]:
        """Return these shards and all others whose blocks prefer workers.

        The scheduler keeps the preference of a task while the task is needed, and a task may belong
        to several placed collections: blocks of columns are made from the tasks of rows.
        """
        with _LOCK:
            tied = [one for one in _PLACED if one._client is self._client and one._tied]
        return [self, *(one for one in tied if one is not self)]

    def _place(self, near: dict[str, slice]) -> None:
        """Compute the blocks, each range of them near its worker, or anywhere without ``near``."""
        gather = delayed(_gathered, pure=False)
        blocks = [
            gather(*self._tasks[own], dask_key_name=f"{self._name}-block-{own.start}")
            for own in self.stretches
        ]
        self._tied = set(near)
        self.blocks: list[Future] = []
        # Optimising the graph fuses a block with its sources, which are then not kept beside it.
        for address, own in near.items():
            tied = {"workers": [address], "allow_other_workers": True}
            self.blocks += self._client.compute(blocks[own], **tied)
        if not near:
            self.blocks = self._client.compute(blocks)

    def _keys(self) -> set[Any]:
        """Return the keys of all tasks that the blocks depend on."""
        layers = {id(layer): layer for task in self._tasks for layer in task.dask.layers.values()}
        return set().union(*layers.values(), (block.key for block in self.blocks))

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, place: Any) -> Any:
        return self._tasks[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tasks)


def _gathered(*shards: Any) -> list[Any]:
    return list(shards)


def aligned(value: Any) -> Any:
    """Return the value with every array in it aligned in memory.

    An array that was received over the network may begin at any address. NumPy does not pass such
    an array to BLAS and sums in another order. Arrays inside of records are replaced in place, so
    that they are copied once.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if isinstance(value, list | tuple):
        parts = [aligned(part) for part in value]
        if all(a is b for a, b in zip(parts, value, strict=True)):
            return value
        return type(value)(parts) if type(value) in (list, tuple) else type(value)(*parts)
    if issparse(value):
        value.data = aligned(value.data)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for own in dataclasses.fields(value):
            now = getattr(value, own.name)
            if (then := aligned(now)) is not now:
                object.__setattr__(value, own.name, then)
    return value
