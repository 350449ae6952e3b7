"""The best labelling of two labels and pairs of any sign, by cutting planes and branching."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._conditioning._magnitude import largest_of_terms
from setwise.inference._map._odd_cycles._program import CutProgram, Solution
from setwise.inference._map._odd_cycles._separation import Separation
from setwise.inference._map._odd_cycles._signed_graph import SignedGraph
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._search import MapSearch

# If fewer triangles and squares than this are violated, longer cycles are searched too, which takes
# more time. Not tuned.
_FEW = 20
MOST_VARIABLES = 5000  # the search for cycles stores a number for each pair of variables
# An edge whose value is this near to 0 or 1 counts as decided. It is above the accuracy of the
# linear program, 1e-9. Not tuned.
_WHOLE = 1e-6


def odd_cycles(field: Field, options: MapOptions) -> MapResult:
    r"""Minimise over two labels by a linear program with odd-cycle inequalities, and by branching.

    With a node of label 0 the energy is :math:`c + \sum_e J_e y_e`, where y says which edges a cut
    crosses and J may have any sign. A cut crosses every cycle C an even number of times, hence

    .. math:: \sum_{e \in F} y_e - \sum_{e \in C \setminus F} y_e \le |F| - 1,
              \qquad F \subseteq C, |F| \text{ odd}.

    Violated inequalities are added, first those of triangles and squares, then of any cycles, until
    none is violated. On planar graphs without unaries the program then has an integer solution. If
    a solution is fractional, an edge is fixed to 0 and to 1 in turn; of the open problems, the one
    with the least bound is next. Each solution is rounded along its surest edges, and improved one
    variable at a time.

    The bound is computed from multipliers, so it does not depend on the solver and holds whenever
    the search ends. Edges whose reduced costs exceed the gap are fixed. A round solves the program,
    or makes a limited number of pivots.
    """
    return _OddCycles(field, options).run()


Limits = tuple[FloatArray, FloatArray]


class _Open(NamedTuple):
    """A problem with some fixed edges. Of problems with equal bounds, the latest comes first."""

    bound: float
    number: int
    fixed: tuple[tuple[int, float], ...]


class _OddCycles(MapSearch):
    method = "odd_cycles"

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        labels = options.start(field) if options.known is None else options.known.labels
        self.best = labels, _energy(field, labels)
        self.bound = min(self.bound, self.best[1])
        self._graph = SignedGraph.of(field)
        self._program = CutProgram(self._graph)
        self._separation = Separation(self._graph)
        size = len(self._graph.edges)
        self._whole: Limits = np.zeros(size), np.ones(size)
        self._lost = FEW_ROUNDINGS * EPS * largest_of_terms(field)
        self.sums = Sums(0.0, self._lost, 4)
        self._open = [_Open(self.bound, 0, ())]
        self._number = 0
        self._closed = inf  # the least bound of the closed problems
        self._now: _Open | None = None
        self._limits = self._whole
        options.watch.lap("set-up")
        self._keep(np.append(labels[self._graph.free], 0))

    def step(self) -> bool:
        if self._now is None:
            self._begin(heappop(self._open))
        if self._now is not None:
            solution = self._program.solve()
            if solution is None:
                return True
            self._measure(solution.multipliers)
            if solution.is_optimal:
                self._keep(self._graph.rounded(solution.y))
            if self._is_settled(self._now.bound):
                self._close(self._now.bound)
            elif solution.is_optimal:
                self._continue(solution)
        work = self._program.work + self._separation.work
        return self._assess() or work > self.options.budget

    def _begin(self, problem: _Open) -> None:
        """Start an open problem, unless its fixed edges contradict each other."""
        lower, upper = (one.copy() for one in self._whole)
        for edge, side in problem.fixed:
            lower[edge] = upper[edge] = side
        limits = self._graph.settled(lower, upper) if problem.fixed else (lower, upper)
        if limits is not None:
            self._now, self._limits = problem, limits
            self._program.set_bounds(*limits)

    def _measure(self, multipliers: FloatArray) -> None:
        """Raise the bound of the present problem. In the first one, fix edges by reduced costs."""
        assert self._now is not None
        assert self.sums is not None
        found = self._program.bound(multipliers, *self._limits)
        lost = max(self.sums.lost, found.sums.lost + self._lost)
        self.sums = Sums(max(self.sums.magnitude, found.sums.magnitude), lost, 4)
        if found.value > self._now.bound:
            self._now = self._now._replace(bound=found.value)
        if self._now.fixed:
            return
        # A labelling with the other side of such an edge is worse than the best one.
        slack = self.options.problem.slack(self.best[1], found.value, self.sums)
        lower, upper = self._whole
        far = found.value + np.abs(found.reduced) > self.best[1] + 2.0 * slack
        far &= lower < upper
        if far.any():
            lower = np.where(far & (found.reduced < 0.0), 1.0, lower)
            upper = np.where(far & (found.reduced > 0.0), 0.0, upper)
            self._whole = self._limits = lower, upper
            self._program.set_bounds(lower, upper)

    def _keep(self, sides: IntArray) -> None:
        """Keep the labelling of a cut after local changes if it is the best so far."""
        labels = self._graph.labels(self._graph.improved(sides))
        value = _energy(self.field, labels)
        if value < self.best[1]:
            self.best = labels, value

    def _continue(self, solution: Solution) -> None:
        """Add violated inequalities to the present problem, or divide it."""
        assert self._now is not None
        y, multipliers, _ = solution
        found = self._separation.short(y)
        if len(found) < _FEW:
            longer = self._separation.any(y)
            found = longer if len(longer) > len(found) else found
        if len(found):
            self._program.drop_idle(multipliers)
            self._program.add(found)
            return
        fraction = np.minimum(y, 1.0 - y)
        if fraction.max(initial=0.0) <= _WHOLE:
            self._close(self._now.bound)
            return
        edge = int(np.argmax(fraction * np.abs(self._graph.weights)))
        likely = float(y[edge] > 0.5)
        for side in (1.0 - likely, likely):
            self._number -= 1
            fixed = (*self._now.fixed, (edge, side))
            heappush(self._open, _Open(self._now.bound, self._number, fixed))
        self._now = None

    def _is_settled(self, bound: float) -> bool:
        value = self.best[1]
        return bound >= value or self.options.problem.is_exact(value, bound, self.sums)

    def _close(self, bound: float) -> None:
        self._closed, self._now = min(self._closed, bound), None

    def _assess(self) -> bool:
        """Update the bound of the search. Return whether it has ended."""
        while self._open and self._now is None and self._is_settled(self._open[0].bound):
            self._close(heappop(self._open).bound)
        value, left = self.best[1], [self._closed, *(one.bound for one in self._open[:1])]
        if self._now is not None:
            left.append(self._now.bound)
        self.bound = max(self.bound, min(*left, value))
        ended = self._now is None and not self._open
        self.converged = ended or self._is_settled(self.bound)
        return self.converged


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels[None])[0])
