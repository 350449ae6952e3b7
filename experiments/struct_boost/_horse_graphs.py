"""The Weizmann horses as graphs of superpixels, with features in fifteen groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve
from scipy.sparse import coo_array, eye_array
from skimage.color import rgb2lab, rgb2luv
from skimage.filters import gabor_kernel
from skimage.transform import resize

from experiments.shared.regions import label_counts, region_means, superpixels, touching
from experiments.shared.texture import (
    Boxes,
    binary_patterns,
    edge_directions,
    filter_bank,
    nearest,
    one_hot,
    place,
)
from experiments.shared.weizmann import mask, photograph

SIDE = 240  # the longer side, in pixels, of the image that features are computed from
SUPERPIXELS = 300
CELLS = (4, 8, 12, 16)  # sides of the cells of a patch, in pixels; a patch has 4 x 4 of them
SCALES, TURNS = 4, 8  # scales and directions of the Gabor filters, as in the paper's GIST
BINS = 16  # bins of a histogram of L, a or b
SIZED = ("gist", "lbp", "hog")
GROUPS = ("words", "colour", "place", *(f"{kind} {cell}" for kind in SIZED for cell in CELLS))


@dataclass(frozen=True, eq=False)
class Horse:
    """One photograph as a graph of N superpixels.

    ``segments`` (h, w) has the superpixel of each pixel of the photograph. ``counts`` (N, 2) has
    the number of a superpixel's pixels outside and inside the horse. ``reduced`` (h', w', 3) is the
    image that features are computed from, and ``cells`` (h', w') has its superpixels. ``edges`` (E,
    2) have ``color`` (E,), the distance of the mean L*u*v*, and ``boundary`` (E,), their length in
    pixels.
    """

    name: str
    segments: np.ndarray
    counts: np.ndarray
    reduced: np.ndarray
    cells: np.ndarray
    edges: np.ndarray
    color: np.ndarray
    boundary: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """Labels (N,): 1 where most pixels of a superpixel belong to the horse."""
        return (self.counts[:, 1] > self.counts[:, 0]).astype(np.int64)


def horse(name: str) -> Horse:
    """Return a photograph as a graph."""
    image, truth = photograph(name), mask(name)
    scale = SIDE / max(truth.shape)
    size = tuple(round(side * scale) for side in truth.shape)
    reduced = resize(image, size, anti_aliasing=scale < 1)
    cells = superpixels(reduced, SUPERPIXELS)
    rows, columns = (
        np.minimum(((np.arange(full) + 0.5) * part / full).astype(int), part - 1)
        for full, part in zip(truth.shape, size, strict=True)
    )
    segments = cells[np.ix_(rows, columns)]
    counts = label_counts(segments, truth.astype(np.int64), (int(cells.max()) + 1, 2))
    edges, boundary = touching(cells)
    means = region_means(cells, rgb2luv(reduced))
    color = np.linalg.norm(means[edges[:, 0]] - means[edges[:, 1]], axis=1)
    return Horse(name, segments, counts, reduced, cells, edges, color, boundary)


def features(one: Horse, codes: tuple[np.ndarray, np.ndarray]) -> dict[str, np.ndarray]:
    """Return all groups of features, (N, d) each; ``codes`` is the book of visual words."""
    lab = rgb2lab(one.reduced)
    light = lab[..., 0]
    directions, strength = edge_directions(light, 0.7)
    return {
        "words": _words(filter_bank(lab), one, codes),
        "colour": _colors(lab, one),
        "place": _place(one.cells),
        **_patches("gist", _gabor(light), one.cells),
        **_patches("lbp", binary_patterns(light), one.cells),
        **_patches("hog", directions * strength[..., None], one.cells),
    }


def around(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Sum over all superpixels at most two steps away, including the superpixel itself."""
    n = len(values)
    both = np.vstack([edges, edges[:, ::-1]])
    step = coo_array((np.ones(len(both)), both.T), shape=(n, n)).tocsr() + eye_array(n)
    within_two = (step @ step).tocsr()
    within_two.data[:] = 1.0
    return within_two @ values


def _words(responses: np.ndarray, one: Horse, codes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return shares of the visual words around each superpixel."""
    scale, centers = codes
    nearest_code = nearest(responses.reshape(-1, len(scale)) / scale, centers)
    n = len(one.counts)
    bins = one.cells.ravel() * len(centers) + nearest_code
    counts = np.bincount(bins, minlength=n * len(centers)).reshape(n, -1).astype(float)
    return _shares(around(counts, one.edges))


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def _colors(lab: np.ndarray, one: Horse) -> np.ndarray:
    """Return means of L, a and b, and their histograms in a superpixel and around it."""
    low, high = np.array([0.0, -60.0, -60.0]), np.array([100.0, 60.0, 60.0])
    bins = np.clip((lab - low) / (high - low) * BINS, 0, BINS - 1).astype(np.int64)
    shares = np.hstack([region_means(one.cells, one_hot(bins[..., c], BINS)) for c in range(3)])
    counts = shares * np.bincount(one.cells.ravel())[:, None]
    return np.hstack([region_means(one.cells, lab), shares, _shares(around(counts, one.edges))])


def _centers(segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.indices(segments.shape)
    middle = region_means(segments, np.stack([y, x], axis=-1))
    return middle[:, 0].astype(int), middle[:, 1].astype(int)


def _place(segments: np.ndarray) -> np.ndarray:
    """Return a superpixel's position, size and extent, and whether it touches the frame."""
    y, x = np.indices(segments.shape).astype(float)
    sizes = np.bincount(segments.ravel())
    middle = region_means(segments, np.stack([y, x], axis=-1))
    spread = region_means(segments, np.stack([y * y, x * x, x * y], axis=-1))
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
    """Return means of the channels in 4 x 4 cells around each centre, one group per cell size."""
    boxes, (y, x) = Boxes(channels), _centers(segments)
    groups = {}
    for cell in CELLS:
        offsets = [int(cell * (k - 1.5)) for k in range(4)]
        parts = [boxes.means(y + a, x + b, cell // 2) for a in offsets for b in offsets]
        groups[f"{name} {cell}"] = np.hstack(parts)
    return groups


def _gabor(light: np.ndarray) -> np.ndarray:
    """Return magnitudes of Gabor responses at four scales and eight directions, (h, w, 32)."""
    answers = []
    wide = np.pad(light / 100 - light.mean() / 100, 32, mode="reflect")
    for scale in range(SCALES):
        for turn in range(TURNS):
            kernel = gabor_kernel(0.3 / 1.7**scale, np.pi * turn / TURNS)
            answers.append(np.abs(fftconvolve(wide, kernel, "same"))[32:-32, 32:-32])
    return np.stack(answers, axis=-1)
