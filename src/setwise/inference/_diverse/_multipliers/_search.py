"""The best labelling of a field with functions of Hamming distances, by multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise.diversities._base import distances
from setwise.inference._diverse._multipliers._bound import BallProblem, Bounded
from setwise.inference._diverse._multipliers._pool import LabelingPool
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._relaxation._count_tables import CountTables

# If a gap remains, the multiples _SCALES of the best multipliers are tried too, on fields of at
# most _SMALL entries and in branches. On such fields, recombinations with every kept labelling are
# tried as well. Other multiples give other lists, none of which are consistently better.
_SMALL, _SCALES = 100_000, (0.5, 1.5, 2.0, 3.0)
# Branching ends at a gap of the share _CLOSED of a table's height, or after _MOST_BRANCHES bounds.
# A quarter of the share takes half as many cuts again and leaves gaps a quarter as large. The
# number of bounds matters only if the gap does not close. It is not reached on grids of 400 pixels.
_CLOSED, _MOST_BRANCHES = 0.05, 64


@dataclass(frozen=True, eq=False)
class BallAnswer:
    """A labelling, its energy, and a bound on all labellings, ``-inf`` if there is none.

    ``magnitude`` is the sum of the absolute summands of the bound.
    """

    labels: IntArray
    value: float
    bound: float
    magnitude: float
    n_iter: int


class _Scored(NamedTuple):
    labels: IntArray
    value: float


class HammingSearch:
    """Searches over multipliers, each of which starts from the results of the last.

    With ``branches``, for two labels and a submodular rest, problems with a gap are divided. If the
    labellings of the best mixture differ in a connected part, one subproblem fixes a variable of
    this part to label 1 and the other fixes it to label 0. Each has its own bound, and the least
    one is the bound of the step.
    """

    def __init__(self, n_jobs: int | None, *, branches: bool = False) -> None:
        self._pool = LabelingPool(n_jobs)
        self._branches = branches

    @property
    def is_exact(self) -> bool:
        """Whether the last labellings were found by exact cuts, so that the bound is proved."""
        return self._pool.is_exact

    def takes_by_cut(self, problem: StepProblem) -> bool:
        """Return whether one cut finds the best labelling."""
        if problem.field.n_labels != 2 or problem.balls:
            return False
        self._pool.read(problem)
        return self.is_exact

    def solve(self, problem: StepProblem) -> BallAnswer:
        """Return the best labelling found, and a bound by multipliers for the balls."""
        pool, balls = self._pool, problem.balls
        pool.read(problem)
        kind = np.min_scalar_type(pool.rest.n_labels - 1)
        centers = np.array([ball.center for ball in balls], kind)
        centers = centers.reshape(len(balls), pool.rest.n_variables)
        if not balls or not pool.labelings:
            lost = pool.find(centers[:0], np.zeros(0), share=0.0)
            labels, value = pool.labelings[-1].astype(np.int64), pool.energies[-1]
            if not balls:
                return BallAnswer(labels, value, value - lost, abs(value), 1)
        tables = CountTables([ball.table for ball in balls])
        found = self._multiply(BallProblem(pool, centers, tables))
        pool.forget()
        return found

    def offer(self, labels: IntArray) -> None:
        """Store a labelling that was found elsewhere for later searches."""
        if self._pool.labelings:
            self._pool.add(labels.astype(self._pool.labelings[0].dtype))

    def _multiply(self, problem: BallProblem) -> BallAnswer:
        pool = self._pool
        root = problem.bound()
        best = self._mix_all(problem, self._best_kept(problem), root)
        small = pool.rest.unary.size <= _SMALL
        if best.value - root.bound > problem.tolerance and (small or self._branches):
            for scale in _SCALES:
                pool.find(problem.centers, scale * root.multipliers)
                best = self._mix(problem, self._best_kept(problem, best), pool.labelings[-1])
            for labels in pool.labelings.copy() if small else ():
                best = self._mix(problem, best, labels)
        bounded, n_iter = root, root.n_cuts
        if self._branches and self.is_exact:
            best, bounded, n_iter = self._branch(problem, best, root)
        bound = min(bounded.bound, best.value)
        return BallAnswer(
            best.labels.astype(np.int64), best.value, bound, bounded.magnitude, n_iter
        )

    def _branch(
        self, problem: BallProblem, best: _Scored, root: Bounded
    ) -> tuple[_Scored, Bounded, int]:
        """Return the best labelling found, the least of the bounds, and the number of cuts."""
        leaves, n_cuts = [root], root.n_cuts
        closed = max(problem.tolerance, _CLOSED * problem.tables.spread)
        for _ in range(0, _MOST_BRANCHES, 2):
            leaf = min(leaves, key=lambda node: node.bound)
            variable = self._undecided(leaf)
            if best.value - leaf.bound <= closed or variable is None:
                break
            leaves.remove(leaf)
            for label in (0, 1):
                forced = (*leaf.forced, (variable, label))
                half = problem.bound(forced, leaf.multipliers)
                n_cuts += half.n_cuts
                if half.bound < leaf.bound:  # the bound of the parent is valid too
                    half = half._replace(bound=leaf.bound, magnitude=leaf.magnitude)
                leaves.append(half)
                best = self._mix_all(problem, self._best_kept(problem, best), half)
        return best, min(leaves, key=lambda node: node.bound), n_cuts

    def _undecided(self, node: Bounded) -> int | None:
        """Return a variable of the largest part in which labellings of a mixture differ."""
        if len(node.mixture) < 2:
            return None
        parts = self._pool.recombination.parts(*node.mixture[:2])
        if not parts:
            return None
        largest = max(parts, key=len)
        return int(largest[len(largest) // 2])

    def _best_kept(self, problem: BallProblem, best: _Scored | None = None) -> _Scored:
        """Return the best of the labellings that were found, and of ``best``."""
        values = problem.values()
        k = int(values.argmin())
        if best is not None and best.value <= values[k]:
            return best
        return _Scored(self._pool.labelings[k], float(values[k]))

    def _mix_all(self, problem: BallProblem, best: _Scored, node: Bounded) -> _Scored:
        """Return the better of a labelling and of its recombinations with those of a mixture."""
        for labels in node.mixture:
            if best.value - node.bound <= problem.tolerance:
                break
            best = self._mix(problem, best, labels)
        return best

    def _mix(self, problem: BallProblem, best: _Scored, other: IntArray) -> _Scored:
        """Return the better of a labelling and of its recombination with another."""
        centers, tables = problem.centers, problem.tables
        mixed = self._pool.recombination.between(best.labels, other, centers, tables)
        if mixed is None:
            return best
        heights = tables.heights(distances(mixed, centers))
        value = self._pool.add(mixed) + float(heights.sum())
        return _Scored(mixed, value) if value < best.value else best
