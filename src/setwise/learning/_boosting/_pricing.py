"""The search for the next weak learner, and the bound that comes with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS
from setwise.learning._boosting._master import MasterSolution
from setwise.learning._boosting._problem import Column, WeakLearnerSearch
from setwise.learning._boosting._restricted import Restricted
from setwise.learning._boosting._timed import Timed

# The share of the best multipliers in those that the search sees. It steadies the bound; whether
# the fit needs fewer learners for it depends on the data.
_SMOOTHING = 0.5
# A learner in use has an edge of 1, to the tolerance of the linear program.
_VIOLATION = 1e-7
# Sums behind an edge: the planes' multipliers, their slopes, and the responses.
_SUMS = 4


class DualPoint(NamedTuple):
    r"""Multipliers of planes, summed up: what they make of the scores, and of the offsets.

    For multipliers that keep to the constraints on the slacks and for all weak learners h

    .. math:: 1^\top w + C R(f) \ge \text{height}
        + \sum_j w_j (1 - \langle \text{weights}, h_j \rangle) ,

    so that height / max(1, edge) is a lower bound if no learner has more than that edge: the
    multipliers may be scaled. ``size`` is the magnitude of the terms that the edge was summed from:
    where the risk pulls both ways they are as large as C, and cancel.
    """

    weights: FloatArray
    height: float
    edge: float = 0.0
    size: float = 0.0

    @property
    def bound(self) -> float:
        """What no weak learners and weights can fall below."""
        return self.height / max(1.0, self.edge)

    @property
    def rounding(self) -> float:
        """By how much the bound may be too low for the rounding of the edge alone."""
        return _SUMS * EPS * self.size * self.bound if self.edge > 1.0 else 0.0


class Pricing:
    """Finds violated weak learners and keeps the best dual point.

    The multipliers of a linear program jump from vertex to vertex. The search therefore sees a
    mean of the new ones and the best ones so far (Wentges), which are in the convex set of the dual
    too; where it finds nothing that the new ones call violated, it is asked again with those alone.
    """

    def __init__(self, search: WeakLearnerSearch, timed: Timed | None = None) -> None:
        self._search, self._timed = search, timed or Timed()
        self.best = DualPoint(np.zeros(0), 0.0)  # R >= 0: no plane is needed for a bound of 0

    def __call__(self, problem: Restricted, model: MasterSolution) -> list[Column]:
        """The violated columns that are not in use yet, best first."""
        planes = problem.planes
        allowed = problem.C / len(model.slacks)
        sums = np.bincount(planes.slack, model.multipliers, len(model.slacks))
        multipliers = model.multipliers * (allowed / np.maximum(sums, allowed))[planes.slack]
        now = DualPoint(planes.descent(multipliers), float(multipliers @ planes.offsets))
        # While the best function is zero the best multipliers are those that led nowhere.
        if self.best.height > 0 and problem.best.w.any():
            found = self._ask(problem, _mean(self.best, now), now)
            if found:
                return found
        return self._ask(problem, now, now)

    def _ask(self, problem: Restricted, point: DualPoint, now: DualPoint) -> list[Column]:
        columns = checked_columns(self._timed.ask("search", self._search, point.weights), problem)
        edge = max(_edge(point, column, problem) for column in columns)
        if not self._search.exact:  # it may miss a learner that it found before
            edge = max(edge, float(_edges_in_use(point, problem).max(initial=0.0)))
        if point.height / max(1.0, edge) > self.best.bound:
            size = max(_size(point, column, problem) for column in columns)
            self.best = point._replace(edge=edge, size=size)
        return [
            column
            for column in columns
            if _edge(now, column, problem) > 1.0 + _VIOLATION
            and not problem.responses.resembles(column)
        ]

    def meet(self, column: Column, problem: Restricted) -> None:
        """Hold the best dual point against a new column, if the search may have missed it."""
        if not self._search.exact and self.best.height > 0:
            edge = _edge(self.best, column, problem)
            self.best = self.best._replace(edge=max(self.best.edge, edge))


def _mean(center: DualPoint, now: DualPoint) -> DualPoint:
    weights = _SMOOTHING * center.weights + (1 - _SMOOTHING) * now.weights
    return DualPoint(weights, _SMOOTHING * center.height + (1 - _SMOOTHING) * now.height)


def _edge(point: DualPoint, column: Column, problem: Restricted) -> float:
    return float(point.weights[problem.responses.where(column)] @ column.response)


def _size(point: DualPoint, column: Column, problem: Restricted) -> float:
    weights = point.weights[problem.responses.where(column)]
    return float(np.abs(weights) @ np.abs(column.response))


def _edges_in_use(point: DualPoint, problem: Restricted) -> FloatArray:
    edges: FloatArray = problem.responses.coefficients(point.weights[None, :])[0]
    return edges


def checked_columns(columns: list[Column], problem: Restricted) -> list[Column]:
    """What a search said, if it fits the scores."""
    if not columns:
        raise ValueError("search must return at least one column, got none")
    lengths = np.diff(problem.responses.offsets)
    for column in columns:
        if not isinstance(column.segment, int | np.integer):
            raise TypeError(
                "search must return segments that are integers, "
                f"got {type(column.segment).__name__}"
            )
        if not 0 <= column.segment < len(lengths):
            raise ValueError(
                f"search must return segments between 0 and {len(lengths) - 1}, "
                f"got {column.segment}"
            )
        if np.shape(column.response) != (lengths[column.segment],):
            raise ValueError(
                f"search must return responses of shape ({lengths[column.segment]},) on segment "
                f"{column.segment}, got {np.shape(column.response)}"
            )
        if not np.isfinite(column.response).all():
            raise ValueError("search must return finite responses, got one that is not")
    return columns
