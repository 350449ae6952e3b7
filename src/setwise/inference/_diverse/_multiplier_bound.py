r"""Bounds on a field with functions of Hamming distances, by multipliers.

Functions of counts :math:`T_s(\mathrm{Ham}(y, c_s))` lie above lines, and each line is a change of
unaries: for every vector of multipliers :math:`\mu`

.. math:: \min_y R(y) + \sum_s T_s(\mathrm{Ham}(y, c_s)) \;\ge\;
    \min_y \Bigl( R(y) - \sum_s \mu_s \mathrm{Ham}(y, c_s) \Bigr)
    + \sum_s \min_k \bigl( T_s(k) + \mu_s k \bigr).
"""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.diversities._base import distances
from setwise.inference._diverse._labeling_mixture import best_mixture
from setwise.inference._diverse._labeling_pool import Forced, LabelingPool
from setwise.inference._relaxation._count_tables import CountTables

_MOST_CUTS = 40
# Of the height of a table: what is left to gain from better multipliers when the search ends.
_SOLVED = 0.01


class Bounded(NamedTuple):
    """A bound on the labellings that have some labels, and where it came from."""

    bound: float
    paid: float
    """the sum of the sizes of what the bound is a sum of"""
    forced: Forced
    multipliers: FloatArray
    mixture: list[IntArray]
    """the labellings of the best mixture, those of most weight first"""
    n_cuts: int


class BallProblem:
    """Balls in a rest of a field, and what the labellings of a pool cost in it."""

    def __init__(self, pool: LabelingPool, centers: IntArray, tables: CountTables) -> None:
        self.pool, self.centers, self.tables = pool, centers, tables
        self.tolerance = _SOLVED * tables.spread
        self._counts: list[IntArray] = []

    def counts(self) -> list[IntArray]:
        """The distances (t,) of each labelling of the pool to the centers."""
        for labels in self.pool.labelings[len(self._counts) :]:
            self._counts.append(distances(labels, self.centers))
        return self._counts

    def values(self) -> FloatArray:
        """The energies of all labellings of the pool, with those of the balls."""
        heights = self.tables.heights(np.array(self.counts()))
        return np.asarray(np.array(self.pool.energies) + heights.sum(axis=1))

    def bound(self, forced: Forced = (), start: FloatArray | None = None) -> Bounded:
        """The best bound by multipliers on labellings that have the labels ``forced``.

        The best one is the value of a concave function of the multipliers. Its cutting-plane model
        is the best mixture of the labellings found so far (``best_mixture``); the slopes at the
        mixture are the next multipliers, their best labelling joins the mixture, and the search
        ends when that promises less than a hundredth of a table's height (fully corrective
        Frank-Wolfe). ``start`` are multipliers for a first labelling, if the pool may have none.
        """
        pool, tables = self.pool, self.tables
        n_cuts, fits = 0, [all(y[v] == k for v, k in forced) for y in pool.labelings]
        if not any(fits):
            assert start is not None
            pool.find(self.centers, start, forced)
            fits.append(True)
            n_cuts += 1
        members = np.flatnonzero(fits).tolist()
        bound, paid, weights = -np.inf, 0.0, None
        while True:
            counts = self.counts()
            energies = np.array([pool.energies[k] for k in members])
            mixable = np.array([counts[k] for k in members], np.float64)
            weights = best_mixture(energies, mixable, tables, 0.1 * self.tolerance, weights)
            mixed = weights @ mixable
            model = float(weights @ energies) + float(tables.hull_heights(mixed).sum())
            multipliers = -tables.slopes(mixed)
            lost = pool.find(self.centers, multipliers, forced)
            members.append(len(pool.labelings) - 1)
            added = -multipliers * self.counts()[-1]
            parts = [pool.energies[-1], *added, *tables.intercepts(-multipliers)]
            promise = fsum(parts) - lost
            n_cuts += 1
            if promise > bound:
                bound, paid = promise, fsum(map(abs, parts))
            if model - promise <= self.tolerance or n_cuts >= _MOST_CUTS:
                break
        order = np.argsort(-weights)[: np.count_nonzero(weights > 0.01)].tolist()
        mixture = [pool.labelings[members[k]] for k in order]
        return Bounded(bound, paid, forced, multipliers, mixture, n_cuts)
