"""One step of a diverse list: MAP inference in the field with the terms of the diversity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._diverse._carried_bound import CarriedBound
from setwise.inference._diverse._multipliers._search import HammingSearch
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._map._enumerate import FEW_LABELINGS, count_labelings
from setwise.inference._map._methods import METHODS as MAP_METHODS
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map

METHODS = ("multipliers", "branches", *MAP_METHODS)

# Messages are tried too if the gap is above the share _NEAR of a ball's height, on fields of up to
# _SMALL variables, for _PASSES passes. They find better labellings: with four labels on 400 pixels
# the gaps are 1.2 instead of 1.7, and 0.5 with four times as many passes. On larger fields they
# would help too, but cost more.
_NEAR, _SMALL, _PASSES = 0.01, 1500, 40


class GreedyStep:
    """The steps of one list, with warm starts from earlier flows and labellings."""

    def __init__(self, method: str, n_jobs: int | None) -> None:
        self._method, self._n_jobs = method, n_jobs
        self._search = HammingSearch(n_jobs, branches=method == "branches")
        self._bounds = CarriedBound()

    def first(self, problem: StepProblem) -> MapResult:
        """Return the best labelling of a field without an addition."""
        if self._search.takes_by_cut(problem):
            return self._multipliers(problem)
        return self._moves(problem.field, [None])

    def next(self, problem: StepProblem, inits: list[IntArray]) -> MapResult:
        """Return the best labelling of a problem; moves start from each of ``inits``."""
        field = problem.field
        if self._method not in ("auto", "multipliers", "branches"):
            return solve_map(field, self._method, init=inits[0], n_jobs=self._n_jobs)
        if self._method != "auto":
            return self._bounded(field, self._multipliers(problem))
        if self._search.takes_by_cut(problem):
            return self._multipliers(problem)
        if count_labelings(field) <= FEW_LABELINGS:
            return solve_map(field, "enumerate")
        if not problem.balls:
            return self._moves(field, [None, *inits])
        return self._bounded(field, self._with_messages(problem, self._multipliers(problem)))

    def _moves(self, field: Field, inits: Sequence[IntArray | None]) -> MapResult:
        """Return the best labelling of moves from all starts; other methods use one start."""
        found = solve_map(field, tol=np.inf, init=inits[0], n_jobs=self._n_jobs)
        by_messages = _by_messages(field) and not field.is_submodular
        if found.interrupted:
            return found
        if MAP_METHODS[found.method].gives_bound or by_messages:
            return solve_map(field, init=inits[-1], n_jobs=self._n_jobs)
        for init in inits[1:]:
            other = solve_map(field, tol=np.inf, init=init, n_jobs=self._n_jobs)
            if other.value < found.value:
                found = other
            if other.interrupted:
                return replace(found, interrupted=True)
        return self._bounds.improve(field, found, MapOptions.read(field, n_jobs=self._n_jobs))

    def _multipliers(self, problem: StepProblem) -> MapResult:
        found = self._search.solve(problem)
        by_cut = not problem.balls
        return MapOptions.read(problem.field).result(
            found.labels,
            found.value,
            found.bound,
            method="cut" if by_cut and found.bound > -np.inf else "multipliers",
            n_iter=found.n_iter,
            converged=True,
            sums=None if by_cut else Sums(found.magnitude),
        )

    def _with_messages(self, problem: StepProblem, found: MapResult) -> MapResult:
        """Return the better of the answer and of a few passes of messages that start from it."""
        field = problem.field
        near, small = found.gap <= _NEAR * problem.height, field.n_variables <= _SMALL
        if near or not small or not _by_messages(field):
            return found
        passed = solve_map(field, "messages", init=found.labels, max_iter=_PASSES)
        bound = max(found.bound, passed.bound)
        better = passed if passed.value < found.value else found
        if better is passed:
            self._search.offer(passed.labels)
        return MapOptions.read(field).improved(better, bound, passed.interrupted)

    def _bounded(self, field: Field, found: MapResult) -> MapResult:
        """Return the answer with the bound of the relaxation, if no cut gave one."""
        if self._search.is_exact or found.interrupted:
            return found
        options = MapOptions.read(field, n_jobs=self._n_jobs)
        found = options.improved(found, options.problem.trivial, False)
        return self._bounds.improve(field, found, options)


def _by_messages(field: Field) -> bool:
    return MAP_METHODS["messages"].obstacle(field) is None
