"""Checks of the frames and boxes that users pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_array, as_numbers
from setwise.estimators._tracking._box_features import grey
from setwise.estimators._tracking._boxes import LARGEST


def as_frame(frame: ArrayLike) -> FloatArray:
    """Read a frame as grey values (h, w) in 0..255."""
    image: Any = as_array(frame, "frame")
    if image.dtype.kind not in "fu" and image.dtype.kind != "i":
        raise TypeError(f"frame must hold numbers, got {image.dtype}")
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)) or image.size == 0:
        raise ValueError(f"frame must have shape (h, w) or (h, w, 3), got {image.shape}")
    if not np.isfinite(image).all():
        raise ValueError("frame must be finite, got NaN or infinity")
    # The search for stumps requires 256 values, so other ranges are not accepted.
    most, kind = (1, "floats") if image.dtype.kind == "f" else (255, "integers")
    low, high = float(image.min()), float(image.max())
    if low < -1e-6 or high > most + 1e-6:  # resampled images may exceed the range by rounding
        raise ValueError(
            f"frame must hold {kind} between 0 and {most}, got {high if high > most else low:g}"
        )
    return grey(image)


def as_next_frame(frame: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Read a frame of the size of the first one, ``shape`` (height, width)."""
    image = as_frame(frame)
    if image.shape != shape:
        raise ValueError(
            f"frame must have the size of the first one, {shape[1]} wide and {shape[0]} high, "
            f"got {image.shape[1]} wide and {image.shape[0]} high"
        )
    return image


def as_box(box: ArrayLike, image: FloatArray) -> FloatArray:
    """Read a box with sides of at least one pixel that overlaps the image."""
    checked = as_numbers(box, "box", shape=(4,))
    check_sides(checked[None], "box")
    height, width = image.shape
    if (checked[:2] >= (width, height)).any() or (checked[:2] + checked[2:] <= 0).any():
        raise ValueError(
            f"box must lie at least partly in the frame, {width} wide and {height} high, "
            f"got {checked.tolist()}"
        )
    return checked


def check_sides(boxes: FloatArray, name: str) -> None:
    """Raise an error unless every box has sides of 1 to ``LARGEST`` pixels."""
    for box in boxes[((boxes[:, 2:] < 1) | (boxes[:, 2:] > LARGEST)).any(axis=1)][:1]:
        raise ValueError(
            f"{name} must be (x, y, w, h) with positive w and h, 1 to {LARGEST:g} pixels, "
            f"got {box.tolist()}"
        )
