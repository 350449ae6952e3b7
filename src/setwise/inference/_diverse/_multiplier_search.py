r"""The best labelling of a field with functions of Hamming distances, by multipliers.

Functions of counts :math:`T_s(\mathrm{Ham}(y, c_s))` lie above lines, and each line is a change of
unaries: for every vector of multipliers :math:`\mu`

.. math:: \min_y R(y) + \sum_s T_s(\mathrm{Ham}(y, c_s)) \;\ge\;
    \min_y \Bigl( R(y) - \sum_s \mu_s \mathrm{Ham}(y, c_s) \Bigr)
    + \sum_s \min_k \bigl( T_s(k) + \mu_s k \bigr).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from operator import is_
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._interrupts import whole
from setwise.diversities._base import distances
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.inference._diverse._labeling_mixture import best_mixture
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._diverse._recombination import Recombination
from setwise.inference._flows._two_label_cut import TwoLabelCut
from setwise.inference._map._solve_map import solve_map
from setwise.inference._relaxation._count_tables import CountTables

_MOST_CUTS = 40
_MOST_KEPT = 32
# Of the height of a table: what is left to gain from better multipliers when the search ends.
_SOLVED = 0.01
# Of what a cut pays: what rounding may take from a flow before it is found from nothing. The bound is
# lowered by it.
_LOST = 1e-10
# On fields of so many entries at most, multiples of the best multipliers are tried too where a gap
# stays, and parts of every labelling that is kept.
_SMALL, _SCALES = 100_000, (0.5, 1.5, 2.0, 3.0)


@dataclass(frozen=True, eq=False)
class Found:
    """A labelling, its energy, and a bound on every other, ``-inf`` where there is none.

    ``paid`` is the sum of the sizes of what the bound is a sum of.
    """

    labels: IntArray
    value: float
    bound: float
    paid: float
    n_iter: int


class _Scored(NamedTuple):
    labels: IntArray
    value: float


class HammingSearch:
    r"""Searches over multipliers, one after the other: what one found is where the next starts.

    The best bound is the value of a concave function of the multipliers. Its cutting-plane model is
    the best mixture of the labellings found so far (``best_mixture``); the slopes at the mixture
    are the next multipliers, their best labelling joins the mixture, and the search ends when that
    promises less than a hundredth of a table's height (fully corrective Frank-Wolfe). For two
    labels and a submodular rest R each labelling is one cut, from the flow of the last. Otherwise
    it is what moves find, and bounds nothing.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self._n_jobs = n_jobs
        self._rest: Field | None = None
        self._cut: TwoLabelCut | None = None
        # Labellings in the smallest type that holds them, and their energies in the rest.
        self._pool: list[IntArray] = []
        self._energies: list[float] = []
        # What label 1 costs more than 0, and the energy beyond what a cut counts.
        self._costs: FloatArray = np.zeros(0)
        self._level: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the last field's labellings were cuts, so that its bound is one."""
        return self._cut is not None

    def takes_by_cut(self, problem: StepProblem) -> bool:
        """Whether one cut finds the best labelling."""
        if problem.field.n_labels != 2 or problem.balls:
            return False
        self._rest_of(problem)
        return self.is_exact

    def solve(self, problem: StepProblem) -> Found:
        """The best labelling met, the balls of the problem by multipliers."""
        rest, balls = self._rest_of(problem), problem.balls
        kind = np.min_scalar_type(rest.n_labels - 1)
        centers = np.array([ball.center for ball in balls], kind)
        centers = centers.reshape(len(balls), rest.n_variables)
        if not balls or not self._pool:
            labels, lost = self._best(rest, centers[:0], np.zeros(0), 0.0)
            self._keep(labels, _energy(rest, labels))
            value = self._energies[-1]
            if not balls:
                return Found(labels.astype(np.int64), value, value - lost, abs(value), 1)
        return self._multiply(rest, centers, CountTables([ball.table for ball in balls]))

    def offer(self, labels: IntArray) -> None:
        """A labelling that was found elsewhere, for the searches to come."""
        if self._rest is not None and self._pool:
            labels = labels.astype(self._pool[0].dtype)
            self._keep(labels, _energy(self._rest, labels))

    def _multiply(self, rest: Field, centers: IntArray, tables: CountTables) -> Found:
        counts = [distances(y, centers) for y in self._pool]
        tolerance = _SOLVED * tables.spread
        bound, paid, n_iter, weights = -np.inf, 0.0, 0, None
        while True:
            energies, mixable = np.array(self._energies), np.array(counts, np.float64)
            weights = best_mixture(energies, mixable, tables, 0.1 * tolerance, weights)
            mixed = weights @ mixable
            model = float(weights @ energies) + float(tables.hull_heights(mixed).sum())
            multipliers = -tables.slopes(mixed)
            labels, lost = self._best(rest, centers, multipliers, _LOST)
            self._keep(labels, self._energy_found(rest, labels))
            counts.append(distances(labels, centers))
            parts = [self._energies[-1], *(-multipliers * counts[-1]), *tables.intercepts(mixed)]
            promise = fsum(parts) - lost
            n_iter += 1
            if promise > bound:
                bound, paid = promise, fsum(map(abs, parts))
            if model - promise <= tolerance or n_iter == _MOST_CUTS:
                break
        values = np.array(self._energies) + tables.heights(np.array(counts)).sum(axis=1)
        k = int(values.argmin())
        best = _Scored(self._pool[k], float(values[k]))
        recombination = self._recombination
        for k in np.argsort(-weights)[: np.count_nonzero(weights > 0.01)].tolist():
            if best.value - bound <= tolerance:
                break
            best = self._mix(recombination, rest, best, self._pool[k], centers, tables)
        if best.value - bound > tolerance and rest.unary.size <= _SMALL:
            for scale in _SCALES:
                labels, _ = self._best(rest, centers, scale * multipliers, _LOST)
                best = self._score(rest, best, labels, centers, tables)
            for labels in self._pool.copy():
                best = self._mix(recombination, rest, best, labels, centers, tables)
        # The first is the best labelling of all, without which a mixture would have no anchor.
        del self._pool[1:-_MOST_KEPT], self._energies[1:-_MOST_KEPT]
        bound = min(bound, best.value)
        return Found(best.labels.astype(np.int64), best.value, bound, paid, n_iter)

    def _mix(
        self,
        recombination: Recombination,
        rest: Field,
        best: _Scored,
        other: IntArray,
        centers: IntArray,
        tables: CountTables,
    ) -> _Scored:
        """The better of a labelling and of what parts of another make of it."""
        mixed = recombination.between(best.labels, other, centers, tables)
        return best if mixed is None else self._score(rest, best, mixed, centers, tables)

    def _score(
        self, rest: Field, best: _Scored, labels: IntArray, centers: IntArray, tables: CountTables
    ) -> _Scored:
        """The better of two labellings; the second is kept for the searches to come."""
        self._keep(labels, _energy(rest, labels))
        counts = distances(labels, centers)
        value = self._energies[-1] + float(tables.heights(counts).sum())
        return _Scored(labels, value) if value < best.value else best

    def _rest_of(self, problem: StepProblem) -> Field:
        """The field without the balls; its graph is kept while the other potentials are."""
        rest, unary = self._rest, problem.field.unary
        if rest is None or not _are_same(rest.potentials, problem.others):
            rest = problem.rest()
            self._cut = _as_cut(rest)
        elif not np.may_share_memory(rest.unary, unary):
            rest = rest._over(unary)
        if rest is not self._rest:
            self._recombination = Recombination(rest)
            self._energies = [_energy(rest, labels) for labels in self._pool]
            self._rest, self._level = rest, None
            self._costs = rest.unary[:, -1] - rest.unary[:, 0]
        return rest

    def _best(
        self, rest: Field, centers: IntArray, multipliers: FloatArray, share: float
    ) -> tuple[IntArray, float]:
        """The best labelling for the multipliers, and by how much another may be better.

        A ``share`` of what it pays may be lost to rounding; ``inf`` where nothing is proved.
        """
        if self._cut is not None:
            costs = self._costs - multipliers.sum()
            for center, multiplier in zip(centers, multipliers, strict=True):
                costs += (2.0 * multiplier) * center
            return self._cut.ones(costs, share).view(np.uint8), self._cut.lost
        unary = rest.unary.copy()
        everyone = np.arange(len(unary))
        for center, multiplier in zip(centers, multipliers, strict=True):
            unary[everyone, center] += multiplier
        init = self._pool[-1].astype(np.int64) if self._pool else None
        changed = rest.with_unary(unary)
        found = whole(solve_map(changed, tol=np.inf, init=init, n_jobs=self._n_jobs))
        return found.labels.astype(centers.dtype), np.inf

    def _energy_found(self, rest: Field, labels: IntArray) -> float:
        """The energy of the labelling found last: a cut knows that of its potentials."""
        if self._cut is None:
            return _energy(rest, labels)
        counted = self._cut.value + float(self._costs[labels.view(np.bool_)].sum())
        if self._level is None:
            self._level = _energy(rest, labels) - counted
        return self._level + counted

    def _keep(self, labels: IntArray, energy: float) -> None:
        self._pool.append(labels)
        self._energies.append(energy)


def _are_same(some: tuple[Potential, ...], others: tuple[Potential, ...]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _as_cut(field: Field) -> TwoLabelCut | None:
    if field.n_labels != 2:
        return None
    try:
        return TwoLabelCut(field)
    except ValueError:  # not a cut, or one with too many arcs
        return None


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels.astype(np.int64)[None])[0])
