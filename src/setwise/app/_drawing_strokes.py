"""What a person does to a picture, step by step: strokes, boxes, the eraser, a choice taken."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BoolArray

Marks = NDArray[np.int8]
"""(H, W): the label drawn on a pixel, -1 where there is none."""

MOST_LABELS = 9
MOST_POINTS = 100_000
LARGEST_RADIUS = 500.0
KINDS = ("brush", "erase", "box")
# A segment is drawn within the box around it; so many pixels of boxes take some seconds.
MOST_WORK = 250_000_000


@dataclass(frozen=True)
class Stroke:
    """A line of a round brush or eraser, or a box between the first point and the last.

    Points are (x, y) in pixels, the centre of the first pixel at (0.5, 0.5). ``key`` names the
    stroke: one that grows under the pen is given again and again under one key.
    """

    kind: str
    label: int
    radius: float
    points: tuple[tuple[float, float], ...]
    key: str = ""

    @classmethod
    def read(cls, given: object) -> Stroke:
        """A stroke from what came out of JSON; a ``ValueError`` in one sentence if it is none."""
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
            raise ValueError(f"radius must be above 0 and at most 500, got {str(radius)[:40]}")
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
        """What ``read`` reads."""
        return {
            "kind": self.kind,
            "label": self.label,
            "radius": self.radius,
            "points": [list(point) for point in self.points],
            "key": self.key,
        }

    def box(self, shape: tuple[int, int]) -> tuple[int, int, int, int]:
        """Rows and columns of a box, (top, left, bottom, right), the last two not within."""
        (x0, y0), (x1, y1) = self.points[0], self.points[-1]
        top, bottom = _span(y0, y1, shape[0])
        left, right = _span(x0, x1, shape[1])
        return top, left, bottom, right


def _is_number(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return abs(number) <= sys.float_info.max  # an integer of JSON may be beyond every float


def _span(first: float, last: float, side: int) -> tuple[int, int]:
    low, high = sorted((first, last))
    begin = min(max(floor(low), 0), side - 1)
    return begin, min(max(ceil(high), begin + 1), side)


@dataclass(frozen=True)
class Patch:
    """A part of the marks as it was."""

    rows: slice
    columns: slice
    before: Marks


def check_work(stroke: Stroke, shape: tuple[int, int]) -> None:
    """A ``ValueError`` where a stroke would take too long to draw."""
    points = np.asarray(stroke.points)
    first, last = points[:-1], points[1:]
    low = np.minimum(first, last) - stroke.radius - 1
    high = np.maximum(first, last) + stroke.radius + 1
    sides = np.clip(high, 0, shape[::-1]) - np.clip(low, 0, shape[::-1])
    if sides.prod(axis=1).sum() > MOST_WORK:
        raise ValueError("a stroke must be shorter, or its brush smaller: lift the pen in between")


def draw(marks: Marks, stroke: Stroke) -> Patch:
    """Draws a line into the marks in place; what was there comes back, to be put there again."""
    points = np.asarray(stroke.points)
    reach = stroke.radius + 1.0
    low, high = points.min(axis=0) - reach, points.max(axis=0) + reach
    rows, columns = (
        slice(max(int(low[axis]), 0), max(min(int(high[axis]) + 1, side), 0))
        for axis, side in ((1, marks.shape[0]), (0, marks.shape[1]))
    )
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
    """Adds the pixels whose centre is within the radius of a segment, and the one it begins in."""
    height, width = inside.shape
    x0, y0 = np.maximum(np.minimum(first, last) - radius - 1, 0).astype(int)
    x1, y1 = np.ceil(np.maximum(first, last) + radius + 1).astype(int)
    x1, y1 = min(x1, width), min(y1, height)
    if x0 >= x1 or y0 >= y1:
        return
    x = np.arange(x0, x1) + 0.5 - first[0]
    y = (np.arange(y0, y1) + 0.5 - first[1])[:, None]
    dx, dy = last - first
    length = dx * dx + dy * dy
    along = np.clip((x * dx + y * dy) / length, 0.0, 1.0) if length > 0 else 0.0
    near = (x - along * dx) ** 2 + (y - along * dy) ** 2 <= radius * radius
    inside[y0:y1, x0:x1] |= near
    row, column = int(first[1]), int(first[0])
    if first[0] >= 0 and first[1] >= 0 and row < height and column < width:
        inside[row, column] = True
