r"""The best point for a set of fields: that of a grid, or where steps along three lines end.

Unaries are multiplied by :math:`\alpha = a / t` and all other terms by :math:`\beta = 1 / t`. A
search begins at 1 and 1 and goes along three lines: both (the temperature alone), :math:`\beta`
(how much the potentials count, down to nothing) and :math:`\alpha`, by factors of 2 as long as the
score falls, then by :math:`\sqrt 2`. It has no ends that the unit of the energies could lie beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from setwise._foundation._arguments import BoolArray
from setwise.inference._calibration._calibrated import UNARIES
from setwise.inference._calibration._trials import Point, Trials

BOTH, OTHERS, ALONE = (1, 1), (0, 1), (1, 0)
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
    lines = (BOTH,) if alone else (BOTH, OTHERS, ALONE)
    place = (0, 0)
    lowest = _score(trials, _point(method, place), inside)
    while lowest == inf and place[1] > -FARTHEST:  # to where every label has a probability
        place = _step(place, BOTH, -2)
        lowest = _score(trials, _point(method, place), inside)
    for stride in STRIDES:
        moved = True
        while moved:
            moved = False
            for line in lines:
                for signed in (-stride, stride):
                    went = False
                    while True:
                        there = _step(place, line, signed)
                        if np.abs(there).max() > FARTHEST:
                            break
                        score = _score(trials, _point(method, there), inside)
                        if not score < lowest - WORTH * abs(lowest):
                            break
                        place, lowest, moved, went = there, score, True, True
                    if went:  # the way back is known
                        break
    return _point(method, place)


def _step(place: Place, line: Place, count: int) -> Place:
    return place[0] + count * line[0], place[1] + count * line[1]


def _point(method: str, place: Place) -> Point:
    unaries, others = place
    return Point(method, 2.0 ** (-others / 2), 2.0 ** ((unaries - others) / 2))
