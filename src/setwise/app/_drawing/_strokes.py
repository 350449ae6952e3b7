"""Strokes of a brush, an eraser or a box, and how they mark pixels."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import ceil, floor, isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BATCH, BoolArray

Marks = NDArray[np.int8]
"""(H, W): the label drawn on a pixel, -1 where there is none."""

# The most pixels of a working picture. Larger pictures are reduced to this size, and their masks
# are enlarged when they are exported. A cut of this size takes 1.8 GB.
WORKING_PIXELS = 4_000_000
KINDS = ("brush", "erase", "box")
MOST_LABELS = 9  # the page has a colour and a key for each
# The longest stroke: a pen that moves for a quarter of an hour reports about 100,000 points.
MOST_POINTS = 100_000
MOST_STROKE_BYTES = 80 * MOST_POINTS  # as JSON: a point is two floats of at most 25 characters
LARGEST_RADIUS = sqrt(WORKING_PIXELS) / 4  # a quarter of the side of the largest square picture
# The most pixels in the bounding boxes of all segments of a stroke. Drawing so many takes some
# seconds. Not tuned.
MOST_WORK = 250_000_000
# The side of the blocks in which pictures are converted and strokes are drawn, so that temporary
# arrays, of about four numbers per pixel, take a few megabytes.
BLOCK_SIDE = isqrt(BATCH // 4)


@dataclass(frozen=True)
class Stroke:
    """A line of a round brush or eraser, or a box between the first point and the last.

    Points are (x, y) in pixels, with the centre of the first pixel at (0.5, 0.5). ``key``
    identifies the stroke: while it grows under the pen it is sent several times with one key.
    """

    kind: str
    label: int
    radius: float
    points: tuple[tuple[float, float], ...]
    key: str = ""

    @classmethod
    def read(cls, given: object) -> Stroke:
        """Return a stroke from decoded JSON. Raise a ``ValueError`` if it is invalid."""
        if not isinstance(given, dict):
            raise ValueError(f"a stroke must be an object, got {type(given).__name__}")
        kind, label = given.get("kind", "brush"), given.get("label", 0)
        radius, points, key = given.get("radius", 4.0), given.get("points"), given.get("key", "")
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {str(kind)[:40]!r}")
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < MOST_LABELS:
            raise ValueError(
                f"label must be an integer from 0 to {MOST_LABELS - 1}, got {str(label)[:40]}"
            )
        if not (_is_number(radius) and 0.0 < radius <= LARGEST_RADIUS):
            raise ValueError(
                f"radius must be above 0 and at most {LARGEST_RADIUS:g}, got {str(radius)[:40]}"
            )
        if not isinstance(points, list) or not 1 <= len(points) <= MOST_POINTS:
            raise ValueError(f"points must be a list of 1 to {MOST_POINTS} points")
        for point in points:
            if not (
                isinstance(point, list | tuple)
                and len(point) == 2
                and all(_is_number(number) and abs(number) <= 1e6 for number in point)
            ):
                raise ValueError(f"points must hold pairs of numbers, got {str(point)[:40]}")
        if not isinstance(key, str) or len(key) > 64:
            raise ValueError("key must be a string of at most 64 characters")
        pairs = tuple((float(x), float(y)) for x, y in points)
        return cls(kind, label, float(radius), pairs, key)

    def as_json(self) -> dict[str, Any]:
        """Return the stroke as JSON data that ``read`` accepts."""
        return {
            "kind": self.kind,
            "label": self.label,
            "radius": self.radius,
            "points": [list(point) for point in self.points],
            "key": self.key,
        }

    def box(self, shape: tuple[int, int]) -> tuple[int, int, int, int]:
        """Return the box (top, left, bottom, right) with exclusive bottom and right."""
        (x0, y0), (x1, y1) = self.points[0], self.points[-1]
        top, bottom = _span(y0, y1, shape[0])
        left, right = _span(x0, x1, shape[1])
        return top, left, bottom, right


def _is_number(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return abs(number) <= sys.float_info.max  # JSON integers may exceed the range of floats


def _span(first: float, last: float, side: int) -> tuple[int, int]:
    low, high = sorted((first, last))
    begin = min(max(floor(low), 0), side - 1)
    return begin, min(max(ceil(high), begin + 1), side)


@dataclass(frozen=True)
class Patch:
    """The part of the marks that a step changes, as it was before."""

    rows: slice
    columns: slice
    before: Marks


def check_work(stroke: Stroke, shape: tuple[int, int]) -> None:
    """Raise a ``ValueError`` if a stroke would take too long to draw."""
    points = np.asarray(stroke.points)
    first, last = points[:-1], points[1:]
    low = np.minimum(first, last) - stroke.radius - 1
    high = np.maximum(first, last) + stroke.radius + 1
    sides = np.clip(high, 0, shape[::-1]) - np.clip(low, 0, shape[::-1])
    if sides.prod(axis=1).sum() > MOST_WORK:
        raise ValueError("a stroke must be shorter, or its brush smaller: lift the pen in between")


def bounding_box(stroke: Stroke, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Return the rows and columns of the bounding box of a line."""
    points = np.asarray(stroke.points)
    low = points.min(axis=0) - stroke.radius - 1.0
    high = points.max(axis=0) + stroke.radius + 1.0
    rows, columns = (
        slice(min(max(int(low[axis]), 0), side), max(min(int(high[axis]) + 1, side), 0))
        for axis, side in ((1, shape[0]), (0, shape[1]))
    )
    return rows, columns


def draw(marks: Marks, stroke: Stroke) -> Patch:
    """Draw a line into ``marks`` in place. Return the previous marks, for undoing it."""
    points = np.asarray(stroke.points)
    rows, columns = bounding_box(stroke, marks.shape)
    patch = Patch(rows, columns, marks[rows, columns].copy())
    origin = np.array([columns.start, rows.start], float)
    inside = np.zeros(patch.before.shape, np.bool_)
    ends = points - origin
    for first, last in zip(ends, ends[1:] if len(ends) > 1 else ends, strict=False):
        _add_segment(inside, first, last, stroke.radius)
    marks[rows, columns][inside] = -1 if stroke.kind == "erase" else stroke.label
    return patch


def _add_segment(
    inside: BoolArray, first: NDArray[np.float64], last: NDArray[np.float64], radius: float
) -> None:
    """Add pixels with centres within ``radius`` of a segment, and its first pixel."""
    height, width = inside.shape
    x0, y0 = np.maximum(np.minimum(first, last) - radius - 1, 0).astype(int)
    x1, y1 = np.ceil(np.maximum(first, last) + radius + 1).astype(int)
    x1, y1 = min(x1, width), min(y1, height)
    if x0 >= x1 or y0 >= y1:
        return
    x = np.arange(x0, x1) + 0.5 - first[0]
    dx, dy = last - first
    length = dx * dx + dy * dy
    tall = max(BLOCK_SIDE**2 // (x1 - x0), 1)
    for top in range(y0, y1, tall):
        bottom = min(top + tall, y1)
        y = (np.arange(top, bottom) + 0.5 - first[1])[:, None]
        along = np.clip((x * dx + y * dy) / length, 0.0, 1.0) if length > 0 else 0.0
        near = (x - along * dx) ** 2 + (y - along * dy) ** 2 <= radius * radius
        inside[top:bottom, x0:x1] |= near
    row, column = int(first[1]), int(first[0])
    if first[0] >= 0 and first[1] >= 0 and row < height and column < width:
        inside[row, column] = True
