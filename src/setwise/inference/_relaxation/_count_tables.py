"""Functions of a count, and the convex functions below them, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray


def convex_hull(table: FloatArray) -> FloatArray:
    """The largest convex function of 0..n that is nowhere above the table, (n + 1,). O(n)."""
    # A tangent reaches n steps far, so only the rounding of single entries is let pass.
    slack = 5e-16 * float(np.abs(table).max(initial=0.0))
    if (np.diff(table, 2) >= -slack).all():
        return table
    hull: list[int] = []
    for right, height in enumerate(table):
        while len(hull) > 1:
            left, middle = hull[-2], hull[-1]
            rise, run = table[middle] - table[left], middle - left
            if rise * (right - left) < (height - table[left]) * run:
                break
            hull.pop()
        hull.append(right)
    return np.interp(np.arange(len(table)), hull, table[hull])


class CountTables:
    """Tables of counts, one a center, with their convex hulls; equal ones are kept once."""

    def __init__(self, tables: Sequence[FloatArray]) -> None:
        kept: list[FloatArray] = []
        which: list[int] = []
        for table in tables:
            equal = (k for k, other in enumerate(kept) if np.array_equal(table, other))
            place = next(equal, len(kept))
            if place == len(kept):
                kept.append(table)
            which.append(place)
        self._which: IntArray = np.array(which, np.int64)
        self._tables = np.array(kept).reshape(len(kept), -1)
        self._hulls = np.array([convex_hull(table) for table in kept]).reshape(len(kept), -1)
        self._slopes = np.diff(self._hulls, axis=1)
        self.spread = float(np.ptp(self._tables, axis=1).max(initial=0.0))

    def __len__(self) -> int:
        return len(self._which)

    def heights(self, counts: IntArray) -> FloatArray:
        """The tables at counts (..., t)."""
        heights: FloatArray = self._tables[self._which, counts]
        return heights

    def hull_heights(self, counts: FloatArray) -> FloatArray:
        """The hulls at counts (..., t), linear between whole ones."""
        floor = np.minimum(counts.astype(np.int64), max(self._slopes.shape[1] - 1, 0))
        rest = counts - floor
        return np.asarray(self._hulls[self._which, floor] + self._slopes[self._which, floor] * rest)

    @property
    def hull_slopes(self) -> tuple[FloatArray, IntArray]:
        """The slopes of the different hulls, a row each, and of each table its row."""
        return self._slopes, self._which

    def slopes(self, counts: FloatArray) -> FloatArray:
        """Slopes at counts (t,): that of the hull in the middle of a step, linear in between.

        So they are continuous, and at a whole count between the two that the hull has there.
        """
        if self._slopes.shape[1] == 0:
            return np.zeros(len(counts))
        places = np.clip(np.asarray(counts) - 0.5, 0.0, self._slopes.shape[1] - 1.0)
        low = places.astype(np.int64)
        high = np.minimum(low + 1, self._slopes.shape[1] - 1)
        share = places - low
        below, above = self._slopes[self._which, low], self._slopes[self._which, high]
        return np.asarray(below + share * (above - below))

    def intercepts(self, slopes: FloatArray) -> FloatArray:
        """(t,): the largest for which no table is below the line of its slope from there."""
        rows = [
            int(np.searchsorted(self._slopes[row], slope))
            for row, slope in zip(self._which, slopes, strict=True)
        ]
        places = np.array(rows, np.int64)
        return np.asarray(self._hulls[self._which, places] - slopes * places)
