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

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.diversities._base import distances
from setwise.inference._diverse._multipliers._pool import Forced, LabelingPool
from setwise.inference._relaxation._count_tables import CountTables

# The largest number of cuts for one bound, which is rarely reached. If moves replace cuts, nothing
# is proved and this number of searches by moves is made. A quarter of it gives lists of similar
# energies.
_MOST_CUTS = 40
# The search ends if better multipliers can raise the bound by at most this share of a table's
# height. On grids, a quarter of the share takes up to a third more cuts and makes gaps smaller by 1
# to 70 per cent. Four times the share saves up to 40 per cent of the cuts, and gaps become up to
# four times as large.
_SOLVED = 0.01


class Bounded(NamedTuple):
    """A bound on the labellings with some fixed labels, and its origin."""

    bound: float
    magnitude: float
    """the sum of the absolute summands of the bound"""
    forced: Forced
    multipliers: FloatArray
    mixture: list[IntArray]
    """the labellings of the best mixture, by decreasing weight"""
    n_cuts: int


class BallProblem:
    """The balls of a problem, and the energies of the labellings of a pool in it."""

    def __init__(self, pool: LabelingPool, centers: IntArray, tables: CountTables) -> None:
        self.pool, self.centers, self.tables = pool, centers, tables
        self.tolerance = _SOLVED * tables.spread
        self._counts: list[IntArray] = []

    def counts(self) -> list[IntArray]:
        """Return the distances (t,) of each labelling of the pool to the centers."""
        for labels in self.pool.labelings[len(self._counts) :]:
            self._counts.append(distances(labels, self.centers))
        return self._counts

    def values(self) -> FloatArray:
        """Return the energies of all labellings of the pool, including the balls."""
        heights = self.tables.heights(np.array(self.counts()))
        return np.asarray(np.array(self.pool.energies) + heights.sum(axis=1))

    def bound(self, forced: Forced = (), start: FloatArray | None = None) -> Bounded:
        """Return the best bound by multipliers on labellings that have the labels ``forced``.

        The best one is the value of a concave function of the multipliers. Its cutting-plane model
        is the best mixture of the labellings found so far (``best_mixture``); the slopes at the
        mixture are the next multipliers, whose best labelling is added to the mixture (fully
        corrective Frank-Wolfe). The search ends when the predicted gain is below a hundredth of a
        table's height. ``start`` are the multipliers for a first labelling, which the pool may
        lack.
        """
        pool, tables = self.pool, self.tables
        n_cuts, fits = 0, [all(y[v] == k for v, k in forced) for y in pool.labelings]
        if not any(fits):
            assert start is not None
            pool.find(self.centers, start, forced)
            fits.append(True)
            n_cuts += 1
        members = np.flatnonzero(fits).tolist()
        bound, magnitude, weights = -np.inf, 0.0, None
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
                bound, magnitude = promise, fsum(map(abs, parts))
            if model - promise <= self.tolerance or n_cuts >= _MOST_CUTS:
                break
        order = np.argsort(-weights)[: np.count_nonzero(weights > 0.01)].tolist()
        mixture = [pool.labelings[members[k]] for k in order]
        return Bounded(bound, magnitude, forced, multipliers, mixture, n_cuts)


def best_mixture(
    energies: FloatArray,
    counts: FloatArray,
    tables: CountTables,
    tolerance: float,
    start: FloatArray | None = None,
) -> FloatArray:
    r"""Return the weights (K,) on the simplex that minimise the convex function of a mixture.

    .. math:: \varphi(\alpha) = \sum_j \alpha_j E_j + \sum_s g_s\Bigl(\sum_j \alpha_j H_{js}\Bigr)

    Here g_s is the convex hull of table s, smoothed at integer counts so that its slopes are
    continuous. The problem is the dual of the cutting-plane model of the multipliers, which are
    minus the slopes of g at the mixed counts. It is solved by pairwise Frank-Wolfe steps, each with
    a line search by halving, until no labelling can improve the function by more than the
    tolerance. The bounds hold for any multipliers. A mixture is never worse than its start for the
    hulls without smoothing. K and the number of tables are a few dozen at most. ``start`` are
    weights of the first labellings.
    """
    weights = np.zeros(len(energies))
    if start is None:
        alone = energies + tables.hull_heights(counts).sum(axis=1)
        weights[int(alone.argmin())] = 1.0
    else:
        weights[: len(start)] = start
    before = weights.copy()
    _core.best_mixture(energies, counts, *tables.hull_slopes, tolerance, weights)

    def value(mixture: FloatArray) -> float:
        return float(mixture @ energies + tables.hull_heights(mixture @ counts).sum())

    return weights if value(weights) <= value(before) else before
