"""Many drawings side by side, within one limit on memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from secrets import token_urlsafe
from threading import Lock

from setwise.app._drawing import Drawing
from setwise.app._drawing_answers import Event
from setwise.app._drawing_work import Work

MEMORY_LIMIT = 2 * 2**30
MOST_DRAWINGS = 200


@dataclass(frozen=True, eq=False)
class Changed:
    """The drawing has another version."""

    version: int
    by: object
    """who changed it"""
    whole: bool
    """whether more than one stroke has changed"""


class Entry:
    """A drawing, its work, and who watches it."""

    def __init__(self, key: str, drawing: Drawing, quick: Executor, slow: Executor) -> None:
        self.key = key
        self.drawing = drawing
        self._watchers: list[Callable[[Event | Changed], None]] = []
        self._lock = Lock()
        self.work = Work(drawing, quick, slow, self.tell)

    @property
    def watched(self) -> bool:
        """Whether anybody would miss it."""
        return bool(self._watchers)

    def watch(self, watcher: Callable[[Event | Changed], None]) -> Callable[[], None]:
        """Tells a watcher every event, from any thread, until what comes back is called."""
        with self._lock:
            self._watchers.append(watcher)

        def stop() -> None:
            with self._lock:
                if watcher in self._watchers:
                    self._watchers.remove(watcher)

        return stop

    def tell(self, event: Event | Changed) -> None:
        """Tells all watchers."""
        with self._lock:
            watchers = tuple(self._watchers)
        for watcher in watchers:
            watcher(event)


class Drawings:
    """Drawings by name; the ones used longest ago let go of what can be computed again.

    If that is not enough, those that nobody watches are forgotten, and if that is not, a new one
    is refused.
    """

    def __init__(self, memory_limit: int = MEMORY_LIMIT) -> None:
        self.memory_limit = memory_limit
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._lock = Lock()
        self._quick = ThreadPoolExecutor(1, "setwise-look")
        self._slow = ThreadPoolExecutor(2, "setwise-prove")

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        """About what all of them hold."""
        return sum(entry.drawing.nbytes for entry in tuple(self._entries.values()))

    def add(self, drawing: Drawing) -> Entry:
        """A place for a drawing; ``MemoryError`` in one sentence where there is none."""
        with self._lock:
            self._make_room(drawing.most_nbytes, keep=None)
            entry = Entry(token_urlsafe(9), drawing, self._quick, self._slow)
            self._entries[entry.key] = entry
            return entry

    def get(self, key: str) -> Entry | None:
        """The drawing of this name, which is now the one used last; None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            self._make_room(entry.drawing.most_nbytes - entry.drawing.nbytes, keep=entry)
            return entry

    def _make_room(self, wanted: int, keep: Entry | None) -> None:
        def fits() -> bool:
            return self.nbytes + wanted <= self.memory_limit

        others = [entry for entry in self._entries.values() if entry is not keep]
        for entry in others:
            if fits():
                break
            entry.drawing.release()
        for entry in others:
            if fits() and (keep is not None or len(self._entries) < MOST_DRAWINGS):
                return
            if not entry.watched:
                entry.work.close()
                del self._entries[entry.key]
        if keep is None and not (fits() and len(self._entries) < MOST_DRAWINGS):
            raise MemoryError(
                f"the drawings would take more than {self.memory_limit / 2**20:.0f} MiB: "
                "close another one first, or open a smaller image"
            )

    def close(self) -> None:
        """Ends all work; the threads end as soon as what they do lets them."""
        with self._lock:
            for entry in self._entries.values():
                entry.work.close()
            self._entries.clear()
        self._quick.shutdown(wait=False, cancel_futures=True)
        self._slow.shutdown(wait=False, cancel_futures=True)
