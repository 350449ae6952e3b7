"""Cutting planes over the weak learners in use."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray, IntArray, as_array
from setwise.learning._boosting._dual_point import DualPoint
from setwise.learning._boosting._master import Master, MasterSolution
from setwise.learning._boosting._planes import ScorePlanes, as_row
from setwise.learning._boosting._problem import Column, ExamplewiseRisk, Risk, SofteningRisk
from setwise.learning._boosting._responses import Responses, SharedResponses
from setwise.learning._boosting._smoothed import Smoothed
from setwise.learning._boosting._timed import Timed
from setwise.learning._relative_gap import BELOW_LEAST

# Violations below this share of the risk at zero are rounding errors. With 1e-9, a fit at C = 1e8
# ends with a gap of 9e-4 (tests/test_estimators_struct_boost_surrogates.py).
_ROUNDING = 1e-10
# The factor by which the steps of the line search grow, from the best weights towards the model's
# optimum, a step of 1. The first is _GROWTH^-3, since the minimum on the line is usually far from
# that optimum: from _GROWTH^-2 on a few learners may stay the zero function. On 22 fits a factor of
# 2 takes a quarter more rounds and evaluations of the risk.
_GROWTH = 3.0
# Planes without a multiplier in _IDLE_SOLUTIONS solutions are idle. They are dropped when their
# share exceeds _IDLE_SHARE.
_IDLE_SOLUTIONS, _IDLE_SHARE = 20, 0.2
# With fewer scores (samples times columns of a code) the linear program is small: one slack per
# example is faster, and no soft risk is needed before it. A quarter of it changes no fit.
MANY_SCORES = 1000
_INFINITE = 1e20  # HiGHS treats larger numbers as infinite


class Incumbent(NamedTuple):
    """The best weights (K,), their objective, and their scores (S,), if known."""

    w: FloatArray
    value: float
    scores: FloatArray | None = None


class _RiskCut(NamedTuple):
    """The value of the risk at some scores, and planes that touch it there."""

    risk: float
    slack: IntArray
    heights: FloatArray
    slopes: FloatArray | csr_array

    def at(self, move: FloatArray) -> FloatArray:
        """Return the heights of the planes after a move of the scores."""
        heights: FloatArray = self.heights + self.slopes @ move
        return heights

    def take(self, rows: IntArray) -> _RiskCut:
        return _RiskCut(self.risk, self.slack[rows], self.heights[rows], self.slopes[rows])


class Restricted:
    """The problem min 1'w + C R(f) over the columns in use, solved by cutting planes.

    With few planes, the optimum of the model is far away: large weights of one learner cancel those
    of another, and the resulting function can be nearly zero or worse than zero. Therefore the risk
    is evaluated on the way to it. A line search from the best weights, with a small first step,
    finds the point where the objective starts to increase, and adds planes there. The best weights
    never become worse.

    If the risk has a soft version and there are many scores, descent on the soft risk comes first.
    The linear program gets the weak learners only after ``harden``. The optimum of a risk that is
    soft itself is not at a vertex, so the descent comes first for any number of scores.

    If ``grouped``, the penalty of a shared learner is the Euclidean norm of its weights, for which
    only the descent is available.
    """

    def __init__(
        self,
        risk: Risk,
        C: float,
        *,
        examplewise: bool,
        shared: bool = False,
        grouped: bool = False,
        timed: Timed | None = None,
    ) -> None:
        self._risk = risk
        self.grouped = grouped
        self._timed = timed or Timed()
        self._examplewise = examplewise
        self.C = C
        self.n_cuts = 0
        offsets = checked_offsets(risk.offsets)
        n_scores = int(offsets[-1])
        zero = np.zeros(n_scores)
        if shared and len(set(np.diff(offsets).tolist())) > 1:
            raise ValueError(
                "risk.offsets must cut the scores into equal segments for shared columns, got "
                f"{offsets.tolist()}"
            )
        self.shared = shared
        self.responses: Responses | SharedResponses = (
            SharedResponses(offsets) if shared else Responses(offsets)
        )
        self.planes = ScorePlanes(n_scores)
        cut = self._ask(zero)
        if C * cut.risk >= _INFINITE:
            raise ValueError(
                f"C times the risk of zero scores must be below {_INFINITE:g}, "
                f"got {C:g} times {cut.risk:g}"
            )
        self._rounding = _ROUNDING * cut.risk
        self._master = Master(C, len(cut.heights), cut.risk if cut.risk > 0 else 1.0, signed=shared)
        self._idle: IntArray = np.empty(0, np.int64)
        self._add(cut, zero)
        self.zero = C * cut.risk
        self.best = Incumbent(np.empty(0), self.zero, zero)
        self._columns: list[Column] = []
        self.soft: Smoothed | None = None
        smooth = getattr(risk, "temperature", None) is not None
        if cut.risk > 0 and (smooth or (not examplewise and n_scores >= MANY_SCORES)):
            self.soft = _softened(risk, C, cut.risk, self._timed, grouped=grouped)
        if grouped and cut.risk > 0 and (self.soft is None or not smooth):
            raise TypeError(
                "risk must have a temperature, and softened() a kernel, for penalty='group', got "
                f"{type(risk).__name__}"
            )

    def joint(self, edges: FloatArray) -> float:
        """Return the edge of a learner, given the edges of its weights, (width,)."""
        return float(np.linalg.norm(edges) if self.grouped else edges.max())

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, one per weight. Those of a shared learner lie side by side."""
        columns = self.responses.columns
        if not self.shared:
            return tuple(columns)
        width = self.responses.width
        for column in columns[len(self._columns) // width :]:
            self._columns += [replace(column, segment=segment) for segment in range(width)]
        return tuple(self._columns)

    @property
    def scores(self) -> FloatArray:
        """The scores of the best weights, (S,)."""
        if self.best.scores is None:
            self.best = self.best._replace(scores=self.responses.scores(self.best.w))
        return cast(FloatArray, self.best.scores)

    def minimize(self, floor: float, share: float, bound: float) -> MasterSolution:
        """Add cutting planes until the best value is close to the optimum of the model.

        The difference must be at most ``floor``, or a ``share`` of the distance of the model from
        the bound of the whole problem, which limits the gain of further weak learners. The loop
        also ends if the last planes changed nothing: their violation is then below the tolerance of
        the linear program, although C times the violation may be large.
        """
        before: tuple[float, bytes, bytes] | None = None
        while True:
            model = self._master.solve()
            self._idle = np.where(model.multipliers > 0, 0, self._idle + 1)
            enough = max(floor, share * (model.value - bound))
            now = self.best.value, model.w.tobytes(), model.slacks.tobytes()
            if self.best.value - model.value <= enough or now == before:
                return model
            before = now
            if not self._search_line(model):
                return model

    def soften(self, bound: float) -> DualPoint:
        """Descend on the soft risk, as accurately as the gap to the bound requires."""
        assert self.soft is not None
        point = self.soft.minimize(self.best.value, bound)
        self.n_cuts += 1
        if point.value < self.best.value:
            w = point.w
            if not self.shared:
                own = [[column.segment] for column in self.responses.columns]
                w = np.take_along_axis(w, np.array(own, np.int64).reshape(-1, 1), 1)
            self.best = Incumbent(w.ravel(), point.value)
        return DualPoint(point.weights, point.height)

    def harden(self) -> None:
        """Change to the linear program, with all columns and the plane at the best weights."""
        self.soft = None
        for column in self.responses.columns:
            self._enter(column)
        # The value so far is a sum over steps, with their rounding errors.
        scores = self.scores
        cut = self._ask(scores)
        self.best = self.best._replace(value=float(np.abs(self.best.w).sum()) + self.C * cut.risk)
        self._add(cut, scores)

    def dual(self, model: MasterSolution) -> DualPoint:
        """Return the multipliers of a solution, scaled to satisfy the constraints on the slacks."""
        allowed = self.C / len(model.slacks)
        sums = np.bincount(self.planes.slack, model.multipliers, len(model.slacks))
        shares = (allowed / np.maximum(sums, allowed))[self.planes.slack]
        multipliers = model.multipliers * shares
        return DualPoint(self.planes.descent(multipliers), float(multipliers @ self.planes.offsets))

    def add_column(self, column: Column) -> None:
        """Add a weak learner with weights of zero to the problem."""
        self.responses.append(column)
        self.best = self.best._replace(w=np.append(self.best.w, np.zeros(self.responses.width)))
        if self.soft is None:
            self._enter(column)
        elif not self.soft.add(column):
            if self.grouped:
                raise ValueError(
                    "search must return responses that single precision holds for penalty='group'"
                )
            self.harden()

    def resembles(self, column: Column) -> bool:
        """Return whether a column in use has the same response up to rounding."""
        return (self.soft or self.responses).resembles(column)

    def _enter(self, column: Column) -> None:
        self._master.add_columns(self.planes.columns(self.responses.spread(column)))

    def drop_idle(self) -> None:
        """Drop planes that had no multiplier for many solutions."""
        idle = self._idle >= _IDLE_SOLUTIONS
        if np.count_nonzero(idle) > _IDLE_SHARE * len(idle):
            self._master.drop_planes(np.flatnonzero(idle))
            kept = np.flatnonzero(~idle)
            self.planes.keep(kept)
            self._idle = self._idle[kept]

    def _search_line(self, model: MasterSolution) -> bool:
        """Walk towards the model's optimum, and add planes where the objective stops decreasing.

        Return whether planes were added.
        """
        start, before = self.best, self.scores
        goal = self.responses.scores(model.w)
        step = _GROWTH**-3
        while True:
            step = min(step, 1.0)
            scores = before + step * (goal - before)
            w = start.w + step * (model.w - start.w)
            cut = self._ask(scores)
            size = float(np.abs(w).sum())
            value = size + self.C * cut.risk
            if value < self.best.value:
                self.best = Incumbent(w, value, scores)
            ahead = cut.at(goal - scores)
            rows = np.flatnonzero(ahead > model.slacks[cut.slack] + self._rounding)
            rise = float(np.abs(model.w).sum()) - size + self.C * (ahead.mean() - cut.risk)
            if len(rows) and (rise >= 0 or step == 1.0):
                self._add(cut.take(rows), scores)
                return True
            if step == 1.0:
                return False
            step *= _GROWTH

    def _ask(self, scores: FloatArray) -> _RiskCut:
        self.n_cuts += 1
        if self._examplewise:
            each = cast(ExamplewiseRisk, self._risk).each
            answer = self._timed.ask("risk", each, scores)
            heights, slopes = checked_planes(answer, scores)
            return _RiskCut(float(heights.mean()), np.arange(len(heights)), heights, slopes)
        risk, slope = checked_plane(self._timed.ask("risk", self._risk, scores), scores)
        return _RiskCut(risk, np.zeros(1, np.int64), np.array([risk]), slope[None, :])

    def _add(self, cut: _RiskCut, scores: FloatArray) -> None:
        slopes = as_row(cut.slopes[0]) if isinstance(cut.slopes, np.ndarray) else cut.slopes
        offsets = cut.at(-scores)
        self._master.add_planes(cut.slack, offsets, self.responses.coefficients(cut.slopes))
        self.planes.append(cut.slack, offsets, slopes)
        self._idle = np.concatenate([self._idle, np.zeros(len(offsets), np.int64)])


def _softened(risk: Risk, C: float, zero: float, timed: Timed, *, grouped: bool) -> Smoothed | None:
    """Return the descent on the soft risk, if there is one."""
    if not hasattr(risk, "softened"):
        return None
    softening = cast(SofteningRisk, risk)
    soft = softening.softened()
    return None if soft is None else Smoothed(softening, soft, C, zero, timed, grouped=grouped)


def checked_offsets(offsets: ArrayLike) -> IntArray:
    """Return validated offsets of the segments."""
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
    """Return the value and subgradient of a risk after checking them, as bounds rely on them."""
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
    """Return the values and subgradients of the parts of a risk after checking them."""
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
