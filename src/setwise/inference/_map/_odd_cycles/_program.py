"""The linear program of cuts with odd-cycle inequalities, and bounds from its multipliers."""

from __future__ import annotations

from math import frexp, fsum, ldexp
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise._foundation._imports import load
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._map._odd_cycles._separation import Inequalities
from setwise.inference._map._odd_cycles._signed_graph import SignedGraph

# The feasibility tolerances of HiGHS, whose default is 1e-7 and whose minimum is 1e-10. Bounds are
# computed here from the multipliers, so the tolerance only affects how tight they are. Not tuned.
_ACCURACY = 1e-9
# The solver is stopped when its pivots times rows and columns reach this number, after about a
# tenth of a second, so that a search can be interrupted.
_WORK = 2e7
_LEAST_STEPS = 20  # the least number of pivots, so that large programs make progress; not tuned
# Inequalities that were not tight in this number of solutions are dropped. They are found again if
# they are violated later. Not tuned.
_IDLE = 30


class CutBound(NamedTuple):
    """A lower bound on the energy within bounds of the edges, and a description of its summands."""

    value: float
    reduced: FloatArray
    """(E,): the reduced costs of the edges"""
    sums: Sums


class Solution(NamedTuple):
    """A cut vector, multipliers of the inequalities, and whether they are optimal."""

    y: FloatArray
    multipliers: FloatArray
    is_optimal: bool


class CutProgram:
    r"""The minimum of :math:`c + \sum_e J_e y_e` over :math:`l \le y \le u` and inequalities.

    For any multipliers :math:`\lambda \ge 0` of inequalities :math:`A y \le b`,

    .. math:: c - b^T \lambda + \sum_e \min_{l_e \le y_e \le u_e} (J + A^T \lambda)_e \, y_e

    is a lower bound. It is computed here, from multipliers that need not be those of an optimum, so
    that it does not depend on the solver.
    """

    def __init__(self, graph: SignedGraph) -> None:
        highspy = load("highspy")
        self._graph, self._highs = graph, highspy.Highs()
        self._solved = highspy.HighsModelStatus.kOptimal
        self._not_yet = highspy.HighsModelStatus.kIterationLimit
        self._basic, self._infinity = highspy.HighsBasisStatus.kBasic, highspy.kHighsInf
        for option, value in (
            ("output_flag", False),
            ("presolve", "off"),  # presolving would discard the basis
            ("solver", "simplex"),
            ("parallel", "off"),
            ("primal_feasibility_tolerance", _ACCURACY),
            ("dual_feasibility_tolerance", _ACCURACY),
        ):
            self._highs.setOptionValue(option, value)
        # The tolerances are absolute, so costs are divided by a power of two that makes the largest
        # about 1.
        largest = float(np.abs(graph.weights).max(initial=0.0))
        self._scale = ldexp(1.0, frexp(largest)[1]) if largest > 0.0 else 1.0
        size = len(graph.edges)
        self._all = np.arange(size, dtype=np.int32)
        self._highs.addCols(
            size,
            graph.weights / self._scale,
            np.zeros(size),
            np.ones(size),
            0,
            np.zeros(size, np.int32),
            np.zeros(0, np.int32),
            np.zeros(0),
        )
        none: IntArray = np.zeros(0, np.int64)
        self._rows, self._columns = none, none
        self._signs: FloatArray = np.zeros(0)
        self._limits: FloatArray = np.zeros(0)
        self._idle = none
        self.work = 0.0
        """the sum over all pivots of the rows and columns"""

    @property
    def n_rows(self) -> int:
        """The number of inequalities."""
        return len(self._limits)

    def set_bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Set the bounds of the edges."""
        self._highs.changeColsBounds(len(self._all), self._all, lower, upper)

    def add(self, inequalities: Inequalities) -> None:
        """Add inequalities. The dual simplex method continues from the present basis."""
        sizes = np.diff(inequalities.starts)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        signs = np.where(inequalities.in_f, 1.0, -1.0)
        limits = np.bincount(rows, inequalities.in_f, len(sizes)) - 1.0
        self._highs.addRows(
            len(sizes),
            np.full(len(sizes), -self._infinity),
            limits,
            len(rows),
            inequalities.starts[:-1].astype(np.int32),
            inequalities.edges.astype(np.int32),
            signs,
        )
        self._rows = np.append(self._rows, rows + self.n_rows)
        self._columns = np.append(self._columns, inequalities.edges)
        self._signs = np.append(self._signs, signs)
        self._limits = np.append(self._limits, limits)
        self._idle = np.append(self._idle, np.zeros(len(sizes), np.int64))

    def solve(self) -> Solution | None:
        """Return a solution after some more pivots; None if the solver has failed."""
        size = self.n_rows + len(self._all)
        if size == 0:
            return Solution(np.zeros(0), np.zeros(0), True)
        steps = max(int(_WORK / size), _LEAST_STEPS)
        self._highs.setOptionValue("simplex_iteration_limit", steps)
        self._highs.run()
        if self._highs.getModelStatus() not in (self._solved, self._not_yet):
            self._highs.clearSolver()
            self._highs.run()
        status = self._highs.getModelStatus()
        if status not in (self._solved, self._not_yet):
            return None
        self.work += float(self._highs.getInfo().simplex_iteration_count) * size
        solution = self._highs.getSolution()
        y, prices = np.array(solution.col_value), np.array(solution.row_dual)
        # The solver was stopped too early.
        if len(y) != len(self._all) or len(prices) != self.n_rows:
            y, prices, status = np.zeros(len(self._all)), np.zeros(self.n_rows), self._not_yet
        multipliers = np.maximum(-self._scale * prices, 0.0)
        return Solution(np.clip(y, 0.0, 1.0), multipliers, status == self._solved)

    def bound(self, multipliers: FloatArray, lower: FloatArray, upper: FloatArray) -> CutBound:
        """Return the bound of multipliers."""
        weights = self._graph.weights
        priced = self._signs * multipliers[self._rows]
        reduced = weights + np.bincount(self._columns, priced, len(weights))
        least = np.minimum(lower * reduced, upper * reduced)
        value = fsum(
            [self._graph.constant, *least.tolist(), *(-multipliers * self._limits).tolist()]
        )
        magnitude = float(
            np.abs(weights).sum() + np.abs(priced).sum() + (multipliers * self._limits).sum()
        )
        # Each reduced cost is a sum of at most this number of summands.
        depth = 4.0 + float(np.bincount(self._columns[priced != 0.0]).max(initial=0))
        return CutBound(value, reduced, Sums(magnitude, EPS * depth * magnitude, depth=4))

    def drop_idle(self, multipliers: FloatArray) -> None:
        """Drop the inequalities that have not been tight in several optima."""
        self._idle = np.where(multipliers > 0.0, 0, self._idle + 1)
        idle = self._idle > _IDLE
        if np.count_nonzero(idle) <= 0.2 * self.n_rows:
            return
        status = self._highs.getBasis().row_status
        idle &= np.array([one == self._basic for one in status])
        self._delete(idle)

    def _delete(self, rows: BoolArray) -> None:
        gone = np.flatnonzero(rows).astype(np.int32)
        if len(gone) == 0:
            return
        self._highs.deleteRows(len(gone), gone)
        kept = ~rows[self._rows]
        number = np.cumsum(~rows) - 1
        self._rows, self._columns = number[self._rows[kept]], self._columns[kept]
        self._signs = self._signs[kept]
        self._limits, self._idle = self._limits[~rows], self._idle[~rows]
