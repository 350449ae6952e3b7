"""The labellings of a path with the least distances to all others: medians on a line."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._diverse._path._nested_path import BiasPath

# The factor by which the required difference decreases from level to level. The first level with
# enough items is found by bisection, so smaller steps would cost little. Not tuned.
_RELAXED = 0.8


class Medians:
    r"""The m medians of K points on a line, with the least weighted distances.

    .. math:: \min_S \sum_t p_t \min_{s \in S} |x_s - x_t|

    Positions (K,) are strictly monotone; the point ``through`` is one of those chosen.
    """

    def __init__(self, positions: FloatArray, masses: FloatArray, through: int) -> None:
        n = len(positions)
        x = np.abs(positions - positions[0])
        mass = np.concatenate([[0.0], np.cumsum(masses)])
        moment = np.concatenate([[0.0], np.cumsum(masses * x)])

        def left_to(a: IntArray, low: IntArray, high: IntArray) -> FloatArray:
            """Return the sum of weighted distances from a to points low..high - 1 on one side."""
            held, at = mass[high] - mass[low], moment[high] - moment[low]
            return np.asarray(np.abs(held * x[a] - at))

        everyone, zeros = np.arange(n), np.zeros(n, np.int64)
        a, b = everyone[:, None], everyone
        # A point between two chosen neighbours is assigned to the nearer one.
        half = np.searchsorted(x, 0.5 * (x[:, None] + x), side="right")
        half = np.clip(half, a, np.maximum(a, b))
        cost = left_to(a, a, half) + left_to(b, half, np.maximum(a, b))
        # The point ``through`` must not be skipped.
        cost[(a >= b) | ((a < through) & (b > through))] = np.inf
        before, after = left_to(everyone, zeros, everyone), left_to(everyone, everyone, zeros + n)
        before[through + 1 :], after[:through] = np.inf, np.inf
        self._cost, self._before, self._after = cost, before, after

    def choose(self, m: int, allowed: BoolArray) -> IntArray | None:
        """Choose m points, given which may follow which (``allowed``, (K, K)); None if impossible.

        This is exact, by dynamic programming over the last chosen point, in O(m K^2).
        """
        cost = np.where(allowed, self._cost, np.inf)
        least, came = self._before, []
        for _ in range(m - 1):
            reached = least[:, None] + cost
            came.append(reached.argmin(axis=0))
            least = reached.min(axis=0)
        least = least + self._after
        chosen = [int(least.argmin())]
        if not np.isfinite(least[chosen[0]]):
            return None
        for step in reversed(came):
            chosen.append(int(step[chosen[-1]]))
        return np.array(chosen[::-1], np.int64)


class DifferentPieces:
    """Pieces of a path with enough differences, in total and in the largest connected part."""

    def __init__(self, field: Field, path: BiasPath) -> None:
        self._path, self._n = path, field.n_variables
        self._edges = edges_of(field)
        self._parts: dict[tuple[int, int], int] = {}

    def choose(self, m: int, through: int, difference: float, part: float) -> tuple[IntArray, bool]:
        """Return the medians, and whether they have the requested differences.

        If there are no m pieces with these differences, the least difference is lowered by a fifth
        repeatedly.
        """
        sizes = self._path.sizes.astype(np.float64)
        m = min(m, self._path.n_pieces)
        apart, points = np.abs(sizes[:, None] - sizes), Medians(sizes, self._path.shares, through)
        levels = [(difference, part)]
        while max(levels[-1]) >= 1.0:
            levels.append((_RELAXED * levels[-1][0], _RELAXED * levels[-1][1]))
        levels[1:] = [*levels[1:-1], (0.0, 0.0)]
        found = self._medians(points, m, apart, *levels[0])
        if found is not None:
            return found, True
        # The number of pieces grows from level to level, so bisect for the first with m pieces.
        low, high = 0, len(levels) - 1
        found = self._medians(points, m, apart, *levels[high])
        while high - low > 1:
            middle = (low + high) // 2
            other = self._medians(points, m, apart, *levels[middle])
            low, high = (middle, high) if other is None else (low, middle)
            found = found if other is None else other
        assert found is not None  # without a required difference any m pieces are allowed
        return found, False

    def _medians(
        self, points: Medians, m: int, apart: FloatArray, difference: float, part: float
    ) -> IntArray | None:
        allowed = apart >= difference
        found = points.choose(m, allowed)
        if found is None or all(self._largest_part(a, b) >= part for a, b in pairwise(found)):
            return found
        # The pieces are nested, so their differences grow along the path. For each piece there is a
        # first later piece that differs enough from it. This index does not decrease from piece to
        # piece.
        b, n = 0, len(apart)
        for a in range(n):
            b = max(b, a + 1)
            while b < n and self._largest_part(a, b) < part:
                b += 1
            allowed[a, :b] = False
        return points.choose(m, allowed)

    def _largest_part(self, a: int, b: int) -> int:
        """Return the size of the largest connected part of the difference of two pieces."""
        if (a, b) not in self._parts:
            last = self._path.last
            self._parts[a, b] = largest_part((last >= a) & (last < b), self._edges)
        return self._parts[a, b]


def edges_of(field: Field) -> IntArray:
    """Return all edges of the field's pairwise terms, (E, 2)."""
    edges = [
        np.asarray(term.edges, np.int64)
        for _, term in field._terms()
        if isinstance(term, PottsTerm | TableTerm)
    ]
    return np.concatenate([np.zeros((0, 2), np.int64), *edges])


def largest_part(changed: BoolArray, edges: IntArray) -> int:
    """Return the size of the largest connected part of a set of variables.

    Without edges, it is the size of the whole set.
    """
    if len(edges) == 0:
        return int(np.count_nonzero(changed))
    return _core.largest_part(changed, edges)
