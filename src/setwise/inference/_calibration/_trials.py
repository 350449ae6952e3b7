"""The trials of a calibration: methods, temperatures and scales of the unaries, each tried once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._clock import Deadline
from setwise._foundation._progress import stops
from setwise._foundation._search import attempt, completed
from setwise._foundation._threads import Pool
from setwise.fields._field import Field
from setwise.inference._calibration._calibrated import (
    UNARIES,
    CalibrationProgress,
    calibrated_marginals,
)
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._marginals._methods import METHODS

# the candidates of "auto" if marginals are not exact; of equal scores the first is taken
CANDIDATES = ("trees", "projection", "mean_field", "belief_propagation")


class Point(NamedTuple):
    """A method, a temperature and a scale to try."""

    method: str
    temperature: float
    scale: float


class Ended(Exception):
    """An exception that ends the trials: by the callback, Ctrl-C or the time limit."""


@dataclass(frozen=True, eq=False)
class Cases:
    """Labelled fields with the scoring of their marginals."""

    fields: list[Field]
    truths: list[IntArray]
    score: Callable[[FloatArray, IntArray], FloatArray]
    options: dict[str, Any]
    """The options of ``marginals``."""

    @property
    def has_potentials(self) -> bool:
        """Whether any field has potentials. If not, a scale of the unaries is a temperature."""
        return any(one.potentials for one in self.fields)

    @property
    def counts(self) -> FloatArray:
        """The number of labelled variables of each field."""
        return np.array([np.count_nonzero(truth >= 0) for truth in self.truths], np.float64)

    def candidates(self) -> tuple[str, ...]:
        """Return the methods that accept all fields, or one alone if that is exact."""
        grounded = [Conditioned.of(one).field for one in self.fields]
        first = METHODS.choose(grounded[0])[0]
        if not self.has_potentials:  # without potentials any method is exact
            return (first,)
        if first == "elimination" and all(METHODS.choose(f)[0] == first for f in grounded):
            return (first,)
        taken = (m for m in CANDIDATES if all(METHODS[m].obstacle(f) is None for f in grounded))
        return (*taken, UNARIES)

    def sum_of(self, k: int, point: Point) -> float:
        """Return the sum of the scores of field k."""
        known = self.truths[k] >= 0
        if not known.any():
            return 0.0
        post = completed(calibrated_marginals(self.fields[k], point, self.options))
        return float(self.score(post.probabilities[known], self.truths[k][known]).sum())


@dataclass(eq=False)
class Trials:
    """The points that were tried, in this order, with their sums of scores per field."""

    cases: Cases
    pool: Pool
    deadline: Deadline
    callback: Callable[[CalibrationProgress], object] | None
    n_points: int | None
    """The number of points of a grid; None for a search."""
    points: dict[Point, FloatArray] = field(default_factory=dict)
    began: float = field(default_factory=perf_counter)
    _wants_end: bool = False

    def sums(self, point: Point) -> FloatArray:
        """Return the sums of a point, which is tried if needed. Raise ``Ended`` at the end."""
        if point in self.points:
            return self.points[point]
        if self._wants_end:
            raise Ended
        indices = range(len(self.cases.fields))
        found, ended = attempt(
            self.deadline.run, self.pool.map, lambda k: self.cases.sum_of(k, point), indices
        )
        if ended and not self.points:
            raise KeyboardInterrupt
        if found is None:
            raise Ended
        self.deadline.armed = True  # from here on there is an answer
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
        # after the last point of a grid the search is complete
        self._wants_end = stops(self.callback, progress) and done != self.n_points
        return self.points[point]
