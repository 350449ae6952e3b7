"""Outlines of a mask along the sides of its pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BoolArray, IntArray


def outlines(mask: BoolArray) -> list[IntArray]:
    r"""Rings of corners (x, y) around the pieces of a mask and around their holes.

    The mask is on the right of the way in a picture whose y grows downwards, so that the area
    :math:`\frac12 \sum x_k y_{k+1} - x_{k+1} y_k` is positive around a piece and negative around
    a hole. Pieces that touch at a corner are apart. A pixel's sides are whole numbers, so that
    filling the rings by the even-odd rule gives back the mask.
    """
    padded = np.pad(np.asarray(mask, np.bool_), 1)
    wide = padded.shape[1] + 1
    sides = []
    # The side of a pixel inside whose neighbour there is outside: from where it starts, to where.
    for (dy, dx), (y0, x0), (y1, x1) in (
        ((-1, 0), (0, 0), (0, 1)),  # above: to the right
        ((0, 1), (0, 1), (1, 1)),  # on the right: downwards
        ((1, 0), (1, 1), (1, 0)),  # below: to the left
        ((0, -1), (1, 0), (0, 0)),  # on the left: upwards
    ):
        y, x = np.nonzero(padded & ~np.roll(padded, (-dy, -dx), (0, 1)))
        sides.append(np.stack([(y + y0) * wide + x + x0, (y + y1) * wide + x + x1], axis=1))
    return [_corners(ring, wide) for ring in _rings(np.concatenate(sides), wide)]


def _rings(sides: NDArray[np.int64], wide: int) -> list[list[int]]:
    """Sides joined end to start; where two start at one corner the way turns right."""
    leaving: dict[int, list[int]] = {}
    for start, end in sides.tolist():
        leaving.setdefault(start, []).append(end)
    right = {1: wide, wide: -1, -1: -wide, -wide: 1}
    rings = []
    while leaving:
        before = next(iter(leaving))
        ring, at = [before], _leave(leaving, before, None)
        while at != ring[0]:
            ring.append(at)
            wanted = at + right[at - before]
            before, at = at, _leave(leaving, at, wanted)
        rings.append(ring)
    return rings


def _leave(leaving: dict[int, list[int]], corner: int, wanted: int | None) -> int:
    """Where a side that starts at the corner ends; the wanted end if there is a choice."""
    ends = leaving[corner]
    end = wanted if len(ends) > 1 and wanted in ends else ends[-1]
    assert end is not None
    ends.remove(end)
    if not ends:
        del leaving[corner]
    return end


def _corners(ring: list[int], wide: int) -> IntArray:
    """The corners (x, y) at which the way turns, in the picture without its border."""
    y, x = np.divmod(np.array(ring, np.int64), wide)
    points = np.stack([x - 1, y - 1], axis=1)
    steps = points - np.roll(points, 1, axis=0)
    turns = (steps != np.roll(steps, -1, axis=0)).any(axis=1)
    return np.asarray(points[turns])
