"""Long calls on images."""

from __future__ import annotations

import numpy as np

import setwise as sw
from interrupt_registry._calls import Call, long


def _image(size: int) -> tuple[np.ndarray, np.ndarray]:
    side = 12 * size
    rng = np.random.default_rng(size)
    image = rng.normal(size=(side, side)) + 2.0 * (np.arange(side) > side // 2)
    scribbles = np.full((side, side), -1)
    scribbles[2, 1], scribbles[side - 3, side - 2] = 0, 1
    return image, scribbles


@long("images.field_from_image")
def field_from_image(size: int) -> Call:
    image, _ = _image(size)
    box = [2, 2, len(image) - 2, len(image) - 1]
    return lambda: sw.images.field_from_image(image, boxes=box).unary


@long("images.segment")
def segment(size: int) -> Call:
    image, scribbles = _image(size)
    return lambda: sw.images.segment(image, scribbles, n_jobs=1).result
