"""A budget for the memory of drawings, whose bytes are counted before they are allocated."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from threading import Lock, get_ident
from time import monotonic, sleep
from weakref import WeakMethod, finalize

from setwise._foundation._threads import PAUSE

# The time limit of a background job in seconds. A call without its own time limit waits at most as
# long for the memory of running jobs. Not tuned.
BACKGROUND_SECONDS = 20.0
# The seconds after which a waiting call may close drawings to get memory, because most jobs end
# sooner. Not tuned.
_FORGET_SECONDS = 2.0


class MemoryBudget:
    """A count of bytes that never exceeds a limit.

    Large allocations are reserved first. If memory is short, ``make_room`` is called with the
    number of bytes, the user who needs them, and whether drawings may be closed. It must not touch
    drawings for which ``uses`` is true, whose jobs run.
    """

    def __init__(
        self, limit: float = inf, make_room: Callable[[int, object, bool], None] | None = None
    ) -> None:
        self.limit = limit
        self.most = 0
        """The largest count so far."""
        # Every counted object refers to this budget until it is freed. A strong reference to the
        # owner of the budget would keep all of them alive.
        self._make_room = WeakMethod(make_room) if make_room is not None else None
        self._counted = 0
        self._lock = Lock()
        # Objects may be freed in any thread, also in one that holds the lock. Their bytes are only
        # noted here and subtracted later.
        self._freed: deque[int] = deque()
        self._users: list[tuple[int, object]] = []
        """the thread and the user of each job that runs"""

    @property
    def used(self) -> int:
        """The bytes that are counted now."""
        with self._lock:
            return self._settle()

    def _settle(self) -> int:
        while self._freed:
            self._counted -= self._freed.popleft()
        return self._counted

    def fits(self, nbytes: int) -> bool:
        """Return whether ``nbytes`` more bytes are within the limit."""
        return self.used + nbytes <= self.limit

    def uses(self, user: object) -> bool:
        """Return whether a job of this user runs."""
        return any(one is user for _, one in tuple(self._users))

    def reserve(self, nbytes: int, user: object = None, *, forget: bool = True) -> None:
        """Count bytes that are about to be allocated. Raise ``MemoryError`` above the limit."""
        if not self._reserve(nbytes, user, forget):
            raise self.refusal()

    def refusal(self) -> MemoryError:
        """Return the error for a lack of memory."""
        return MemoryError(
            f"the drawings would take more than {self.limit / 2**20:.0f} MiB: "
            "close another one first, or open a smaller image"
        )

    def _reserve(self, nbytes: int, user: object, forget: bool) -> bool:
        for attempt in range(2):
            with self._lock:
                if self._settle() + nbytes <= self.limit:
                    self._counted += nbytes
                    self.most = max(self.most, self._counted)
                    return True
            make_room = self._make_room() if self._make_room is not None else None
            if attempt == 0 and make_room is not None:
                make_room(nbytes, user, forget)
        return False

    def release(self, nbytes: int) -> None:
        """Release reserved bytes."""
        self._freed.append(nbytes)

    def share(self, owner: object) -> MemoryShare:
        """Return an empty share, which is closed when its owner is freed."""
        share = MemoryShare(self)
        finalize(owner, share.close).atexit = False
        return share

    @contextmanager
    def holding(
        self,
        wanted: Callable[[], int],
        user: object = None,
        check: Callable[[], None] | None = None,
    ) -> Iterator[MemoryShare]:
        """Hold ``wanted()`` bytes for the duration of a job.

        If memory is short while other jobs run, which will release theirs, wait and call ``check``,
        which may raise an error. All bytes of a job are reserved at once, so that no two jobs wait
        for each other.
        """
        share, begin = MemoryShare(self), monotonic()
        me = get_ident(), user
        while True:
            self._users.append(me)  # now the user's levels stay in memory, as ``wanted`` assumes
            others = any(thread != me[0] for thread, _ in tuple(self._users))
            waited = monotonic() - begin
            try:
                share.grow(wanted(), user, forget=not others or waited > _FORGET_SECONDS)
                break
            except BaseException as error:
                self._users.remove(me)
                late = check is None and waited > BACKGROUND_SECONDS
                if not isinstance(error, MemoryError) or not others or late:
                    raise
            if check is not None:
                check()
            sleep(PAUSE)
        try:
            yield share
        finally:
            self._users.remove(me)
            share.close()


class MemoryShare:
    """Bytes that one owner has reserved."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self.nbytes = 0

    def grow(self, nbytes: int, user: object = None, *, forget: bool = True) -> None:
        """Reserve more bytes. Raise ``MemoryError`` above the limit."""
        self._memory.reserve(nbytes, user, forget=forget)
        self.nbytes += nbytes

    def shrink(self, nbytes: int) -> None:
        """Release some of the bytes."""
        self.nbytes -= nbytes
        self._memory.release(nbytes)

    def hand_over(self, thing: object, nbytes: int) -> None:
        """Transfer some of the bytes to an object. They are released when it is freed."""
        if nbytes > self.nbytes:
            self.grow(nbytes - self.nbytes)
        self.nbytes -= nbytes
        finalize(thing, self._memory.release, nbytes).atexit = False

    def close(self) -> None:
        """Release all bytes."""
        nbytes, self.nbytes = self.nbytes, 0
        self._memory.release(nbytes)
