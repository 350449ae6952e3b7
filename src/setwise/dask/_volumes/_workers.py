"""Tasks of a volume on threads of this process or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any
from uuid import uuid4

import distributed
from dask.delayed import delayed
from distributed import Client, KilledWorker

from setwise._foundation import _kernels as _core
from setwise._foundation._clock import Deadline
from setwise._foundation._threads import PAUSE
from setwise.dask._executor import ATTEMPTS
from setwise.dask._volumes._label_store import LabelStore
from setwise.dask._volumes._layout import Cell
from setwise.dask._volumes._tasks import Outcome, Task
from setwise.dask._volumes._volume_energy import VolumeEnergy
from setwise.dask._worker_watch import cancel, check_open, watched

Call = tuple[Callable[..., Any], Cell]

# The number of tasks per thread that are submitted to a cluster before the first of them is done:
# a worker then never waits for the client.
_AHEAD = 2
# Seconds between two checks of the time limit while a cluster works. A check costs a few
# milliseconds of the client, so shorter pauses would cost a share of a core.
_CLUSTER_PAUSE = 0.5


class Threads:
    """Threads of this process."""

    shared = False

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def run(
        self, energy: VolumeEnergy, store: LabelStore, calls: Sequence[Call], deadline: Deadline
    ) -> Generator[tuple[Cell, Outcome]]:
        """Yield cells with their outcomes as they come. When the time is over, raise ``TimeUp``."""
        stop = _core.Stop()
        left = iter(calls)
        begun: dict[Future[Outcome], Cell] = {}
        with ThreadPoolExecutor(self.n_threads) as threads:
            try:
                while True:
                    for function, cell in islice(left, self.n_threads - len(begun)):
                        task = Task(function)
                        begun[threads.submit(stop.run, task, energy, store, cell)] = cell
                    if not begun:
                        return
                    done = wait(begun, PAUSE, FIRST_COMPLETED).done
                    deadline.check()
                    for future in done:
                        yield begun.pop(future), future.result()
            finally:
                stop.ask()
                for future in begun:
                    future.cancel()


class Cluster:
    """The workers of a dask cluster. Tasks of lost workers are run again."""

    shared = True

    def __init__(self, client: Client) -> None:
        self.client = client

    def run(
        self, energy: VolumeEnergy, store: LabelStore, calls: Sequence[Call], deadline: Deadline
    ) -> Generator[tuple[Cell, Outcome]]:
        """Yield cells with their outcomes as they come. When the time is over, raise ``TimeUp``."""
        left = list(calls)
        for attempt in range(ATTEMPTS):
            lost: list[Call] = []
            yield from self._attempt(energy, store, left, deadline, lost, attempt + 1 < ATTEMPTS)
            left = lost
            if not left:
                return

    def _attempt(
        self,
        energy: VolumeEnergy,
        store: LabelStore,
        calls: Sequence[Call],
        deadline: Deadline,
        lost: list[Call],
        again: bool,
    ) -> Generator[tuple[Cell, Outcome]]:
        check_open(self.client)
        name = f"setwise-volume-{uuid4().hex[:12]}"
        # The energy is a task, so that a cluster that has lost it computes it again.
        held = delayed(_Held(energy, store), pure=False)
        shared = self.client.compute(held)
        left = iter(calls)
        threads = 1  # of all workers
        begun: dict[distributed.Future, Call] = {}
        waiting: list[distributed.Future] = [shared]
        try:
            with watched(self.client, waiting) as watch:
                while True:
                    if len(begun) < _AHEAD * threads:  # the number of workers may have changed
                        threads = max(1, sum(self.client.nthreads().values()))
                    for function, cell in islice(left, max(_AHEAD * threads - len(begun), 0)):
                        key = f"{name}-{cell.number}"
                        future = self.client.submit(_call, Task(function), shared, cell, key=key)
                        begun[future] = (function, cell)
                        waiting.append(future)
                    if not begun:
                        return
                    try:
                        done = distributed.wait(
                            list(begun), timeout=_CLUSTER_PAUSE, return_when="FIRST_COMPLETED"
                        ).done
                    except TimeoutError:
                        done = set()
                    except CancelledError:
                        done = {future for future in begun if future.cancelled()}
                    deadline.check()
                    for future in done:
                        call = begun.pop(future)
                        waiting.remove(future)
                        try:
                            outcome = future.result()
                        except (CancelledError, KilledWorker):
                            watch.check()
                            if not again:
                                raise
                            lost.append(call)
                            continue
                        yield call[1], outcome
        finally:
            cancel(self.client, waiting)


class _Held:
    """A wrapper of the energy and the store, which keeps dask from searching them for tasks."""

    def __init__(self, energy: VolumeEnergy, store: LabelStore) -> None:
        self.energy, self.store = energy, store


def _call(task: Task, held: _Held, cell: Cell) -> Outcome:
    return task(held.energy, held.store, cell)
