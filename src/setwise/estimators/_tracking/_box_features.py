"""What a box of an image looks like: its grey values, and histograms of oriented gradients.

Both are sums over the cells of a grid in the box, which an integral image gives for any number of
boxes at four look-ups a corner, however large they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray

_DIRECTIONS = 9


def grey(frame: NDArray[np.generic]) -> FloatArray:
    """An image (h, w), or (h, w, 3) as its luminance, with values in 0..255."""
    image = frame.astype(np.float64)
    if frame.dtype.kind == "f":
        image *= 255.0  # the convention of floating-point images: 0..1
    if image.ndim == 3:
        image = image @ np.array([0.299, 0.587, 0.114])
    return image


def cell_means(channels: FloatArray, boxes: FloatArray, cells: int) -> FloatArray:
    """Means over the cells of a grid in each box: channels (h, w, c) -> (n, cells, cells, c).

    Exact for boxes between pixels too, the image being constant on each pixel. Beyond the border
    the outermost pixels are repeated: there the integral goes on as on the outermost pixel, so that
    a box costs the same wherever it lies.
    """
    height, width = channels.shape[:2]
    integral = np.zeros((height + 1, width + 1, channels.shape[2]))
    np.cumsum(np.cumsum(channels, axis=0), axis=1, out=integral[1:, 1:])
    ticks = np.arange(cells + 1) / cells
    columns = boxes[:, 0, None] + boxes[:, 2, None] * ticks
    rows = boxes[:, 1, None] + boxes[:, 3, None] * ticks
    top = np.clip(rows, 0, height - 1).astype(np.int64)
    left = np.clip(columns, 0, width - 1).astype(np.int64)
    down = (rows - top)[:, :, None, None]
    right = (columns - left)[:, None, :, None]
    top, left = top[:, :, None], left[:, None, :]
    upper = integral[top, left] * (1 - right) + integral[top, left + 1] * right
    lower = integral[top + 1, left] * (1 - right) + integral[top + 1, left + 1] * right
    corners = upper * (1 - down) + lower * down
    sums: FloatArray = np.diff(np.diff(corners, axis=1), axis=2)
    return sums * (cells**2 / (boxes[:, 2] * boxes[:, 3]))[:, None, None, None]


def pixel_features(image: FloatArray, boxes: FloatArray) -> FloatArray:
    """Grey values at 16 x 16: (n, 256)."""
    return cell_means(image[:, :, None], boxes, 16).reshape(len(boxes), 256)


def hog_features(image: FloatArray, boxes: FloatArray) -> FloatArray:
    """Histograms of oriented gradients: 9 directions, 4 x 4 cells, blocks of 2 x 2: (n, 324).

    Each gradient is shared between its two nearest directions by how near they are; each
    block of four cells is divided by its length. Scaled to 0..255.

    References
    ----------
    N. Dalal, B. Triggs, Histograms of oriented gradients for human detection, 2005.
    """
    height, width = image.shape
    down = np.gradient(image, axis=0) if height > 1 else np.zeros_like(image)
    right = np.gradient(image, axis=1) if width > 1 else np.zeros_like(image)
    turn = np.mod(np.arctan2(down, right), np.pi) * (_DIRECTIONS / np.pi)
    first = turn.astype(np.int64)
    share, length = turn - first, np.hypot(down, right)
    votes = np.zeros((height, width, _DIRECTIONS))
    y, x = np.indices(image.shape)
    votes[y, x, first % _DIRECTIONS] = length * (1 - share)
    votes[y, x, (first + 1) % _DIRECTIONS] = length * share
    histogram = cell_means(votes, boxes, 4)
    blocks: FloatArray = np.concatenate(
        [histogram[:, i : i + 3, j : j + 3] for i in (0, 1) for j in (0, 1)], axis=3
    )
    norms = np.linalg.norm(blocks, axis=3, keepdims=True)
    blocks = np.divide(blocks, norms, out=np.zeros_like(blocks), where=norms > 1e-6)
    return 255.0 * blocks.reshape(len(boxes), 324)


FEATURES = {"pixels": pixel_features, "hog": hog_features}


def box_features(image: FloatArray, boxes: FloatArray, kinds: tuple[str, ...]) -> FloatArray:
    """The features of each box side by side, rounded to whole numbers in 0..255: (n, d).

    Rounded, a feature has at most 256 values, and the search for a stump counts instead of sorting.
    """
    features: FloatArray = np.concatenate([FEATURES[kind](image, boxes) for kind in kinds], axis=1)
    return np.rint(features)
