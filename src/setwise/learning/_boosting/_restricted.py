"""Cutting planes over the weak learners in use."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray, IntArray, as_array
from setwise.learning._boosting._master import Master, MasterSolution
from setwise.learning._boosting._planes import ScorePlanes, as_row
from setwise.learning._boosting._problem import Column, ExamplewiseRisk, Risk
from setwise.learning._boosting._responses import Responses
from setwise.learning._boosting._timed import Timed
from setwise.learning._room import BELOW_LEAST

# The first step from the best weights towards the model's optimum, which the line search doubles.
# Small, because the model's optimum itself, a step of 1, is seldom where the objective turns.
_STEP, _FACTOR = 0.03, 2.0
# Planes without a multiplier in so many solutions are dropped, when they make up a fifth of all.
_IDLE_SOLUTIONS, _IDLE_SHARE = 20, 0.2
_ROUNDING = 1e-10  # of the risk of no weak learners
_INFINITE = 1e20  # what HiGHS takes for it


class Incumbent(NamedTuple):
    """The best weights (K,), their scores (S,), and their objective."""

    w: FloatArray
    scores: FloatArray
    value: float


class _Cut(NamedTuple):
    """What the risk says of some scores: its value, and planes that touch it there."""

    risk: float
    slack: IntArray
    heights: FloatArray
    slopes: FloatArray | csr_array

    def at(self, move: FloatArray) -> FloatArray:
        """The heights of the planes after a move of the scores."""
        heights: FloatArray = self.heights + self.slopes @ move
        return heights

    def take(self, rows: IntArray) -> _Cut:
        return _Cut(self.risk, self.slack[rows], self.heights[rows], self.slopes[rows])


class Restricted:
    """min 1'w + C R(f) over the columns in use, by cutting planes from the best weights outwards.

    The optimum of the planes' model lies far out where the planes are few: there one weak learner
    is played against the near-negation of another, and what the model takes for the best function
    can be nearly zero, or worse than zero. So the questions lie on the way to it: a line search
    from the best weights met, which begins with a small step, finds where the objective turns, and
    cuts there. The best weights never get worse, nor worse than zero.
    """

    def __init__(
        self, risk: Risk, C: float, *, examplewise: bool, timed: Timed | None = None
    ) -> None:
        self._risk = risk
        self._timed = timed or Timed()
        self._examplewise = examplewise
        self.C = C
        self.n_cuts = 0
        offsets = checked_offsets(risk.offsets)
        n_scores = int(offsets[-1])
        zero = np.zeros(n_scores)
        self.responses = Responses(offsets)
        self.planes = ScorePlanes(n_scores)
        cut = self._ask(zero)
        if C * cut.risk >= _INFINITE:
            raise ValueError(
                f"C times the risk of zero scores must be below {_INFINITE:g}, "
                f"got {C:g} times {cut.risk:g}"
            )
        self._rounding = _ROUNDING * cut.risk
        self._master = Master(C, len(cut.heights), cut.risk if cut.risk > 0 else 1.0)
        self._idle: IntArray = np.empty(0, np.int64)
        self._add(cut, zero)
        self.zero = C * cut.risk
        self.best = Incumbent(np.empty(0), zero, self.zero)

    def minimize(self, floor: float, share: float, bound: float) -> MasterSolution:
        """Cut until the best value is close to the model's.

        Close is ``floor``, or a ``share`` of what the model's value is above the bound of the whole
        problem: the weak learners yet to come can lower it by no more.
        """
        while True:
            model = self._master.solve()
            self._idle = np.where(model.multipliers > 0, 0, self._idle + 1)
            enough = max(floor, share * (model.value - bound))
            if self.best.value - model.value <= enough or not self._search_line(model):
                return model

    def add_column(self, column: Column) -> None:
        """Put a weak learner into the program, with a weight of zero to begin with."""
        coefficients = self.planes.column(self.responses.where(column), column.response)
        self.responses.append(column)
        self._master.add_column(coefficients)
        self.best = self.best._replace(w=np.append(self.best.w, 0.0))

    def drop_idle(self) -> None:
        """Forget planes that have long had no multiplier."""
        idle = self._idle >= _IDLE_SOLUTIONS
        if np.count_nonzero(idle) > _IDLE_SHARE * len(idle):
            self._master.drop_planes(np.flatnonzero(idle))
            kept = np.flatnonzero(~idle)
            self.planes.keep(kept)
            self._idle = self._idle[kept]

    def _search_line(self, model: MasterSolution) -> bool:
        """Cut where the objective turns on the way to the model's optimum; False if nowhere."""
        start = self.best
        goal = self.responses.scores(model.w)
        step = _STEP
        while True:
            step = min(step, 1.0)
            scores = start.scores + step * (goal - start.scores)
            w = start.w + step * (model.w - start.w)
            cut = self._ask(scores)
            value = float(w.sum()) + self.C * cut.risk
            if value < self.best.value:
                self.best = Incumbent(w, scores, value)
            ahead = cut.at(goal - scores)
            rows = np.flatnonzero(ahead > model.slacks[cut.slack] + self._rounding)
            rise = model.w.sum() - w.sum() + self.C * (ahead.mean() - cut.risk)
            if len(rows) and (rise >= 0 or step == 1.0):
                self._add(cut.take(rows), scores)
                return True
            if step == 1.0:
                return False
            step *= _FACTOR

    def _ask(self, scores: FloatArray) -> _Cut:
        self.n_cuts += 1
        if self._examplewise:
            each = cast(ExamplewiseRisk, self._risk).each
            answer = self._timed.ask("risk", each, scores)
            heights, slopes = checked_planes(answer, scores)
            return _Cut(float(heights.mean()), np.arange(len(heights)), heights, slopes)
        risk, slope = checked_plane(self._timed.ask("risk", self._risk, scores), scores)
        return _Cut(risk, np.zeros(1, np.int64), np.array([risk]), slope[None, :])

    def _add(self, cut: _Cut, scores: FloatArray) -> None:
        offsets = cut.at(-scores)
        self._master.add_planes(cut.slack, offsets, self.responses.coefficients(cut.slopes))
        slopes = as_row(cut.slopes[0]) if isinstance(cut.slopes, np.ndarray) else cut.slopes
        self.planes.append(cut.slack, offsets, slopes)
        self._idle = np.concatenate([self._idle, np.zeros(len(offsets), np.int64)])


