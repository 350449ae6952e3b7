"""Colour, texture and position of a pixel and of its surroundings, for a classifier of pixels.

An image is described on a grid of cells of 2 x 2 pixels. ``channels`` gives each cell a vector:
colour, the share of each texton (a cluster of filter responses), directions of edges and local
binary patterns. ``appearance`` averages these over windows around a cell and beside it; ``context``
does the same with the class probabilities of a first classifier. All windows are rectangles, so
that the unaries do not depend on superpixels.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter, gaussian_laplace
from skimage.color import rgb2lab
from skimage.feature import local_binary_pattern

CELL = 2
DIRECTIONS = 8
PATTERNS = 10  # uniform patterns of eight neighbours
CENTERED = (2, 6, 15, 30)  # half widths of windows around a cell, in cells
RINGS = ((12, 5), (30, 10))  # distance and half width of the windows beside a cell, in cells


def filter_bank(lab: np.ndarray) -> np.ndarray:
    """Return the 17 responses (h, w, 17) of TextonBoost's filter bank to an image in L*a*b*.

    The filters are Gaussians of 1, 2, 4 pixels on L, a and b, and on L Laplacians of 1, 2, 4, 8
    pixels and the derivatives of Gaussians of 2 and 4 pixels along x and y. Each response is
    multiplied by its filter's scale, so that the sizes are comparable.
    """
    light = lab[..., 0]
    smooth = [gaussian_filter(lab[..., c], s) for s in (1, 2, 4) for c in range(3)]
    blobs = [s * s * gaussian_laplace(light, s) for s in (1, 2, 4, 8)]
    edges = [s * gaussian_filter(light, s, order=o) for s in (2, 4) for o in ((0, 1), (1, 0))]
    return np.stack([*smooth, *blobs, *edges], axis=-1).astype(np.float32)


def cell_means(values: np.ndarray) -> np.ndarray:
    """Return means over cells of 2 x 2 pixels: (h, w, C) to (ceil(h / 2), ceil(w / 2), C)."""
    h, w = values.shape[:2]
    even = np.pad(values, ((0, h % CELL), (0, w % CELL), (0, 0)), mode="edge")
    h, w, c = even.shape
    return even.reshape(h // CELL, CELL, w // CELL, CELL, c).mean(axis=(1, 3), dtype=np.float32)


def one_hot(ids: np.ndarray, count: int) -> np.ndarray:
    """Return indicators (..., count) of integers below ``count``."""
    return (ids[..., None] == np.arange(count)).astype(np.float32)


def nearest(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return for each row of ``points`` the index of the nearest row of ``centers``."""
    return np.argmin(np.sum(centers**2, axis=1) - 2 * (points @ centers.T), axis=1)


def edge_directions(light: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return direction indicators (h, w, 8) and sizes (h, w) of the gradient of smoothed L."""
    dy, dx = np.gradient(gaussian_filter(light, scale))
    turn = np.arctan2(dy, dx) / np.pi % 1  # an edge and its negative have the same direction
    bins = np.minimum((turn * DIRECTIONS).astype(np.int64), DIRECTIONS - 1)
    return one_hot(bins, DIRECTIONS), np.hypot(dx, dy)


def binary_patterns(light: np.ndarray, radius: int = 1) -> np.ndarray:
    """Return indicators (h, w, 10) of the uniform local binary patterns of L, in [0, 100]."""
    grey = np.round(light * 2.55).astype(np.uint8)
    codes = local_binary_pattern(grey, PATTERNS - 2, radius, "uniform").astype(np.int64)
    return one_hot(codes, PATTERNS)


def channels(image: np.ndarray, textons: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the appearance of each cell, shape (rows, columns, C).

    ``textons`` holds the scale of each filter response, (17,), and the cluster centres, (K, 17), of
    the responses divided by it. The first five channels are L, a, b and the energy of fine and of
    coarse edges.
    """
    lab = rgb2lab(image)
    responses = filter_bank(lab)
    scale, centers = textons
    h, w = lab.shape[:2]
    words = nearest((responses / scale).reshape(h * w, -1), centers).reshape(h, w)
    energies = [np.hypot(responses[..., k], responses[..., k + 1]) for k in (13, 15)]
    directions, strength = edge_directions(lab[..., 0], 1)
    parts = [
        lab / 50,
        np.log1p(np.stack(energies, axis=-1)),
        directions * np.log1p(strength)[..., None],
        *(binary_patterns(lab[..., 0], radius) for radius in (1, 3)),
        one_hot(words, len(centers)),
    ]
    return np.concatenate([cell_means(part) for part in parts], axis=-1)


class Boxes:
    """Means of channels (h, w, C) over rectangles, each from four entries of a table of sums."""

    def __init__(self, values: np.ndarray) -> None:
        h, w, c = values.shape
        self.shape = (h, w)
        self.sums = np.zeros((h + 1, w + 1, c))
        self.sums[1:, 1:] = values.cumsum(axis=0, dtype=np.float64).cumsum(axis=1)

    def means(self, y: np.ndarray, x: np.ndarray, half: int) -> np.ndarray:
        """Return means over squares of side 2 half + 1 around (y, x), clipped to the image.

        A centre outside the image is moved to the nearest position inside it.
        """
        (top, bottom), (left, right) = (
            (np.maximum(p - half, 0), np.minimum(p + half + 1, size))
            for p, size in zip(self._inside(y, x), self.shape, strict=True)
        )
        s = self.sums
        total = s[bottom, right] - s[top, right] - s[bottom, left] + s[top, left]
        area = ((bottom - top) * (right - left))[:, None]
        return (total / area).astype(np.float32)

    def _inside(self, y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        h, w = self.shape
        return np.clip(y, 0, h - 1), np.clip(x, 0, w - 1)

    def overall(self) -> np.ndarray:
        """Return the means over the whole image, shape (C,)."""
        return (self.sums[-1, -1] / np.prod(self.shape)).astype(np.float32)


def ring(boxes: Boxes, y: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    """Return means over the windows beside (y, x), in eight directions per distance of RINGS."""
    steps = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
    return [
        boxes.means(y + distance * a, x + distance * b, half)
        for distance, half in RINGS
        for a, b in steps
    ]


def place(shape: tuple[int, int], y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the position of each cell in its image, and whether the image is upright.

    The columns are height and side in [-1, 1], the absolute side, and the distance to the middle.
    """
    h, w = shape
    v, u = 2 * y / (h - 1) - 1, 2 * x / (w - 1) - 1
    return np.stack([v, u, np.abs(u), np.hypot(u, v), np.full(v.shape, h > w)], axis=1)


def appearance(cells: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return features (n, d) of the cells (y, x), made from the channels of their image."""
    boxes, coarse = Boxes(cells), Boxes(cells[..., :5])
    overall = np.broadcast_to(boxes.overall(), (len(y), cells.shape[2]))
    around = [boxes.means(y, x, half) for half in CENTERED]
    parts = [cells[y, x, :5], *around, *ring(coarse, y, x), overall]
    return np.hstack([*parts, place(boxes.shape, y, x)]).astype(np.float32)


def context(probabilities: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return features (n, d') of the cells (y, x) from class probabilities (rows, columns, L)."""
    boxes = Boxes(probabilities)
    overall = np.broadcast_to(boxes.overall(), (len(y), probabilities.shape[2]))
    around = [boxes.means(y, x, half) for half in CENTERED]
    return np.hstack([probabilities[y, x], *around, *ring(boxes, y, x), overall]).astype(np.float32)
