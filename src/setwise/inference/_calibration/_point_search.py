r"""The best point for a set of fields: that of a grid, or where steps along four lines end.

Unaries are multiplied by :math:`\alpha = a / t` and all other terms by :math:`\beta = 1 / t`. A
search begins at :math:`\beta = 1` or 1/8, whichever is better, with :math:`\alpha = 1`, and goes
along four lines: both (the temperature alone), one for the other (more of the unaries, less of the
potentials, down to nothing), :math:`\beta` and :math:`\alpha`; by factors of 2 as long as the score
falls, then by :math:`\sqrt 2`. It has no ends that the unit of the energies could lie beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from setwise._foundation._arguments import BoolArray
from setwise.inference._calibration._calibrated import UNARIES
from setwise.inference._calibration._trials import Point, Trials

BOTH, TRADE, OTHERS, ALONE = (1, 1), (-1, 1), (0, 1), (1, 0)
STARTS = (0, 0), (0, -6)
STRIDES = (2, 1)  # in factors of the root of 2
FARTHEST = 40  # from the start: a million
WORTH = 1e-4  # of the score, what a step must gain to be taken

Place = tuple[int, int]


def best_of_grid(trials: Trials, points: Sequence[Point], inside: BoolArray) -> Point:
    """The first point of the least score over the fields inside."""
    return min(points, key=lambda point: _score(trials, point, inside))


def searched(trials: Trials, methods: Sequence[str], inside: BoolArray) -> Point:
    """The best point of all methods for the fields inside, none of the others looked at."""
    return best_of_grid(trials, [_descended(trials, m, inside) for m in methods], inside)


def _score(trials: Trials, point: Point, inside: BoolArray) -> float:
    return float(trials.sums(point)[inside].sum())


def _descended(trials: Trials, method: str, inside: BoolArray) -> Point:
    """Where no step of the finest stride is worth it."""
    alone = method == UNARIES or not trials.cases.has_potentials
    lines = (BOTH,) if alone else (BOTH, TRADE, OTHERS, ALONE)
    heights = {p: _score(trials, _point(method, p), inside) for p in STARTS[: 1 if alone else 2]}
    place = min(heights, key=lambda p: heights[p])
    lowest = heights[place]
    while lowest == inf and place[1] > -FARTHEST:  # to where every label has a probability
        place = _step(place, BOTH, -2)
        lowest = _score(trials, _point(method, place), inside)
    for stride in STRIDES:
        moved = True
        while moved:
            moved = False
            for line in lines:
                for step in (-stride, stride):
                    there, score = _along(trials, method, inside, (place, lowest), (line, step))
                    if there != place:  # the way back is known
                        place, lowest, moved = there, score, True
                        break
    return _point(method, place)


def _along(
    trials: Trials,
    method: str,
    inside: BoolArray,
    start: tuple[Place, float],
    way: tuple[Place, int],
) -> tuple[Place, float]:
    """From a place and its score, step by step of a line as long as that is worth it."""
    place, lowest = start
    while True:
        there = _step(place, *way)
        if np.abs(there).max() > FARTHEST:
            return place, lowest
        score = _score(trials, _point(method, there), inside)
        if not score < lowest - WORTH * abs(lowest):
            return place, lowest
        place, lowest = there, score


def _step(place: Place, line: Place, count: int) -> Place:
    return place[0] + count * line[0], place[1] + count * line[1]


def _point(method: str, place: Place) -> Point:
    unaries, others = place
    return Point(method, 2.0 ** (-others / 2), 2.0 ** ((unaries - others) / 2))
