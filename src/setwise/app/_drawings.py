"""The open drawings, the threads they share, and their common limit on memory."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from secrets import token_urlsafe
from threading import Lock
from typing import Any, Protocol

from setwise.app._drawing._answers import Event
from setwise.app._drawing._drawing import Drawing
from setwise.app._drawing._jobs import Work, WorkQueue
from setwise.app._drawing._memory import MemoryBudget

MEMORY_LIMIT = 2 * 2**30  # enough for one picture of the largest working size
MOST_DRAWINGS = 200  # limits the uncounted memory, such as the objects of each drawing; not tuned
# The number of threads. With three, two slow jobs leave one thread for the masks of other drawings.
_THREADS = 3


class JobOwner(Protocol):
    """An object with jobs, which are identified by their names."""

    def run(self, job: str) -> None:
        """Run one job. It must handle its own errors and raise none."""


class Workers:
    """Threads with a fair queue.

    Owners take turns, and urgent jobs come before all others. Neither the jobs of one owner nor all
    jobs that are not urgent may occupy the last thread.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._most = max(threads - 1, 1)
        self._lock = Lock()
        # The first owner has the next turn.
        self._waiting: dict[JobOwner, deque[tuple[str, bool]]] = {}
        self._running: Counter[JobOwner] = Counter()
        self._n_background = 0
        """the number of running jobs that are not urgent"""

    def submit(self, owner: JobOwner, job: str, *, urgent: bool) -> None:
        """Let a thread call ``owner.run(job)``. Raise ``RuntimeError`` after ``close``."""
        with self._lock:
            self._waiting.setdefault(owner, deque()).append((job, urgent))
        try:
            self._pool.submit(self._serve)
        except RuntimeError:
            self.drop(owner)
            raise

    def drop(self, owner: JobOwner) -> list[str]:
        """Remove the jobs of an owner that have not begun, and return their names."""
        with self._lock:
            return [job for job, _ in self._waiting.pop(owner, ())]

    def close(self) -> None:
        """Remove all jobs that have not begun. The threads end with the running jobs."""
        with self._lock:
            self._waiting.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _serve(self) -> None:
        # A job that may not begin yet is started by the next thread whose job ends.
        while (taken := self._take()) is not None:
            owner, job, urgent = taken
            try:
                owner.run(job)
            finally:
                with self._lock:
                    self._n_background -= not urgent
                    self._running[owner] -= 1
                    if not self._running[owner]:
                        del self._running[owner]

    def _take(self) -> tuple[JobOwner, str, bool] | None:
        with self._lock:
            for wanted in (True, False):
                if not wanted and self._n_background >= self._most:
                    return None
                for owner, jobs in self._waiting.items():
                    found = next((one for one in jobs if one[1] is wanted), None)
                    if found is None or self._running[owner] >= self._most:
                        continue
                    jobs.remove(found)
                    del self._waiting[owner]
                    if jobs:
                        self._waiting[owner] = jobs  # the owner's next turn comes last
                    self._running[owner] += 1
                    self._n_background += not wanted
                    return owner, *found
        return None


@dataclass(frozen=True, eq=False)
class Changed:
    """An event: the drawing has a new version."""

    version: int


class Entry:
    """A drawing, its jobs, and its watchers."""

    def __init__(self, key: str, drawing: Drawing, workers: WorkQueue) -> None:
        self.key = key
        self.drawing = drawing
        self._watchers: list[Callable[[Event | Changed], None]] = []
        self._lock = Lock()
        self.work = Work(drawing, workers, self.emit)
        self.work.pause()  # no jobs run until there is a watcher

    @property
    def watched(self) -> bool:
        """Whether there is a watcher."""
        return bool(self._watchers)

    def watch(self, watcher: Callable[[Event | Changed], None]) -> Callable[[], None]:
        """Subscribe ``watcher`` to events of any thread. Return a function that unsubscribes it.

        Without a watcher no jobs run.
        """
        with self._lock:
            self._watchers.append(watcher)
            self.work.resume()

        def stop() -> None:
            with self._lock:
                if watcher in self._watchers:
                    self._watchers.remove(watcher)
                if not self._watchers:
                    self.work.pause()

        return stop

    def emit(self, event: Event | Changed) -> None:
        """Send an event to all watchers."""
        with self._lock:
            watchers = tuple(self._watchers)
        for watcher in watchers:
            watcher(event)


class Drawings:
    """The open drawings by key, within a limit on memory.

    If memory is short, the least recently used drawings release what can be computed again. If that
    is not enough, drawings without a watcher are closed, and finally a new drawing is refused. All
    large allocations are counted in ``memory`` before they are made.
    """

    def __init__(self, memory_limit: int = MEMORY_LIMIT, guarantee: Any = None) -> None:
        self.memory_limit = memory_limit
        self.guarantee = guarantee
        """a calibrated ``ConformalMasks`` for all drawings, or None"""
        self.memory = MemoryBudget(memory_limit, self._make_room)
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._lock = Lock()
        self._workers = Workers(_THREADS, "setwise-work")

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        """The approximate number of bytes that all drawings hold."""
        return self.memory.used

    def add(self, drawing: Drawing) -> Entry:
        """Add a drawing. Raise ``MemoryError`` if there is no memory for it."""
        # A mask of the drawing must fit in beside the drawings that have watchers.
        with self._lock:
            kept = sum(one.drawing.nbytes for one in self._entries.values() if one.watched)
        if kept + drawing.most_nbytes > self.memory_limit:
            raise self.memory.refusal()
        drawing.guarantee = self.guarantee
        drawing.count_in(self.memory)
        self._forget_until(lambda: len(self._entries) < MOST_DRAWINGS)
        entry = Entry(token_urlsafe(9), drawing, self._workers)
        with self._lock:
            if len(self._entries) >= MOST_DRAWINGS:
                raise MemoryError(
                    f"at most {MOST_DRAWINGS} drawings may be open: close another one first"
                )
            self._entries[entry.key] = entry
        return entry

    def get(self, key: str) -> Entry | None:
        """Return the drawing with this key and mark it as used, or return None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def _make_room(self, wanted: int, user: object, forget: bool) -> None:
        """Release levels, then drawings without watchers, until ``wanted`` bytes fit."""

        def fits() -> bool:
            return self.memory.fits(wanted)

        with self._lock:
            drawings = [(one.watched, one.drawing) for one in self._entries.values()]
        drawings.sort(key=lambda pair: pair[0])
        while drawings:  # no variable here may keep a closed drawing in memory
            if fits():
                return
            drawing = drawings.pop(0)[1]
            if drawing is not user and not self.memory.uses(drawing):
                drawing.release()
            del drawing
        if forget:
            self._forget_until(fits, user)

    def _forget_until(self, holds: Callable[[], bool], user: object = None) -> None:
        """Close drawings without watchers, the least recently used first."""
        for key in tuple(self._entries):
            if holds():
                return
            with self._lock:
                entry = self._entries.get(key)
                if entry is None or entry.watched or entry.drawing is user:
                    continue
                del self._entries[key]
            entry.work.close()
            del entry

    def close(self) -> None:
        """End all jobs. The threads end after their running jobs."""
        with self._lock:
            entries = tuple(self._entries.values())
            self._entries.clear()
        for entry in entries:
            entry.work.close()
        self._workers.close()
