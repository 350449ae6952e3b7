"""The best mixture of labellings under convex functions of counts: where multipliers are read."""

from __future__ import annotations

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise.inference._relaxation._count_tables import CountTables


def best_mixture(
    energies: FloatArray,
    counts: FloatArray,
    tables: CountTables,
    tolerance: float,
    start: FloatArray | None = None,
) -> FloatArray:
    r"""Weights (K,) on the simplex that minimise

    .. math:: \varphi(\alpha) = \sum_j \alpha_j E_j + \sum_s g_s\Bigl(\sum_j \alpha_j H_{js}\Bigr)

    with g_s the convex hull of table s, its kinks at whole counts rounded off so that its slopes
    are continuous: the dual of the cutting-plane model of the multipliers, which are minus the
    slopes of g at the mixed counts. By pairwise Frank-Wolfe steps, each with a line search by
    halving, until no labelling promises more than the tolerance. The bounds that multipliers prove
    hold wherever they are; a mixture is never worse than its start, with the kinks. K and the
    number of tables are a few dozen at most. ``start`` are weights of the first labellings.
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
