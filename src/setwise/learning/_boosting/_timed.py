"""Questions to the risk and to the search, with the time that they took and the limit of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from setwise._foundation._arguments import FloatArray
from setwise._foundation._deadline import Deadline
from setwise._foundation._timings import Stopwatch

A = TypeVar("A")


class Timed:
    """Asks, unless the time is over, and writes down how long the answers took."""

    def __init__(self, time_limit: object = None) -> None:
        self.deadline, self.watch = Deadline.of(time_limit, armed=False), Stopwatch()

    def ask(self, whom: str, oracle: Callable[[FloatArray], A], numbers: FloatArray) -> A:
        """What the oracle says."""
        self.deadline.check()
        self.watch.lap("program")
        answer = oracle(numbers)
        self.watch.lap(whom)
        return answer