def checked_offsets(offsets: ArrayLike) -> IntArray:
    """Where the segments of the scores begin, if they do."""
    array = as_array(offsets, "risk.offsets")
    if array.ndim != 1 or len(array) < 2 or array.dtype.kind not in "iu":
        raise TypeError(
            "risk.offsets must be integers, (n_segments + 1,), got "
            f"dtype {array.dtype} and shape {array.shape}"
        )
    checked = array.astype(np.int64)
    if checked[0] != 0 or (np.diff(checked) < 0).any():
        raise ValueError(f"risk.offsets must begin with 0 and not decrease, got {array.tolist()}")
    return checked


def checked_plane(answer: tuple[float, FloatArray], scores: FloatArray) -> tuple[float, FloatArray]:
    """What a risk said, if it can be: a bound made from anything else would be none."""
    value, slope = float(answer[0]), np.asarray(answer[1], np.float64)
    if slope.shape != scores.shape:
        raise ValueError(
            f"risk must return a subgradient of shape {scores.shape}, got {slope.shape}"
        )
    if not (np.isfinite(value) and np.isfinite(slope).all()):
        raise ValueError(f"risk must return finite numbers, got a value of {value}")
    if value < 0 and value < -BELOW_LEAST * float(np.abs(slope) @ (1.0 + np.abs(scores))):
        raise ValueError(f"risk must not be negative, got {value}")
    return value, slope


def checked_planes(
    answer: tuple[FloatArray, csr_array], scores: FloatArray
) -> tuple[FloatArray, csr_array]:
    """The same of the parts of a risk."""
    values, slopes = np.asarray(answer[0], np.float64), csr_array(answer[1])
    if values.ndim != 1 or slopes.shape != (len(values), len(scores)):
        raise ValueError(
            f"risk.each must return values (n,) and subgradients (n, {len(scores)}), got "
            f"{values.shape} and {slopes.shape}"
        )
    if not (np.isfinite(values).all() and np.isfinite(slopes.data).all()):
        raise ValueError("risk.each must return finite numbers, got one that is not")
    sizes = abs(slopes) @ (1.0 + np.abs(scores)) if values.min(initial=0.0) < 0 else 0.0
    if (values < -BELOW_LEAST * sizes).any():
        raise ValueError(f"risk.each must not return negative values, got {values.min():g}")
    return values, slopes
