"""What a method says about the sets of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise._foundation._certificate import EPS


@dataclass(frozen=True, eq=False)
class Answers:
    """A flat mask, and for each set what it costs, a bound, the error, and whether it is best."""

    mask: BoolArray
    expected: FloatArray
    bound: FloatArray
    error: FloatArray
    exact: BoolArray

    @staticmethod
    def best(mask: BoolArray, expected: FloatArray, error: FloatArray) -> Answers:
        """Make answers of sets that are proved best: the bound is their cost, but for errors."""
        return Answers(mask, expected, expected - error, error, np.ones(len(expected), np.bool_))


def rounding(n: int, largest: float) -> float:
    """Return the rounding of an expectation over n elements of numbers up to ``largest``."""
    return 8 * (n + 8) * EPS * largest
