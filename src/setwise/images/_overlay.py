"""Labels as colours over an image: an array, for whatever shows pictures."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise._foundation._pictures import Bytes
from setwise.images._pixels import Pixels


def as_bytes(pixels: Pixels) -> Bytes:
    """The image with three channels: colours as they are, a single one thrice, of others the first.

    Numbers other than bytes are stretched, so that the least is black and the largest white; but
    real numbers from 0 to 1 stay what they are.
    """
    values = pixels.values
    chosen = values[:, :3] if values.shape[1] >= 3 else values[:, :1]
    if chosen.dtype != np.uint8:
        numbers = chosen.astype(np.float64)
        low, high = float(numbers.min()), float(numbers.max())
        if chosen.dtype.kind == "f" and low >= 0.0 and high <= 1.0:
            low, high = 0.0, 1.0
        numbers = (numbers - low) / (high - low if high > low else 1.0)
        chosen = np.round(255 * numbers).astype(np.uint8)
    return np.broadcast_to(chosen, (len(chosen), 3)).reshape(*pixels.shape, 3).copy()


def overlaid(image: Bytes, labels: IntArray, colors: Bytes, opacity: float) -> Bytes:
    """Labels (H, W) as colours (L, 3) over an image (H, W, 3); -1 leaves a pixel alone."""
    share = round(256 * opacity)
    mixed = image.astype(np.uint16) * (256 - share) + colors[labels].astype(np.uint16) * share
    return np.where((labels >= 0)[..., None], (mixed >> 8).astype(np.uint8), image)
