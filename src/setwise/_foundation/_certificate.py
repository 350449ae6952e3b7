"""One rule for every certificate: what a gap is measured against.

``gap = value - bound >= 0`` is absolute. Its share of what there was to gain, ``relative_gap``, and
the claim ``exact`` change neither with a constant added to all values nor with their unit.
"""

from __future__ import annotations

from math import inf

import numpy as np

EPS = float(np.finfo(np.float64).eps)


def relative_gap(gap: float, room: float, rounding: float = 0.0) -> float:
    """The share of ``room``, what there was to gain, that is not proved to be gained: in [0, 1].

    0 where the gap is no more than the rounding of the sums in it, whatever the room; ``inf`` where
    nothing is known, which is a gap of ``inf``.
    """
    if gap <= rounding:
        return 0.0
    return gap / max(gap, room) if gap < inf else inf
