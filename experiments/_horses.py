"""The Weizmann horses as graphs of superpixels, with features in fifteen groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _data import require
from _texture import DIRECTIONS, PATTERNS, Boxes, filter_bank, nearest, one_hot, place
from scipy.ndimage import gaussian_filter
from scipy.signal import fftconvolve
from scipy.sparse import coo_array, eye_array
from skimage.color import rgb2lab, rgb2luv
from skimage.feature import local_binary_pattern
from skimage.filters import gabor_kernel
from skimage.io import imread
from skimage.segmentation import slic
from skimage.transform import resize

SET = "weizmann_horses"
SIDE = 240  # the longer side of the image that features are computed on, in pixels
SUPERPIXELS, COMPACTNESS = 300, 10.0
CELLS = (4, 8, 12, 16)  # sides of the cells of a patch, in pixels; a patch has 4 x 4 of them
SCALES, TURNS = 4, 8  # of the Gabor filters, as the paper's GIST
BINS = 16  # of a histogram of L, a or b
SIZED = ("gist", "lbp", "hog")
GROUPS = ("words", "colour", "place", *(f"{kind} {cell}" for kind in SIZED for cell in CELLS))


@dataclass(frozen=True, eq=False)
class Horse:
    """One photograph as a graph of N superpixels.

    ``segments`` (h, w) names the superpixel of each pixel of the photograph, ``counts`` (N, 2) its
    pixels that are not horse and that are. ``reduced`` (h', w', 3) is the image that features are
    made of, ``cells`` (h', w') its superpixels. ``edges`` (E, 2) have ``colour`` (E,), the distance
    of the mean L*u*v*, and ``boundary`` (E,), their length in pixels.
    """

    name: str
    segments: np.ndarray
    counts: np.ndarray
    reduced: np.ndarray
    cells: np.ndarray
    edges: np.ndarray
    colour: np.ndarray
    boundary: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """1 where most of a superpixel is horse."""
        return (self.counts[:, 1] > self.counts[:, 0]).astype(np.int64)


def names() -> list[str]:
    """The 60 photographs, in order."""
    return sorted(path.stem for path in require(SET, "rgb").glob("*.jpg"))


def photograph(name: str) -> np.ndarray:
    """Red, green and blue, shape (h, w, 3), uint8."""
    return imread(require(SET, "rgb", f"{name}.jpg"))


def mask(name: str) -> np.ndarray:
    """Where the horse is, shape (h, w), bool."""
    return imread(require(SET, "mask", f"{name}.png")) > 0


def horse(name: str) -> Horse:
    """A photograph as a graph."""
    image, truth = photograph(name), mask(name)
    scale = SIDE / max(truth.shape)
    size = tuple(round(side * scale) for side in truth.shape)
    reduced = resize(image, size, anti_aliasing=scale < 1)
    cells = slic(reduced, SUPERPIXELS, COMPACTNESS, start_label=0)
    cells = np.unique(cells, return_inverse=True)[1].reshape(size)
    rows, columns = (
        np.minimum(((np.arange(full) + 0.5) * part / full).astype(int), part - 1)
        for full, part in zip(truth.shape, size, strict=True)
    )
    segments = cells[np.ix_(rows, columns)]
    n = int(cells.max()) + 1
    counts = np.bincount((2 * segments + truth).ravel(), minlength=2 * n).reshape(n, 2)
    edges, boundary = neighbours(cells)
    means = _means(rgb2luv(reduced), cells)
    colour = np.linalg.norm(means[edges[:, 0]] - means[edges[:, 1]], axis=1)
    return Horse(name, segments, counts, reduced, cells, edges, colour, boundary)


def features(one: Horse, codes: tuple[np.ndarray, np.ndarray]) -> dict[str, np.ndarray]:
    """All groups of features, (N, d) each; ``codes`` is the book of visual words."""
    lab = rgb2lab(one.reduced)
    light = lab[..., 0]
    return {
        "words": _words(filter_bank(lab), one, codes),
        "colour": _colours(lab, one),
        "place": _place(one.cells),
        **_patches("gist", _gabor(light), one.cells),
        **_patches("lbp", _patterns(light), one.cells),
        **_patches("hog", _gradients(light), one.cells),
    }


def neighbours(segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of superpixels that touch, (E, 2), and the length of their boundary in pixels."""
    ends = np.vstack(
        [
            np.column_stack([segments[:-1].ravel(), segments[1:].ravel()]),
            np.column_stack([segments[:, :-1].ravel(), segments[:, 1:].ravel()]),
        ]
    )
    ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
    edges, lengths = np.unique(ends, axis=0, return_counts=True)
    return edges, lengths.astype(float)


