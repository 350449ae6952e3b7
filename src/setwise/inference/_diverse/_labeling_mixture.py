"""The best mixture of labellings under convex functions of counts: where multipliers are read."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.inference._relaxation._count_tables import CountTables

_STEPS = 60
_HALVINGS = 40


def best_mixture(
    energies: FloatArray,
    counts: FloatArray,
    tables: CountTables,
    tolerance: float,
    start: FloatArray | None = None,
) -> FloatArray:
    r"""Weights (K,) on the simplex that minimise

    .. math:: \varphi(\alpha) = \sum_j \alpha_j E_j + \sum_s g_s\Bigl(\sum_j \alpha_j H_{js}\Bigr)

    with g_s the convex hull of table s: the dual of the cutting-plane model of the multipliers,
    which are minus the slopes of g at the mixed counts. By pairwise Frank-Wolfe steps, each with
    an exact line search by halving, until no labelling promises more than the tolerance. At a kink
    of g the steps may end before that: the bounds that multipliers prove hold wherever they are.
    K and the number of tables are a few dozen at most. ``start`` are weights of the first
    labellings.
    """
    weights = np.zeros(len(energies))
    if start is None:
        alone = energies + tables.hull_heights(counts).sum(axis=1)
        weights[int(alone.argmin())] = 1.0
    else:
        weights[: len(start)] = start
    for _ in range(_STEPS):
        mixed = weights @ counts
        slopes = energies + counts @ tables.slopes(mixed)
        to = int(slopes.argmin())
        if float(weights @ slopes) - slopes[to] <= tolerance:
            break
        present = np.flatnonzero(weights)
        away = int(present[slopes[present].argmax()])
        rise, change = energies[to] - energies[away], counts[to] - counts[away]
        step = _line_search(rise, mixed, change, float(weights[away]), tables)
        if step == 0.0:
            break
        weights[to] += step
        weights[away] = 0.0 if step == weights[away] else weights[away] - step
    return weights


def _line_search(
    rise: float, start: FloatArray, change: FloatArray, most: float, tables: CountTables
) -> float:
    """The step in [0, most] where the slope along the way turns positive."""

    def slope(step: float) -> float:
        return rise + float(change @ tables.slopes(start + step * change))

    if slope(most) <= 0.0:
        return most
    low, high, reach = 0.0, most, float(np.abs(change).max())
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if slope(middle) <= 0.0:
            low = middle
        else:
            high = middle
        if (high - low) * reach < 0.25:  # a quarter of one variable
            break
    return low
