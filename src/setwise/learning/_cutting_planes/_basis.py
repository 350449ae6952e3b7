"""Coordinates of slopes in an orthonormal basis that grows with them."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray


def coordinates(slopes: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return coordinates of the slopes (m, d), and the basis (r, d) extended to their span.

    This is the Gram-Schmidt method with two passes. A remainder of the first pass is a rounding
    error if the second pass removes half of it or more. The cost is O(r d) per slope.
    """
    m, d = slopes.shape
    first, grown = len(basis), np.vstack([basis, np.empty((min(m, d - len(basis)), d))])
    r = first
    rows = np.zeros((m, len(grown)))
    for slope, row in zip(slopes, rows, strict=True):
        known = grown[:r]
        row[:r] = known @ slope
        rest = slope - row[:r] @ known
        before = float(np.sqrt(rest @ rest))
        again = known @ rest
        row[:r] += again
        rest = rest - again @ known
        length = float(np.sqrt(rest @ rest))
        if r < len(grown) and length > 0.5 * before:
            grown[r] = rest / length
            row[r] = length
            r += 1
    return rows[:, :r].copy(), grown[:r].copy()
