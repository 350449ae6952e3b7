"""Time limits: a deadline that polls look at, and that ends a search as Ctrl-C does.

Searches end at ``KeyboardInterrupt`` with the best they have. ``TimeUp`` is one, so that whatever
holds of an answer after Ctrl-C holds of one after the limit; the call that was given the limit
knows which of the two it was, and says so in ``reason``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Any, TypeVar

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import as_number

R = TypeVar("R")

# What deadlines read; the tests have another one, whose hands they move.
clock: Callable[[], float] = perf_counter


class TimeUp(KeyboardInterrupt):
    """The time limit of a call is over."""


class Deadline:
    """When a call has to end, and whether that ended it.

    It strikes once, as Ctrl-C does: who is ended by it may write the answer down in peace. One that
    is not ``armed`` does not strike: before a fit has its first weights there is no answer.
    """

    def __init__(self, seconds: float | None = None, *, armed: bool = True) -> None:
        self.seconds, self.armed = seconds, armed
        self._end = inf if seconds is None else clock() + seconds
        self.struck = False

    @classmethod
    def of(cls, time_limit: object, *, armed: bool = True) -> Deadline:
        """An argument ``time_limit``: seconds from now, None for no limit; or a caller's own."""
        if isinstance(time_limit, cls):
            return time_limit
        return cls(as_time_limit(time_limit), armed=armed)

    def over(self) -> bool:
        """Whether the time is over, which counts as a strike."""
        if self.armed and self._end < inf and not self.struck:
            self.struck = clock() >= self._end
        return self.struck

    def check(self) -> None:
        """Raise ``TimeUp`` once, when the time is over."""
        if not self.struck and self.over():
            raise TimeUp

    def run(self, function: Callable[..., R], *arguments: object) -> R:
        """What the function says; when the time is over its polls raise, or it never begins."""
        if self._end == inf:
            return function(*arguments)
        if self.over():
            raise TimeUp
        try:
            return _core.heed(self.check, function, *arguments)
        except KeyboardInterrupt:  # a call within may have caught it, and have had no answer
            if self.struck:
                raise TimeUp from None
            raise

    @property
    def inherited(self) -> Any:
        """Itself, as the ``time_limit`` of a call within the one that was given the limit."""
        return self

    @property
    def sentence(self) -> str:
        """Why a call ended, in words that go on a sentence."""
        return f"time_limit of {self.seconds:g} s reached"

    def added_to(self, reason: str) -> str:
        """The reasons of a result, and that the limit ended it, if it did."""
        return f"{reason}; {self.sentence}" if self.struck else reason


def as_time_limit(time_limit: object) -> float | None:
    """Seconds, not negative; None for no limit."""
    if time_limit is None:
        return None
    return as_number(time_limit, "time_limit", nonnegative=True)


def shielded(function: Callable[..., R], *arguments: Any) -> R:
    """What a function of the user's says: no time limit strikes in calls that it makes.

    A search that it calls would end early, and the function might take a part for the whole.
    """
    return _core.heed(None, function, *arguments) if _core.heeds() else function(*arguments)
