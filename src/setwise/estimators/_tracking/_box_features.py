"""Features of a box of an image: its grey values, and histograms of oriented gradients.

Both are sums over the cells of a grid in the box. An integral image computes them with four
look-ups per corner, independent of the size of the box. They are exact for boxes at fractional
positions too, since the image is constant on each pixel. Outside the image, the pixels at its
border are repeated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._arguments import FloatArray

Bytes = NDArray[np.uint8]
Look = NDArray[np.float32]

# Grey values at 16 x 16; histograms of 9 directions in 4 x 4 cells, each block of 2 x 2 of them
# divided by its length (N. Dalal, B. Triggs, Histograms of oriented gradients, 2005).
FEATURES = {"pixels": 256, "hog": 324}
# Images of floats are rounded to 1 / _FINEST of a grey value, a power of two, so that bytes and the
# same image as floats give the same sums, and finer than 16-bit images.
_FINEST = 1024.0
# Contrast (root mean square, in grey values) below this counts as noise. Not tuned.
_NOISE = 2.0


def grey(frame: NDArray[np.generic]) -> FloatArray:
    """Return an image (h, w), or (h, w, 3) as its luminance, with values in 0..255."""
    image = frame.astype(np.float64)
    if frame.dtype.kind == "f":  # the convention of floating-point images: 0..1
        image = np.rint(image * (255.0 * _FINEST)) / _FINEST
    if image.ndim == 3:
        image = image @ np.array([0.299, 0.587, 0.114])
    return np.ascontiguousarray(image)


class BoxFeatures:
    """The features of any box of one image, summed once."""

    def __init__(self, image: FloatArray, kinds: tuple[str, ...]) -> None:
        self.shape = (image.shape[0], image.shape[1])
        self._image = _core.BoxImage(image)
        self._kinds = np.array([list(FEATURES).index(kind) for kind in kinds], dtype=np.int64)
        self._width = sum(FEATURES[kind] for kind in kinds)

    def __call__(self, boxes: FloatArray) -> Bytes:
        """Compute the features of each box, rounded to whole numbers in 0..255: (n, d).

        A rounded feature has at most 256 values, so a sum of stumps on it is a table.
        """
        features = np.empty((len(boxes), self._width), dtype=np.uint8)
        self._image.describe(np.ascontiguousarray(boxes), self._kinds, features)
        return features


def looks(features: Bytes, kinds: tuple[str, ...]) -> Look:
    """Return unit vectors (n, d + k), with normalised mean and contrast of each of the k kinds.

    The product of two vectors is the mean of their correlations over the kinds, so that
    illumination has little effect. One more entry per kind, ``_NOISE``, makes boxes without
    contrast similar to each other and dissimilar to others.
    """
    parts, begin = [], 0
    for kind in kinds:
        values = features[:, begin : begin + FEATURES[kind]].astype(np.float32)
        begin += FEATURES[kind]
        values -= values.mean(axis=1, keepdims=True)
        noise = np.full((len(values), 1), _NOISE * np.sqrt(FEATURES[kind]), dtype=np.float32)
        part = np.concatenate([values, noise], axis=1)
        parts.append(part / np.linalg.norm(part, axis=1, keepdims=True))
    joined: Look = np.concatenate(parts, axis=1)
    return joined * np.float32(1 / np.sqrt(len(kinds)))
