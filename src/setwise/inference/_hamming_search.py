r"""The best labelling of a field with functions of Hamming distances, by multipliers.

Functions of counts :math:`T_s(\mathrm{Ham}(y, c_s))` lie above lines, and each line is a change of
unaries: for every vector of multipliers :math:`\mu`

.. math:: \min_y R(y) + \sum_s T_s(\mathrm{Ham}(y, c_s)) \;\ge\;
    \min_y \Bigl( R(y) - \sum_s \mu_s \mathrm{Ham}(y, c_s) \Bigr)
    + \sum_s \min_k \bigl( T_s(k) + \mu_s k \bigr).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from setwise.fields._base import Potential
from setwise.fields._cardinality import CardinalityPotential
from setwise.fields._field import Field
from setwise.functions._arguments import FloatArray, IntArray
from setwise.inference._hull import CountTables
from setwise.inference._mixture import best_mixture
from setwise.inference._recombine import Recombination
from setwise.inference._solve_map import solve_map
from setwise.inference._two_label_cut import TwoLabelCut

_MOST_CUTS = 40
_MOST_KEPT = 32
# Of the height of a table: what is left to gain from better multipliers when the search ends.
_SOLVED = 0.01


@dataclass(frozen=True, eq=False)
class Found:
    """A labelling, its energy, and a bound on every other, ``-inf`` where there is none."""

    labels: IntArray
    value: float
    bound: float
    n_iter: int


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
        self._unary: FloatArray | None = None
        self._cut: TwoLabelCut | None = None
        # Labellings in the smallest type that holds them, and their energies in the rest.
        self._pool: list[IntArray] = []
        self._energies: list[float] = []

    @property
    def is_exact(self) -> bool:
        """Whether the last field's labellings were cuts, so that its bound is one."""
        return self._cut is not None

    def takes_by_cut(self, field: Field) -> bool:
        """Whether one cut finds the best labelling of the field."""
        if field.n_labels != 2 or any(map(is_ball, field.potentials)):
            return False
        self._split(field)
        return self.is_exact

    def solve(self, field: Field) -> Found:
        """The best labelling met of a field, its cardinality potentials by multipliers."""
        rest, balls = self._split(field)
        kind = np.min_scalar_type(field.n_labels - 1)
        centers = np.array([ball.center for ball in balls], kind)
        centers = centers.reshape(len(balls), field.n_variables)
        if not balls or not self._pool:
            labels, exact = self._best(rest, centers[:0], np.zeros(0))
            self._keep(rest, labels.astype(kind))
            value = self._energies[-1]
            if not balls:
                return Found(labels, value, value if exact else -np.inf, 1)
        return self._multiply(rest, centers, CountTables([ball.table for ball in balls]))

    def _multiply(self, rest: Field, centers: IntArray, tables: CountTables) -> Found:
        counts = [np.count_nonzero(centers != y, axis=1) for y in self._pool]
        tolerance = _SOLVED * tables.spread
        bound, n_iter = -np.inf, 0
        while True:
            energies, mixable = np.array(self._energies), np.array(counts, np.float64)
            weights = best_mixture(energies, mixable, tables, 0.1 * tolerance)
            mixed = weights @ mixable
            model = float(weights @ energies) + float(tables.hull_heights(mixed).sum())
            multipliers = -tables.slopes(mixed)
            found, exact = self._best(rest, centers, multipliers)
            labels = found.astype(centers.dtype)
            self._keep(rest, labels)
            counts.append(np.count_nonzero(centers != labels, axis=1))
            promise = self._energies[-1] - float(multipliers @ counts[-1])
            promise += float(tables.intercepts(mixed).sum())
            n_iter += 1
            if exact:
                bound = max(bound, promise)
            if model - promise <= tolerance or n_iter == _MOST_CUTS:
                break
        values = np.array(self._energies) + tables.heights(np.array(counts)).sum(axis=1)
        k = int(values.argmin())
        labels, value = self._recombine(
            rest, self._pool[k], float(values[k]), weights, centers, tables
        )
        del self._pool[:-_MOST_KEPT], self._energies[:-_MOST_KEPT]
        return Found(labels.astype(np.int64), value, min(bound, value), n_iter)

    def _recombine(
        self,
        rest: Field,
        labels: IntArray,
        value: float,
        weights: FloatArray,
        centers: IntArray,
        tables: CountTables,
    ) -> tuple[IntArray, float]:
        """The best of the labelling and of what parts of the mixture's others make of it."""
        recombination = Recombination(rest)
        for k in np.argsort(-weights)[: np.count_nonzero(weights > 0.01)]:
            other = recombination.between(labels, self._pool[k], centers, tables)
            if other is None:
                continue
            self._keep(rest, other)
            counts = np.count_nonzero(centers != other, axis=1)
            better = self._energies[-1] + float(tables.heights(counts).sum())
            if better < value:
                labels, value = other, better
        return labels, value

    def _split(self, field: Field) -> tuple[Field, list[CardinalityPotential]]:
        """The field without the counts that no cut takes, and these; kept while it is the same."""
        balls, others = [], []
        for potential in field.potentials:
            if is_ball(potential):
                balls.append(potential)
            else:
                others.append(potential)
        rest = self._rest
        known = rest is not None and len(others) == len(rest.potentials)
        if rest is not None and known:
            known = all(a is b for a, b in zip(others, rest.potentials, strict=True))
        if rest is None or not known:
            rest = Field(field.unary)
            for potential in others:
                rest = rest + potential
            self._cut = _as_cut(rest)
        elif self._unary is None or not np.may_share_memory(self._unary, field.unary):
            rest = rest.with_unary(field.unary)
        if rest is not self._rest:
            self._energies = [_energy(rest, labels) for labels in self._pool]
            self._rest, self._unary = rest, field.unary
        return rest, balls

    def _best(
        self, rest: Field, centers: IntArray, multipliers: FloatArray
    ) -> tuple[IntArray, bool]:
        """The best labelling for the multipliers, and whether it is proved so."""
        if self._cut is not None:
            costs = rest.unary[:, 1] - rest.unary[:, 0]
            for center, multiplier in zip(centers, multipliers, strict=True):
                costs += multiplier * (2.0 * center - 1.0)
            return self._cut.ones(costs).astype(np.int64), True
        unary = rest.unary.copy()
        everyone = np.arange(len(unary))
        for center, multiplier in zip(centers, multipliers, strict=True):
            unary[everyone, center] += multiplier
        init = self._pool[-1].astype(np.int64) if self._pool else None
        found = solve_map(rest.with_unary(unary), tol=np.inf, init=init, n_jobs=self._n_jobs)
        return found.labels, False

    def _keep(self, rest: Field, labels: IntArray) -> None:
        self._pool.append(labels)
        self._energies.append(_energy(rest, labels))


def is_ball(potential: Potential) -> TypeGuard[CardinalityPotential]:
    """Whether a potential is a function of a count that is not concave."""
    return isinstance(potential, CardinalityPotential) and not potential.is_submodular


def _as_cut(field: Field) -> TwoLabelCut | None:
    if field.n_labels != 2:
        return None
    try:
        return TwoLabelCut(field)
    except ValueError:  # not a cut, or one with too many arcs
        return None


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels.astype(np.int64)[None])[0])
