"""A clock whose hands move at a chosen reading: time limits strike at a poll, and not at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from setwise import _core
from setwise._foundation import _clock

LIMIT = 60.0


class Clock:
    """Stands still until its reading number ``at``; from then on it is past every limit."""

    def __init__(self, at: float = float("inf")) -> None:
        self.at, self.readings = at, 0

    def __call__(self) -> float:
        self.readings += 1
        return 0.0 if self.readings < self.at else 2.0 * LIMIT


@contextmanager
def counted(at: float = float("inf")) -> Iterator[Clock]:
    """Deadlines look at such a clock, at every poll of a kernel."""
    clock, before = Clock(at), _clock.clock
    _clock.clock = clock
    _core.watch_polls(lambda: None)
    try:
        yield clock
    finally:
        _core.watch_polls(None)
        _clock.clock = before


def moments(readings: int, most: int = 6) -> list[int]:
    """Some readings of a clock, the second and the last among them; the first sets the limit."""
    last = max(readings, 2)
    step = max(1, (last - 2) // (most - 1))
    return sorted({*range(2, last, step), last})
