"""Images as arrays of pixels: the axes of the sides and the axis of the channels."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import SQUARABLE, IntArray, as_array
from setwise.images._picture import Picture

# The most labels that marks may have. Arrays have an entry per pixel and label, so a single wrong
# number in the marks could exhaust the memory. Not tuned: marks have far fewer labels.
_MOST_LABELS = 1000


@dataclass(frozen=True, eq=False)
class Pixels:
    """The pixels of an image or a volume, in C order."""

    values: NDArray[Any]
    """(N, C): finite numbers, of the image's own type."""
    shape: tuple[int, ...]
    """The sides: two of an image, three of a volume."""
    spacing: tuple[float, ...] | None = None
    """The distance of neighbouring pixels along each side, if it is known."""

    @property
    def n(self) -> int:
        """The number N of pixels."""
        return len(self.values)


def as_pixels(
    image: ArrayLike,
    channel_axis: object = "auto",
    sides: tuple[int, ...] | None = None,
) -> Pixels:
    """Read the pixels of an image, of ``sides`` if another array determines them."""
    array = as_array(image, "image")
    spacing = None
    if isinstance(image, Picture) and channel_axis == "auto":
        channel_axis, spacing = image.channel_axis, image.spacing
    if array.dtype.kind not in "fiub":
        raise TypeError(f"image must hold real numbers, got dtype {array.dtype}")
    axis = _channel_axis(array.shape, channel_axis, sides)
    if axis is None:
        shape, values = array.shape, array.reshape(-1, 1)
    else:
        moved = np.moveaxis(array, axis, -1)
        shape = moved.shape[:-1]
        values = moved.reshape(prod(shape), moved.shape[-1])
    if len(shape) not in (2, 3) or 0 in array.shape:
        raise ValueError(
            "image must have two sides, or three of a volume, and at least one pixel and channel, "
            f"got shape {array.shape} with channel_axis={axis}"
        )
    if values.dtype.kind == "b":
        values = values.astype(np.uint8) * np.uint8(255)
    if values.dtype == np.float16 or values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"image must be finite, got {values[~np.isfinite(values)][0]}")
    most = max(float(values.max()), -float(values.min()))
    if most > SQUARABLE:
        raise ValueError(f"image must be at most {SQUARABLE:g} in size, got {most:g}")
    return Pixels(np.ascontiguousarray(values), shape, as_spacing(spacing, len(shape)))


def as_spacing(spacing: ArrayLike | None, sides: int) -> tuple[float, ...] | None:
    """Return the distances of neighbours along each side."""
    if spacing is None:
        return None
    steps = as_array(spacing, "spacing")
    if steps.dtype.kind not in "fiu":
        raise TypeError(f"spacing must hold real numbers, got dtype {steps.dtype}")
    if steps.shape != (sides,) or not (np.isfinite(steps).all() and (steps > 0).all()):
        raise ValueError(
            f"spacing must be {sides} positive finite numbers, one for each side, got "
            f"{steps.tolist()}"
        )
    return tuple(map(float, steps))


def _channel_axis(
    shape: tuple[int, ...], given: object, sides: tuple[int, ...] | None
) -> int | None:
    """Return the axis of the channels, or None if each pixel is a number."""
    if given is None:
        return None
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if not -len(shape) <= given < len(shape):
            raise ValueError(
                f"channel_axis must be an axis of an image of shape {shape}, got {given}"
            )
        return int(given) % len(shape)
    if not (isinstance(given, str) and given == "auto"):
        raise (ValueError if isinstance(given, str) else TypeError)(
            f"channel_axis must be an axis, None or 'auto', got {given!r}"
        )
    if sides is not None:
        if shape == sides:
            return None
        for axis in reversed(range(len(shape))):
            if shape[:axis] + shape[axis + 1 :] == sides:
                return axis
    return _usual_axis(shape)


def _usual_axis(shape: tuple[int, ...]) -> int | None:
    """Return the axis of the channels if only the shape is known."""
    if len(shape) < 3:
        return None
    # Usual numbers of channels: grey (as the last axis only), colours, colours and opacity.
    may_be_last, may_be_first = shape[-1] in (1, 3, 4), shape[0] in (3, 4)
    if may_be_last and not (may_be_first and len(shape) == 3):
        return len(shape) - 1
    # A first or last axis that is much shorter than the others may also hold channels.
    least, *others = sorted(shape)
    slim = least <= 16 and 4 * least <= min(others) and least in (shape[0], shape[-1])
    if len(shape) == 3 and not (may_be_last or may_be_first or slim or shape[-1] == 2):
        return None
    raise ValueError(
        f"channel_axis must be given for an image of shape {shape}: the axis of its channels, or "
        "None for a volume with a number in each pixel"
    )


def as_marks(marks: ArrayLike | None, shape: tuple[int, ...], name: str) -> IntArray | None:
    """Return labels drawn on an image, flat, with -1 for unmarked pixels."""
    if marks is None:
        return None
    array = as_array(marks, name)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must hold integers, labels from 0 on and -1 where nothing was drawn, "
            f"got dtype {array.dtype}"
        )
    if array.shape != shape:
        raise ValueError(f"{name} must have the image's shape {shape}, got {array.shape}")
    low, high = array.min(), array.max()
    if low < -1 or high >= _MOST_LABELS:
        raise ValueError(
            f"{name} must hold labels below {_MOST_LABELS}, and -1 where nothing was drawn, "
            f"got {low if low < -1 else high}"
        )
    return array.ravel().astype(np.int64)
