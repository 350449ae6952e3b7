"""Calls of the risk and of the search, with a stopwatch and a time limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from setwise._foundation._arguments import FloatArray
from setwise._foundation._clock import Deadline, Stopwatch

A = TypeVar("A")


class Timed:
    """A caller of oracles that checks the time limit and records the time per oracle."""

    def __init__(self, time_limit: object = None) -> None:
        self.deadline, self.watch = Deadline.of(time_limit, armed=False), Stopwatch()

    def ask(self, whom: str, oracle: Callable[[FloatArray], A], numbers: FloatArray) -> A:
        """Return ``oracle(numbers)``, and add its time to that of ``whom``."""
        self.deadline.check()
        self.watch.lap("program")
        answer = oracle(numbers)
        self.watch.lap(whom)
        return answer
