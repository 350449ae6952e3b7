"""The linear program of boosting: planes below the risk against weak learners."""

from __future__ import annotations

from math import frexp, ldexp
from typing import Any, NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._imports import load

# The codes of the dual and the primal simplex method in HiGHS.
_DUAL, _PRIMAL = 1, 4
# The tolerance of HiGHS, by default 1e-7, at a hundredth for gaps that bounds of boosting must
# close. HiGHS admits 1e-10, near its rounding errors. The linear program cannot close smaller gaps.
ACCURACY = 1e-9
# The limit of simplex steps per row and column, and at least in total. Beyond, the method cycles:
# fits with 300 rows and C up to 1e4 took at most half a step per row and column.
_STEPS, _LEAST_STEPS = 50, 20_000


class MasterSolution(NamedTuple):
    """The optimal weights (K,), slacks (n_slacks,), multipliers of planes (P,), and value."""

    w: FloatArray
    slacks: FloatArray
    multipliers: FloatArray
    value: float


class Master:
    r"""A linear program that grows by rows and columns and is solved with warm starts.

    .. math:: \min_{w \ge 0,\ \xi \ge 0} 1^\top w + \frac{C}{n} \sum_i \xi_i \quad \text{s.t.} \quad
        \xi_{i(p)} \ge b_p + \sum_j a_{pj} w_j \quad \text{for each plane } p

    with n = 1 slack for equation (9) and one slack per example for equation (3). HiGHS solves the
    dual,

    .. math:: \max_{\lambda \ge 0} \sum_p b_p \lambda_p \quad \text{s.t.} \quad
        -\sum_p a_{pj} \lambda_p \le 1 \ \ \forall j, \qquad
        \sum_{p:\, i(p) = i} \lambda_p \le \frac{C}{n} \ \ \forall i

    (equation (10); the factor 1/m that (10a) lacks is part of b). Its basis has as many rows as
    there are weak learners, which are fewer than planes. A new plane is a variable of the dual: the
    basis stays feasible, and the primal simplex method continues from it. A new weak learner is a
    row, and the dual simplex method continues.

    Weights of any sign cost abs(w_j), and their rows are also bounded by -1 from below.

    The tolerances of the solver are absolute. Therefore slacks are divided by ``risk`` and the
    objective by min(1, C ``risk``), where 1 is the cost of a weight. Both are rounded to powers of
    two, so that no digit changes.

    Parameters
    ----------
    C : float
    n_slacks : int
    risk : float
        The scale of the slacks, positive: the risk without weak learners.
    signed : bool
        Whether weights may be negative.
    """

    def __init__(
        self, C: float, n_slacks: int = 1, risk: float = 1.0, *, signed: bool = False
    ) -> None:
        # It is imported on demand, because `import setwise` must not load a solver.
        highspy = load("highspy")
        self._highs: Any = highspy.Highs()
        self._solved = highspy.HighsModelStatus.kOptimal
        self._infinity = highspy.kHighsInf
        for option, value in (
            ("output_flag", False),
            ("presolve", "off"),  # presolve would discard the basis
            ("solver", "simplex"),
            ("parallel", "off"),
            ("primal_feasibility_tolerance", ACCURACY),
            ("dual_feasibility_tolerance", ACCURACY),
        ):
            self._highs.setOptionValue(option, value)
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._risk = _power_of_two(risk)
        self._cost = min(1.0, _power_of_two(C * self._risk))
        self._share = self._cost / self._risk
        nothing = np.zeros(n_slacks, np.int32)
        self._highs.addRows(
            n_slacks,
            np.full(n_slacks, -self._infinity),
            np.full(n_slacks, C / n_slacks / self._share),
            0,
            nothing,
            nothing[:0],
            np.empty(0),
        )
        self._C = C
        self._signed = signed
        self._least = -1.0 if signed else -self._infinity
        self.n_slacks = n_slacks
        self.n_columns = 0
        self.n_planes = 0
        self._strategy = _PRIMAL

    def add_planes(self, slack: IntArray, offsets: FloatArray, coefficients: FloatArray) -> None:
        """Add r planes: ``slack[p]`` is at least offsets[p] + coefficients[p] @ w."""
        r, width = len(offsets), 1 + self.n_columns
        rows = np.empty((r, width), np.int32)
        rows[:, 0] = slack
        rows[:, 1:] = np.arange(self.n_slacks, self.n_slacks + self.n_columns)
        values = np.empty((r, width))
        values[:, 0] = 1.0
        values[:, 1:] = -self._share * coefficients
        self._highs.addCols(
            r,
            offsets / self._risk,
            np.zeros(r),
            np.full(r, self._infinity),
            r * width,
            np.arange(0, r * width, width, dtype=np.int32),
            rows.ravel(),
            values.ravel(),
        )
        self.n_planes += r
        self._strategy = _PRIMAL

    def add_columns(self, coefficients: FloatArray) -> None:
        """Add weights. ``coefficients`` (P, r) are their coefficients in each plane."""
        planes, r = coefficients.shape
        self._highs.addRows(
            r,
            np.full(r, self._least),
            np.ones(r),
            r * planes,
            np.arange(0, r * planes, planes, dtype=np.int32) if planes else np.zeros(r, np.int32),
            np.tile(np.arange(planes, dtype=np.int32), r),
            -self._share * coefficients.T.ravel(),
        )
        self.n_columns += r
        self._strategy = _DUAL

    def drop_planes(self, planes: IntArray) -> None:
        """Delete planes. The solution stays optimal if their multipliers are zero."""
        self._highs.deleteCols(len(planes), planes.astype(np.int32))
        self.n_planes -= len(planes)

    def solve(self) -> MasterSolution:
        """Solve with a warm start, or without one if that fails.

        At large C, whose problems are badly scaled, the simplex method may fail in both cases, or
        exceed its limit of steps. Then the interior point method is used, which also ends in a
        basis.
        """
        steps = _STEPS * (self.n_slacks + self.n_columns + self.n_planes)
        self._highs.setOptionValue("simplex_iteration_limit", max(steps, _LEAST_STEPS))
        self._highs.setOptionValue("simplex_strategy", self._strategy)
        self._highs.run()
        if self._highs.getModelStatus() != self._solved:
            self._highs.clearSolver()
            self._highs.setOptionValue("simplex_strategy", _DUAL)
            self._highs.run()
        if self._highs.getModelStatus() != self._solved:
            self._highs.clearSolver()
            self._highs.setOptionValue("solver", "ipm")
            self._highs.run()
            self._highs.setOptionValue("solver", "simplex")
        status = self._highs.getModelStatus()
        if status != self._solved:
            said = self._highs.modelStatusToString(status)
            raise RuntimeError(
                f"the linear program of boosting was not solved at C={self._C:g} ({said}): lower C"
            )
        solution = self._highs.getSolution()
        prices = np.array(solution.row_dual)
        slacks, w = np.maximum(prices[: self.n_slacks], 0.0), prices[self.n_slacks :]
        return MasterSolution(
            w=self._cost * (w if self._signed else np.maximum(w, 0.0)),
            slacks=self._risk * slacks,
            multipliers=self._share * np.maximum(np.array(solution.col_value), 0.0),
            value=self._cost * float(self._highs.getInfo().objective_function_value),
        )


def _power_of_two(x: float) -> float:
    """Return the largest power of two that is at most x > 0."""
    return float(ldexp(1.0, frexp(x)[1] - 1))
