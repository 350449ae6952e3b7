r"""The best point for a set of fields: that of a grid, or where steps along four lines end.

Unaries are multiplied by :math:`\alpha = a / t` and all other terms by :math:`\beta = 1 / t`. A
search begins at :math:`\beta = 1` or 1/8, whichever is better, with :math:`\alpha = 1`, and goes
along four lines: both (the temperature alone), one for the other (more of the unaries, less of the
potentials, down to nothing), :math:`\beta` and :math:`\alpha`; by factors of 2 as long as the score
falls, then of :math:`2^{1/2}` and :math:`2^{1/4}`. It has no ends that the unit of the energies
could lie beyond. Methods that are far behind after a stride are left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from setwise._foundation._arguments import BoolArray
from setwise.inference._calibration._calibrated import UNARIES
from setwise.inference._calibration._trials import Point, Trials

BOTH, TRADE, OTHERS, ALONE = (1, 1), (-1, 1), (0, 1), (1, 0)
STARTS = (0, 0), (0, -12)
STRIDES = (4, 2, 1)  # in factors of 2^(1/4)
FARTHEST = 80  # from the start: a million
WORTH = 1e-4  # of the score, what a step must gain to be taken
BEHIND = 0.1  # of the best method's score, what finer strides will not make up for

Place = tuple[int, int]
Found = tuple[Place, float]  # and its score


def best_of_grid(trials: Trials, points: Sequence[Point], inside: BoolArray) -> Point:
    """The first point of the least score over the fields inside."""
    return min(points, key=lambda point: _score(trials, point, inside))


def searched(trials: Trials, methods: Sequence[str], inside: BoolArray) -> Point:
    """The best point of all methods for the fields inside, none of the others looked at."""
    found = {method: _begun(trials, method, inside) for method in methods}
    for stride in STRIDES:
        for method, start in found.items():
            found[method] = _descended(trials, method, inside, start, stride)
        limit = min(score for _, score in found.values()) * (1.0 + BEHIND)
        found = {method: at for method, at in found.items() if at[1] <= limit}
    best = min(found, key=lambda method: found[method][1])
    return _point(best, found[best][0])


def _score(trials: Trials, point: Point, inside: BoolArray) -> float:
    return float(trials.sums(point)[inside].sum())


def _is_one_line(trials: Trials, method: str) -> bool:
    """Whether there are no potentials, so that a scale of the unaries is a temperature."""
    return method == UNARIES or not trials.cases.has_potentials


def _begun(trials: Trials, method: str, inside: BoolArray) -> Found:
    """The better start, or the first place towards high temperatures that has a score."""
    starts = STARTS[:1] if _is_one_line(trials, method) else STARTS
    place, lowest = min(
        ((p, _score(trials, _point(method, p), inside)) for p in starts), key=lambda at: at[1]
    )
    while lowest == inf and place[1] > -FARTHEST:
        place = _step(place, BOTH, -STRIDES[0])
        lowest = _score(trials, _point(method, place), inside)
    return place, lowest


def _descended(trials: Trials, method: str, inside: BoolArray, start: Found, stride: int) -> Found:
    """Where no step of the stride is worth it."""
    lines = (BOTH,) if _is_one_line(trials, method) else (BOTH, TRADE, OTHERS, ALONE)
    at, moved = start, True
    while moved:
        moved = False
        for line in lines:
            for step in (-stride, stride):
                there = _along(trials, method, inside, at, (line, step))
                if there != at:  # the way back is known
                    at, moved = there, True
                    break
    return at


def _along(
    trials: Trials, method: str, inside: BoolArray, start: Found, way: tuple[Place, int]
) -> Found:
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
    return Point(method, 2.0 ** (-others / 4), 2.0 ** ((unaries - others) / 4))
