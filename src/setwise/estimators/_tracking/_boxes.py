"""Boxes of an image: their overlaps, boxes around a given one, and grids of boxes."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray

# The largest side in pixels: beyond any frame, and areas of whole pixels are exact.
LARGEST = 1e6
_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


def overlaps(box: FloatArray, boxes: FloatArray) -> FloatArray:
    """Return the intersection over the union of areas, the Pascal criterion (equation (21)).

    Boxes are (x, y, w, h) with positive sides: ``box`` (4,), ``boxes`` (n, 4), the answer (n,).
    """
    corner = np.maximum(box[:2], boxes[:, :2])
    opposite = np.minimum(box[:2] + box[2:], boxes[:, :2] + boxes[:, 2:])
    common: FloatArray = np.prod(np.maximum(opposite - corner, 0.0), axis=1)
    union: FloatArray = box[2] * box[3] + boxes[:, 2] * boxes[:, 3] - common
    return common / union


def boxes_around(
    box: FloatArray,
    count: int,
    radius: float,
    scales: FloatArray,
    shape: tuple[int, int],
    *,
    even: bool,
) -> FloatArray:
    """Return ``count`` boxes (n, 4) whose centres fill a disc around ``box``, the first one.

    ``radius`` is relative to the size of the box, the square root of its area. The centres lie on a
    sunflower spiral, without randomness: with uniform density over the disc if ``even``, otherwise
    with the same number at each distance, as on a polar grid. The scales alternate along the
    spiral. Boxes have whole pixels. Boxes are left out if their centre is outside the image of
    ``shape`` (height, width), if a side is below one pixel or above ``LARGEST``, or if they
    occurred before.
    """
    steps = np.arange(count)
    share = steps / max(count - 1, 1)
    distance = radius * np.sqrt(box[2] * box[3]) * (np.sqrt(share) if even else share)
    angle = steps * _GOLDEN_ANGLE
    center = box[:2] + box[2:] / 2
    centers = center + distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    sizes = box[2:] * scales[(steps - 1) % len(scales)][:, None]
    around = np.concatenate([np.rint(centers - sizes / 2), sizes], axis=1)
    around[0] = box
    inside = np.all((centers >= 0) & (centers <= np.array(shape[::-1])), axis=1)
    inside &= ((sizes >= 1.0) & (sizes <= LARGEST)).all(axis=1)
    inside[0] = True
    around = around[inside]
    _, first = np.unique(around, axis=0, return_index=True)
    return around[np.sort(first)]


def boxes_scaled(box: FloatArray, scales: FloatArray) -> FloatArray:
    """Return scaled copies (n, 4) of a box with the same centre, or the box if none is valid."""
    sizes = box[2:] * scales[:, None]
    sizes = sizes[((sizes >= 1.0) & (sizes <= LARGEST)).all(axis=1)]
    if len(sizes) == 0:
        return box[None]
    return np.concatenate([box[:2] + box[2:] / 2 - sizes / 2, sizes], axis=1)


def boxes_over(shape: tuple[int, int], sides: FloatArray, count: int) -> FloatArray:
    """Return boxes of one size on a grid over an image of ``shape`` (height, width): (n, 4).

    The distance between two is an eighth of the size, or more if there would be more than about
    ``count`` boxes. At most a quarter of a side lies beyond the border.
    """
    height, width = shape
    step = max(np.sqrt(np.prod(sides)) / 8, np.sqrt(height * width / count), 1.0)
    places = [
        np.arange(-side / 4, max(length - 0.75 * side, -side / 4) + 1e-9, step)
        for side, length in zip(sides, (width, height), strict=True)
    ]
    x, y = (line.ravel() for line in np.meshgrid(*places))
    return np.stack([x, y, np.full_like(x, sides[0]), np.full_like(x, sides[1])], axis=1)
