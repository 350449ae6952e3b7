"""Shards on workers, in blocks that are nodes of the tree of sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, Future
from scipy.sparse import issparse

# How many blocks a thread has at least, where there are as many shards: what a slow one leaves,
# others can take.
_BLOCKS_A_THREAD = 2


class Placed(Sequence[Any]):
    """Shards on the workers, made by tasks that the scheduler can run again.

    A block is a stretch of 2^k shards that begins at a multiple of 2^k: a node of the tree of
    ``tree_sum``, whatever k is, so that how many workers there are decides where sums are made and
    not what they are. Neighbouring blocks go to one worker. A worker that dies takes nothing with
    it that the tasks would not bring back.
    """

    def __init__(self, client: Client, tasks: Sequence[Delayed], name: str) -> None:
        self._client, self._tasks, self._name = client, tasks, name
        threads = sum(client.nthreads().values())
        size = 1
        while len(tasks) >= 2 * size * max(1, threads * _BLOCKS_A_THREAD):
            size *= 2
        self.stretches = [
            slice(begin, min(begin + size, len(tasks))) for begin in range(0, len(tasks), size)
        ]
        self.renew()

    def renew(self) -> None:
        """Place all shards, again if the scheduler has forgotten them."""
        workers = sorted(self._client.nthreads())
        gather = delayed(_gathered, pure=False)
        blocks = [
            gather(*self._tasks[own], dask_key_name=f"{self._name}-block-{own.start}")
            for own in self.stretches
        ]
        share = max(1, -(-len(blocks) // max(1, len(workers))))
        self.blocks: list[Future] = []
        for place, begin in enumerate(range(0, len(blocks), share)):
            near = {"workers": workers[place], "allow_other_workers": True} if workers else {}
            # Optimised together with its sources: parts of a shard are not kept beside it.
            self.blocks += self._client.compute(blocks[begin : begin + share], **near)

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, place: Any) -> Any:
        return self._tasks[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tasks)


def _gathered(*shards: Any) -> list[Any]:
    return list(shards)


def aligned(value: Any) -> Any:
    """The value with every array in it where its numbers can be read whole.

    What came over the wire may begin at any byte, and then NumPy leaves BLAS aside and sums in
    another order. Arrays inside of records are replaced there, so that this is done once.
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
