"""Time limits, and the seconds of a call per phase.

A deadline is polled, and ends a search like Ctrl-C does: searches end at ``KeyboardInterrupt`` with
the best answer so far, and ``TimeUp`` is a subclass. The call that was given the limit
distinguishes the two and reports the time limit in ``reason``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from time import perf_counter
from typing import Any, TypeVar

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import as_number

R = TypeVar("R")

# The clock that deadlines read. Tests replace it by one that they control.
clock: Callable[[], float] = perf_counter


class TimeUp(KeyboardInterrupt):
    """An interrupt for a call whose time limit is reached."""


class Deadline:
    """The time at which a call has to end, and whether it was reached.

    A deadline raises ``TimeUp`` only once, so that the interrupted call can still assemble its
    answer. It does not expire before it is ``armed``, because a fit has no answer before its first
    weights.
    """

    def __init__(self, seconds: float | None = None, *, armed: bool = True) -> None:
        self.seconds, self.armed = seconds, armed
        self._end = inf if seconds is None else clock() + seconds
        self.expired = False

    @classmethod
    def of(cls, time_limit: object, *, armed: bool = True) -> Deadline:
        """Return a deadline for an argument ``time_limit``: seconds, None, or a deadline itself."""
        if isinstance(time_limit, cls):
            return time_limit
        return cls(as_time_limit(time_limit), armed=armed)

    def over(self) -> bool:
        """Return whether the time is over, and remember it."""
        if self.armed and self._end < inf and not self.expired:
            self.expired = clock() >= self._end
        return self.expired

    def check(self) -> None:
        """Raise ``TimeUp`` once, when the time is over."""
        if not self.expired and self.over():
            raise TimeUp

    def run(self, function: Callable[..., R], *arguments: object) -> R:
        """Return ``function(*arguments)``, whose polls raise ``TimeUp`` when the time is over."""
        if self._end == inf:
            return function(*arguments)
        if self.over():
            raise TimeUp
        try:
            return _core.run_with_check(self.check, function, *arguments)
        except KeyboardInterrupt:  # an inner call may have caught TimeUp and raised this instead
            if self.expired:
                raise TimeUp from None
            raise

    @property
    def inherited(self) -> Any:
        """The deadline itself, for passing it on as the ``time_limit`` of an inner call."""
        return self

    @property
    def sentence(self) -> str:
        """The reason for which a call ended, as part of a sentence."""
        return f"time_limit of {self.seconds:g} s reached"

    def added_to(self, reason: str) -> str:
        """Return ``reason``, followed by the time limit if that was reached."""
        return f"{reason}; {self.sentence}" if self.expired else reason


def as_time_limit(time_limit: object) -> float | None:
    """Return a number of seconds after checking that it is nonnegative, or None for no limit."""
    if time_limit is None:
        return None
    return as_number(time_limit, "time_limit", nonnegative=True)


def without_time_limit(function: Callable[..., R], *arguments: Any) -> R:
    """Return ``function(*arguments)`` of a user's function, unaffected by the present time limit.

    Otherwise a search that the function calls could end early, and the function might use an
    incomplete answer.
    """
    return (
        _core.run_with_check(None, function, *arguments)
        if _core.has_check()
        else function(*arguments)
    )


class Timings(Mapping[str, float]):
    """A read-only mapping from phases to seconds, in the order in which the phases began.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.solve_map(sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]))
    >>> list(best.timings), all(seconds >= 0.0 for seconds in best.timings.values())
    (['set-up', 'search', 'answer'], True)
    """

    __slots__ = ("_seconds",)

    def __init__(self, seconds: Iterable[tuple[str, float]] = ()) -> None:
        self._seconds = dict(seconds)

    def __getitem__(self, phase: str) -> float:
        return self._seconds[phase]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seconds)

    def __len__(self) -> int:
        return len(self._seconds)

    @property
    def total(self) -> float:
        """The seconds of all phases."""
        return sum(self._seconds.values())

    def __repr__(self) -> str:
        phases = ", ".join(f"{phase} {seconds:.3g} s" for phase, seconds in self.items())
        return f"Timings({phases})"


class Stopwatch:
    """A stopwatch that assigns the time since its last call to a phase."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last = perf_counter()

    def __contains__(self, phase: str) -> bool:
        return phase in self._seconds

    def lap(self, phase: str) -> None:
        """Add the time since the last lap to a phase."""
        now = perf_counter()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._last
        self._last = now

    def timings(self, phase: str) -> Timings:
        """End the last lap with this phase, and return all laps."""
        self.lap(phase)
        return Timings(self._seconds.items())
