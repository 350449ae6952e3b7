"""Diversities, by name, with the laws they obey: what is listed here is tested, by every law.

Each takes the number of variables, for edges. A law is True or False; False means that a
counterexample exists among lists of labellings of two or three variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from setwise import diversities as d


@dataclass(frozen=True)
class Entry:
    make: Callable[[int], d.Diversity]
    monotone: bool
    submodular: bool
    steps: bool = True
    """Whether its greedy step is a sum of potentials; otherwise all labellings are tried."""


def chain(n: int) -> np.ndarray:
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).reshape(-1, 2)


def half_power(counts: np.ndarray) -> np.ndarray:
    return 3.0 + 2.0 * counts**0.7


def starts_with_zero(labels: np.ndarray) -> bool:
    return len(labels) > 0 and labels[0] == 0


DIVERSITIES: dict[str, Entry] = {
    "div-m-best": Entry(lambda n: d.DivMBest(0.7), True, False),
    "hamming-ball": Entry(lambda n: d.HammingBall(2.0, 0.5), False, True),
    "wide-hamming-ball": Entry(lambda n: d.HammingBall(5.0, 0.1), False, True),
    "variables": Entry(lambda n: d.VariableCoverage("min1", 0.7), True, True),
    "variables-by-root": Entry(lambda n: d.VariableCoverage("sqrt", 0.7), True, True),
    "variables-in-regions": Entry(
        lambda n: d.VariableCoverage("sqrt", 0.7, regions=np.arange(n) // 2, consistency=0.6),
        False,
        True,
    ),
    "ball-coverage": Entry(lambda n: d.BallCoverage(2.0, 1), True, True, steps=False),
    "ball-coverage-bound": Entry(lambda n: d.BallCoverageBound(2.0, 1), False, True),
    "labels": Entry(lambda n: d.LabelDiversity("min1", 1.5, parsimony=0.0), True, True),
    "labels-by-root": Entry(lambda n: d.LabelDiversity("sqrt", 1.5, parsimony=0.0), True, True),
    "labels-with-parsimony": Entry(lambda n: d.LabelDiversity("min1", 1.5), False, True),
    "labels-by-root-with-parsimony": Entry(lambda n: d.LabelDiversity("sqrt", 1.5), False, True),
    "labels-by-logarithm": Entry(lambda n: d.LabelDiversity("log1p", 1.5), False, True),
    "labels-but-background": Entry(
        lambda n: d.LabelDiversity("log1p", 1.5, parsimony=0.8, background=0), False, True
    ),
    "groups": Entry(
        lambda n: d.GroupCoverage([[0, 1], [1]], "log1p", 2.0, parsimony=0.0), True, True, False
    ),
    "groups-of-labellings": Entry(
        lambda n: d.GroupCoverage(
            [starts_with_zero, [[0] * n, [1] * n], [1]], "sqrt", 1.5, parsimony=0.0
        ),
        True,
        True,
        False,
    ),
    "groups-with-parsimony": Entry(
        lambda n: d.GroupCoverage([[0, 1], [1]], "min1", 2.0), False, True
    ),
    "transitions": Entry(
        lambda n: d.TransitionDiversity(chain(n), "sqrt", 1.5, parsimony=0.0), True, True, False
    ),
    "transitions-with-parsimony": Entry(
        lambda n: d.TransitionDiversity(chain(n), "min1", 1.5), False, True
    ),
    "sum-of-coverages": Entry(
        lambda n: d.BallCoverage(1.0, 1) + 0.5 * d.LabelDiversity("sqrt", 2.0, parsimony=0.0),
        True,
        True,
        False,
    ),
    "sum-of-submodular": Entry(
        lambda n: d.HammingBall(2.0, 0.4) + d.LabelDiversity("min1", 0.5), False, True
    ),
    "own-concave": Entry(lambda n: d.LabelDiversity(half_power, 0.5, parsimony=2.0), False, True),
}
