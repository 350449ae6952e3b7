r"""The best point for a set of fields, from a grid or by a search along four lines.

Unaries are multiplied by :math:`\alpha = a / t` and all other terms by :math:`\beta = 1 / t`. A
search begins at :math:`\beta = 1` or 1/8, whichever is better, with :math:`\alpha = 1`. It moves
along four lines: both together (the temperature alone), both in opposite directions (more weight of
the unaries, less of the potentials, down to 0), :math:`\beta` alone and :math:`\alpha` alone. It
moves by factors of 2 as long as the score falls, then of :math:`2^{1/2}` and :math:`2^{1/4}`. Its
range is unbounded in practice, so that the result does not depend on the unit of the energies. A
method whose score is much worse than the best one after the steps of one size is not refined.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from setwise._foundation._arguments import BoolArray
from setwise.inference._calibration._calibrated import UNARIES
from setwise.inference._calibration._trials import Point, Trials

# The most unit steps from the start, a factor of a million. It ends searches whose score falls
# without end, as for fields that are always right.
FARTHEST = 80
# The least improvement of a step, relative to the score. Not tuned.
WORTH = 1e-4
# A method is not refined if its score is worse than the best one by this share. Not tuned.
BEHIND = 0.1

Place = tuple[int, int]
Found = tuple[Place, float]  # a place and its score


def best_of_grid(trials: Trials, points: Sequence[Point], inside: BoolArray) -> Point:
    """Return the first point of the least score over the fields inside."""
    return min(points, key=lambda point: _score(trials, point, inside))


def searched(trials: Trials, methods: Sequence[str], inside: BoolArray) -> Point:
    """Return the best point of all methods for the fields inside, using no other field."""
    found = {method: _begun(trials, method, inside) for method in methods}
    # Places are counted in factors of 2^(1/4), near which the score changes little at the optimum.
    for stride in (4, 2, 1):
        for method, start in found.items():
            found[method] = _descended(trials, method, inside, start, stride)
        limit = min(score for _, score in found.values()) * (1.0 + BEHIND)
        found = {method: at for method, at in found.items() if at[1] <= limit}
    best = min(found, key=lambda method: found[method][1])
    return _point(best, found[best][0])


def _score(trials: Trials, point: Point, inside: BoolArray) -> float:
    return float(trials.sums(point)[inside].sum())


def _is_one_line(trials: Trials, method: str) -> bool:
    """Return whether there are no potentials, so that a scale of the unaries is a temperature."""
    return method == UNARIES or not trials.cases.has_potentials


def _begun(trials: Trials, method: str, inside: BoolArray) -> Found:
    """Return the better start, or the first point with a finite score at higher temperatures."""
    starts = [(0, 0)]
    if not _is_one_line(trials, method):
        starts.append((0, -12))  # beta = 1/8
    place, lowest = min(
        ((p, _score(trials, _point(method, p), inside)) for p in starts), key=lambda at: at[1]
    )
    while lowest == inf and place[1] > -FARTHEST:
        place = _step(place, (1, 1), -4)
        lowest = _score(trials, _point(method, place), inside)
    return place, lowest


def _descended(trials: Trials, method: str, inside: BoolArray, start: Found, stride: int) -> Found:
    """Search until no step of the stride improves the score enough, and return the place."""
    # Both together, one against the other, the other terms alone, and the unaries alone.
    lines = ((1, 1), (-1, 1), (0, 1), (1, 0))[: 1 if _is_one_line(trials, method) else None]
    at, moved = start, True
    while moved:
        moved = False
        for line in lines:
            for step in (-stride, stride):
                there = _along(trials, method, inside, at, (line, step))
                if there != at:  # the score one step back is known
                    at, moved = there, True
                    break
    return at


def _along(
    trials: Trials, method: str, inside: BoolArray, start: Found, way: tuple[Place, int]
) -> Found:
    """Step along a line from a place and its score, as long as the score improves enough."""
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
