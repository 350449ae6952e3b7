"""Outlines of a mask along the sides of its pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label as connected_parts

from setwise import _core
from setwise._foundation._arguments import BoolArray, IntArray


def outlines(mask: BoolArray) -> list[IntArray]:
    """Return the rings of all ``pieces`` of a mask."""
    return [ring for piece in pieces(mask) for ring in piece]


def pieces(mask: BoolArray) -> list[list[IntArray]]:
    r"""Return the rings of corners (x, y) of each piece of a mask: its outline, then its holes.

    In a picture whose y grows downwards, the mask lies on the right of each ring. The area
    :math:`\frac12 \sum x_k y_{k+1} - x_{k+1} y_k` is therefore positive around a piece and negative
    around a hole. Pieces that only touch at a corner are separate. Corners have integer
    coordinates, and filling the rings by the even-odd rule gives back the mask. The work is linear
    in the number of sides, except for sorting them.
    """
    padded = np.pad(np.asarray(mask, np.bool_), 1)
    wide = padded.shape[1] + 1
    starts, ways = [], []
    # The corners of a pixel, clockwise: the sides above, right, below and left start at them.
    square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    next_corners = np.roll(square, -1, axis=0)
    for way, (corner, next_corner) in enumerate(zip(square, next_corners, strict=True)):
        towards = corner + next_corner - 1  # the neighbour beyond the side
        y, x = (np.argwhere(padded & ~np.roll(padded, -towards, (0, 1))) + corner).T
        starts.append(y * wide + x)
        ways.append(np.full(len(y), way))
    start, way_of = np.concatenate(starts), np.concatenate(ways)
    following = _following(start, way_of, wide)
    # A ring has a corner where the direction of a side differs from that of the side before.
    turns = np.empty(len(start), np.bool_)
    turns[following] = way_of[following] != way_of
    corners = np.stack([start % wide - 1, start // wide - 1], axis=1)
    # A side above a pixel starts at the pixel's own row and column.
    rows, columns = np.divmod(starts[0], wide)
    parts = connected_parts(padded)[0][rows, columns].tolist()
    # Every ring has a side above a pixel. Row by row, the first such side of a piece is on its
    # outline, because no pixel of the piece lies above it. Some pixels lie above every hole.
    found: dict[int, list[IntArray]] = {}
    way_on, seen = following.tolist(), bytearray(len(start))
    for first, part in enumerate(parts):
        ring, at = [], first
        while not seen[at]:
            seen[at] = 1
            ring.append(at)
            at = way_on[at]
        if ring:
            _core.poll()
            sides = np.array(ring)
            found.setdefault(part, []).append(corners[sides[turns[sides]]])
    return list(found.values())


def _following(start: NDArray[np.int64], way: NDArray[np.int64], wide: int) -> NDArray[np.int64]:
    """Return the next side of each side. If two sides are possible, it is the one on the right."""
    keys = 4 * start + way
    order = np.argsort(keys)
    end = start + np.array([1, wide, -1, -wide])[way]
    following = np.empty(len(start), np.int64)
    # Left, straight on, right: a later possible turn replaces an earlier one.
    for turn in (3, 0, 1):
        wanted = 4 * end + (way + turn) % 4
        place = np.searchsorted(keys, wanted, sorter=order)
        place = order[np.minimum(place, len(order) - 1)]
        there = keys[place] == wanted
        following[there] = place[there]
    return following
