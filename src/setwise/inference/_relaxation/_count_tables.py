"""Functions of a count, and the convex functions below them, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray


def convex_hull(table: FloatArray) -> FloatArray:
    """Return the largest convex function on 0..n that is nowhere above the table, in O(n)."""
    # The error of a slope is multiplied by up to n steps, so the tolerance is only the rounding of
    # single entries.
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
    """Tables of counts, one per center, with their convex hulls. Equal tables are stored once."""

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
        """Return the values of the tables at counts (..., t)."""
        heights: FloatArray = self._tables[self._which, counts]
        return heights

    def hull_heights(self, counts: FloatArray) -> FloatArray:
        """Return the values of the hulls at counts (..., t), linear between integers."""
        floor = np.minimum(counts.astype(np.int64), max(self._slopes.shape[1] - 1, 0))
        rest = counts - floor
        return np.asarray(self._hulls[self._which, floor] + self._slopes[self._which, floor] * rest)

    @property
    def hull_slopes(self) -> tuple[FloatArray, IntArray]:
        """The slopes of the distinct hulls, one per row, and the row of each table."""
        return self._slopes, self._which

    def slopes(self, counts: FloatArray) -> FloatArray:
        """Return continuous slopes at counts (t,).

        In the middle of a step this is the slope of the hull, and it is linear in between. At an
        integer count it lies between the two slopes of the hull there.
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
        """Return the largest intercepts (t,) whose lines with these slopes are below the tables."""
        rows = [
            int(np.searchsorted(self._slopes[row], slope))
            for row, slope in zip(self._which, slopes, strict=True)
        ]
        places = np.array(rows, np.int64)
        return np.asarray(self._hulls[self._which, places] - slopes * places)