def around(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sums over all superpixels at most two steps away, each superpixel itself included."""
    n = len(values)
    both = np.vstack([edges, edges[:, ::-1]])
    step = coo_array((np.ones(len(both)), both.T), shape=(n, n)).tocsr() + eye_array(n)
    reach = (step @ step).tocsr()
    reach.data[:] = 1.0
    return reach @ values


def _words(responses: np.ndarray, one: Horse, codes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Shares of the visual words around each superpixel."""
    scale, centres = codes
    nearest_code = nearest(responses.reshape(-1, len(scale)) / scale, centres)
    n = len(one.counts)
    bins = one.cells.ravel() * len(centres) + nearest_code
    counts = np.bincount(bins, minlength=n * len(centres)).reshape(n, -1).astype(float)
    return _shares(around(counts, one.edges))


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def _means(values: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Means of channels (h, w, C) over superpixels, (N, C)."""
    flat = segments.ravel()
    sums = [np.bincount(flat, channel.ravel()) for channel in np.moveaxis(values, -1, 0)]
    return np.column_stack(sums) / np.bincount(flat)[:, None]


def _colours(lab: np.ndarray, one: Horse) -> np.ndarray:
    """Means of L, a and b, and their histograms in a superpixel and around it."""
    low, high = np.array([0.0, -60.0, -60.0]), np.array([100.0, 60.0, 60.0])
    bins = np.clip((lab - low) / (high - low) * BINS, 0, BINS - 1).astype(np.int64)
    shares = np.hstack([_means(one_hot(bins[..., c], BINS), one.cells) for c in range(3)])
    counts = shares * np.bincount(one.cells.ravel())[:, None]
    return np.hstack([_means(lab, one.cells), shares, _shares(around(counts, one.edges))])


def _centres(segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.indices(segments.shape)
    middle = _means(np.stack([y, x], axis=-1).astype(float), segments)
    return middle[:, 0].astype(int), middle[:, 1].astype(int)


def _place(segments: np.ndarray) -> np.ndarray:
    """Where a superpixel is, how large, how far it stretches, whether it touches the frame."""
    y, x = np.indices(segments.shape).astype(float)
    sizes = np.bincount(segments.ravel())
    middle = _means(np.stack([y, x], axis=-1), segments)
    spread = _means(np.stack([y * y, x * x, x * y], axis=-1), segments)
    spread[:, :2] -= middle**2
    spread[:, 2] -= middle[:, 0] * middle[:, 1]
    frame = np.zeros(len(sizes))
    for side in (segments[0], segments[-1], segments[:, 0], segments[:, -1]):
        frame[side] = 1.0
    where = place(segments.shape, middle[:, 0], middle[:, 1])
    return np.column_stack(
        [where, sizes, np.sqrt(np.maximum(spread[:, :2], 0)), spread[:, 2], frame]
    )


def _patches(name: str, channels: np.ndarray, segments: np.ndarray) -> dict[str, np.ndarray]:
    """Means of the channels in 4 x 4 cells around each superpixel's centre, one group a size."""
    boxes, (y, x) = Boxes(channels), _centres(segments)
    groups = {}
    for cell in CELLS:
        offsets = [int(cell * (k - 1.5)) for k in range(4)]
        parts = [boxes.means(y + a, x + b, cell // 2) for a in offsets for b in offsets]
        groups[f"{name} {cell}"] = np.hstack(parts)
    return groups


def _gabor(light: np.ndarray) -> np.ndarray:
    """Sizes of Gabor responses at four scales and eight directions, (h, w, 32)."""
    answers = []
    wide = np.pad(light / 100 - light.mean() / 100, 32, mode="reflect")
    for scale in range(SCALES):
        for turn in range(TURNS):
            kernel = gabor_kernel(0.3 / 1.7**scale, np.pi * turn / TURNS)
            answers.append(np.abs(fftconvolve(wide, kernel, "same"))[32:-32, 32:-32])
    return np.stack(answers, axis=-1)


def _patterns(light: np.ndarray) -> np.ndarray:
    """Indicators of the uniform local binary patterns, (h, w, 10)."""
    grey = np.round(light * 2.55).astype(np.uint8)
    codes = local_binary_pattern(grey, PATTERNS - 2, 1, "uniform").astype(np.int64)
    return one_hot(codes, PATTERNS)


def _gradients(light: np.ndarray) -> np.ndarray:
    """The size of the gradient in its direction's channel, (h, w, 8)."""
    dy, dx = np.gradient(gaussian_filter(light, 0.7))
    turn = np.arctan2(dy, dx) / np.pi % 1
    bins = np.minimum((turn * DIRECTIONS).astype(np.int64), DIRECTIONS - 1)
    return one_hot(bins, DIRECTIONS) * np.hypot(dx, dy)[..., None]
