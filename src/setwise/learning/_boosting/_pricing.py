"""The search for the next weak learner, and the lower bound that it gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.learning._boosting._dual_point import DualPoint
from setwise.learning._boosting._problem import EVERY, Column, WeakLearnerSearch
from setwise.learning._boosting._restricted import Restricted
from setwise.learning._boosting._timed import Timed

# The weight of the best multipliers in the mean that the search gets. It stabilises the bound: on
# 14 fits with up to 250 rows and C from 3 to 300 the work grows by a third without it, and by 1 %
# at 0.25; with a soft risk it changes by 1 %.
_SMOOTHING = 0.5
# A learner is violated if its edge exceeds 1 by more. It is above the tolerance of HiGHS.
_VIOLATION = 1e-7


class Pricing:
    """The search for violated weak learners, which keeps the best dual point.

    The multipliers of a linear program jump from vertex to vertex. Therefore the search gets a mean
    of the new multipliers and the best ones so far (Wentges), which is also feasible in the dual.
    If it finds no learner that is violated under the new multipliers, it is called again with these
    multipliers only.
    """

    def __init__(
        self, search: WeakLearnerSearch, timed: Timed | None = None, *, grouped: bool = False
    ) -> None:
        self._search, self._timed = search, timed or Timed()
        # A search for each segment alone may miss the learner with the largest norm over segments.
        self.exact = bool(search.exact) and (not grouped or getattr(search, "joint", False))
        self.best = DualPoint(np.zeros(0), 0.0)  # 0 bounds any nonnegative risk

    def __call__(self, problem: Restricted, now: DualPoint) -> list[Column]:
        """Return the violated columns that are not in use yet, best first."""
        # While all weights are zero, the best multipliers have not led to any progress.
        if self.best.height > 0 and problem.best.w.any():
            found = self._ask(problem, _mean(self.best, now), now)
            if found:
                return found
        return self._ask(problem, now, now)

    def _ask(self, problem: Restricted, point: DualPoint, now: DualPoint) -> list[Column]:
        columns = checked_columns(self._timed.ask("search", self._search, point.weights), problem)
        if problem.shared:
            columns = [replace(column, segment=EVERY) for column in columns]
        edge = max(_edge(point, column, problem) for column in columns)
        if not self.exact:  # the search may miss a learner that is already in use
            edge = max(edge, _largest_in_use(point, problem))
        if problem.soft is not None:
            problem.soft.met(edge)
        if point.height / max(1.0, edge) > self.best.bound:
            size = max(_size(point, column, problem) for column in columns)
            self.best = point._replace(edge=edge, size=size)
        return [
            column
            for column in columns
            if _edge(now, column, problem) > 1.0 + _VIOLATION and not problem.resembles(column)
        ]

    def meet(self, column: Column, problem: Restricted) -> None:
        """Update the edge of the best dual point if the search may have missed a new column."""
        if not self.exact and self.best.height > 0:
            edge = _edge(self.best, column, problem)
            self.best = self.best._replace(edge=max(self.best.edge, edge))


def _mean(center: DualPoint, now: DualPoint) -> DualPoint:
    weights = _SMOOTHING * center.weights + (1 - _SMOOTHING) * now.weights
    return DualPoint(weights, _SMOOTHING * center.height + (1 - _SMOOTHING) * now.height)


def _edge(point: DualPoint, column: Column, problem: Restricted) -> float:
    return problem.joint(problem.responses.edges(point.weights, column))


def _size(point: DualPoint, column: Column, problem: Restricted) -> float:
    sizes = replace(column, response=np.abs(column.response))
    return problem.joint(problem.responses.edges(np.abs(point.weights), sizes))


def _largest_in_use(point: DualPoint, problem: Restricted) -> float:
    edges: FloatArray = problem.responses.coefficients(point.weights[None, :])[0]
    if problem.grouped:
        norms = np.linalg.norm(edges.reshape(-1, problem.responses.width), axis=1)
        return float(norms.max(initial=0.0))
    return float((np.abs(edges) if problem.shared else edges).max(initial=0.0))


def checked_columns(columns: list[Column], problem: Restricted) -> list[Column]:
    """Return the columns of a search after checking that they fit the scores."""
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
