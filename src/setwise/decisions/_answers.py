"""The answer of a decision method for a batch of sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS


@dataclass(frozen=True, eq=False)
class Answers:
    """A flat mask and, per set, the expected loss, its error, a bound, and whether it is proved."""

    mask: BoolArray
    expected: FloatArray
    bound: FloatArray
    error: FloatArray
    exact: BoolArray

    @staticmethod
    def best(mask: BoolArray, expected: FloatArray, error: FloatArray) -> Answers:
        """Make answers of proved sets, whose bound is their expected loss up to errors."""
        return Answers(mask, expected, expected - error, error, np.ones(len(expected), np.bool_))


def rounding(n: int, largest: float) -> float:
    """Return the rounding error of an expectation over n elements of numbers up to ``largest``."""
    return FEW_ROUNDINGS * (n + 8) * EPS * largest
