"""Points of a calibration, tried once each: a method, a temperature and a scale of the unaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._deadline import Deadline
from setwise._foundation._interrupts import whole
from setwise._foundation._pool import Pool
from setwise._foundation._progress import stops
from setwise.fields._field import Field
from setwise.inference._calibration._calibrated import (
    UNARIES,
    CalibrationProgress,
    calibrated_marginals,
)
from setwise.inference._map._ground import ground
from setwise.inference._marginals._methods import METHODS

# what "auto" chooses from, where the marginals are not exact; of equals the first
CANDIDATES = ("trees", "projection", "mean_field", "belief_propagation")


class Point(NamedTuple):
    """What is tried."""

    method: str
    temperature: float
    scale: float


class Ended(Exception):
    """No point is to be tried any more: the callback, Ctrl-C or the time limit."""


@dataclass(frozen=True, eq=False)
class Cases:
    """Labelled fields, and how their marginals are scored."""

    fields: list[Field]
    truths: list[IntArray]
    score: Callable[[FloatArray, IntArray], FloatArray]
    options: dict[str, Any]
    """Of ``marginals``."""

    @property
    def has_potentials(self) -> bool:
        """Whether any field has some: without, a scale of the unaries is a temperature."""
        return any(one.potentials for one in self.fields)

    @property
    def counts(self) -> FloatArray:
        """How many labelled variables each field has."""
        return np.array([np.count_nonzero(truth >= 0) for truth in self.truths], np.float64)

    def candidates(self) -> tuple[str, ...]:
        """The methods that take all fields; exact marginals have no other beside them."""
        grounded = [ground(one).field for one in self.fields]
        first = METHODS.choose(grounded[0])[0]
        if not self.has_potentials:  # exact by any
            return (first,)
        if first == "elimination" and all(METHODS.choose(f)[0] == first for f in grounded):
            return (first,)
        taken = (m for m in CANDIDATES if all(METHODS[m].obstacle(f) is None for f in grounded))
        return (*taken, UNARIES)

    def sum_of(self, k: int, point: Point) -> float:
        """The sum of the scores of field k."""
        known = self.truths[k] >= 0
        if not known.any():
            return 0.0
        post = whole(calibrated_marginals(self.fields[k], point, self.options))
        return float(self.score(post.probabilities[known], self.truths[k][known]).sum())


@dataclass(eq=False)
class Trials:
    """What was tried, in turn: the points, and for each the sums of scores (number of fields,)."""

    cases: Cases
    pool: Pool
    deadline: Deadline
    callback: Callable[[CalibrationProgress], object] | None
    n_points: int | None
    """Of a grid; None where points follow each other."""
    points: dict[Point, FloatArray] = field(default_factory=dict)
    began: float = field(default_factory=perf_counter)
    _wants_end: bool = False

    def sums(self, point: Point) -> FloatArray:
        """Of a point, tried if it was not; raises ``Ended`` where something ended the search."""
        if point in self.points:
            return self.points[point]
        if self._wants_end:
            raise Ended
        indices = range(len(self.cases.fields))
        try:
            found = self.deadline.run(self.pool.map, lambda k: self.cases.sum_of(k, point), indices)
        except KeyboardInterrupt:
            if not self.points:
                raise
            raise Ended from None
        self.deadline.armed = True  # from now on there is an answer
        self.points[point] = np.array(found)
        done = len(self.points)
        progress = CalibrationProgress(
            n_iter=done,
            value=float(np.sum(found) / self.cases.counts.sum()),
            bound=-inf,
            relative_gap=inf,
            seconds=perf_counter() - self.began,
            n_points=done if self.n_points is None else self.n_points,
            method=point.method,
            temperature=point.temperature,
            scale=point.scale,
        )
        # after the last of a grid there is nothing to end
        self._wants_end = stops(self.callback, progress) and done != self.n_points
        return self.points[point]
