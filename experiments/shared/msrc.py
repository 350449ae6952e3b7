"""MSRC-21: images, label maps, unaries and superpixels, and all of them together as a scene.

Images and label maps are data sets (see ``data``). Unaries and superpixels are computed once, by
``msrc21/unaries.py`` and ``msrc21/superpixels.py``, and kept in the cache (see ``cache``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.ndimage import maximum_filter
from skimage.io import imread

from experiments.shared.cache import cache_folder, keep
from experiments.shared.data import require

SET = "msrc21"
LABELS = 21
BANDWIDTHS = (0, 5, 10, 20)  # bandwidths of the trimaps in the paper's Table 1
FEW = 6  # the number of validation images in quick runs
FLOOR = 1e-3  # the smallest probability; TextonBoost's are multiples of it


def names(part: str) -> list[str]:
    """Return the image names of a part: train (276), validation (59), or textonboost (4).

    The four images of textonboost belong to the test part.
    """
    if part == "textonboost":
        return sorted(path.stem for path in require(SET, "unary").glob("*.c_unary"))
    return require(SET, f"split_{part}.txt").read_text().split()


def classes() -> tuple[str, ...]:
    """Return the names of the labels 0 to 20."""
    lines = require(SET, "classes.txt").read_text().splitlines()
    table = {int(number): name for number, name in (line.split() for line in lines if line)}
    return tuple(table[k + 1] for k in range(LABELS))


def palette() -> np.ndarray:
    """Return a colour in [0, 1] for each label 0 to 20, and grey for void, shape (22, 3)."""
    import matplotlib.pyplot as plt

    colors = plt.get_cmap("tab20")(np.arange(20))[:, :3]
    return np.vstack([colors, [[0.1, 0.1, 0.1]], [[0.93, 0.93, 0.93]]])


def legend(labels: Iterable[int]) -> list[tuple[np.ndarray, str]]:
    """Return colour and name of each label that occurs; void comes last."""
    colors, titles = palette(), classes()
    known = [(colors[label], titles[label]) for label in sorted(labels) if label >= 0]
    return [*known, (colors[-1], "void")]


def image(name: str) -> np.ndarray:
    """Return red, green and blue of an image, shape (h, w, 3), uint8."""
    return imread(require(SET, "images", f"{name}.jpg"))


def truth(name: str) -> np.ndarray:
    """Return true labels 0 to 20, shape (h, w), int8; -1 where the annotator gave none (void)."""
    return imread(require(SET, "labels", f"{name}.png")).astype(np.int8) - 1


def textonboost(name: str) -> np.ndarray:
    """Return TextonBoost's published probabilities (h, w, 21) of one of the four test images."""
    return read_unary(require(SET, "unary", f"{name}.c_unary"))


def read_unary(path: Path) -> np.ndarray:
    """Return the probabilities (h, w, K) that a .c_unary file holds.

    The file is big-endian. It has width, height, K and the number M of distinct vectors (int32), a
    unit (float32), the vectors (M, K) (int32, in units), and for each pixel the index of its vector
    (uint32). Each vector is divided by its sum, which rounding leaves slightly off 1.
    """
    content = path.read_bytes()
    width, height, labels, count = np.frombuffer(content, ">i4", 4).tolist()
    unit = float(np.frombuffer(content, ">f4", 1, offset=16)[0])
    vectors = np.frombuffer(content, ">i4", count * labels, offset=20).reshape(count, labels)
    of_pixel = np.frombuffer(content, ">u4", width * height, offset=20 + 4 * vectors.size)
    probabilities = vectors * unit
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities[of_pixel].reshape(height, width, labels)


def cached(kind: str, name: str) -> Path:
    """Return the cache's path of an array of an image, such as ("unaries", "1_9_s")."""
    return cache_folder() / SET / kind / f"{name}.npz"


def store(kind: str, name: str, array: np.ndarray) -> None:
    """Write an array to the cache."""
    keep(cached(kind, name), array=array)


def recall(kind: str, name: str) -> np.ndarray:
    """Read an array from the cache. End the script with one line if it is not there."""
    path = cached(kind, name)
    if not path.exists():
        sys.exit(f"missing {kind} of {name}: run experiments/msrc21/{kind}.py first")
    with np.load(path) as arrays:
        return arrays["array"]


def enlarge(cells: np.ndarray, shape: tuple[int, int], cell: int) -> np.ndarray:
    """Interpolate cells of ``cell`` x ``cell`` pixels bilinearly to pixels, shape (*shape, K)."""
    for axis, size in enumerate(shape):
        at = (np.arange(size) + 0.5) / cell - 0.5
        at = np.clip(at, 0, cells.shape[axis] - 1)
        low = np.minimum(at.astype(np.int64), max(cells.shape[axis] - 2, 0))
        high = np.minimum(low + 1, cells.shape[axis] - 1)
        share = (at - low).reshape([-1 if k == axis else 1 for k in range(cells.ndim)])
        cells = np.take(cells, low, axis) * (1 - share) + np.take(cells, high, axis) * share
    return cells


def boundary(labels: np.ndarray) -> np.ndarray:
    """Return a mask of pixels with a neighbour of another label; void (-1) never counts.

    A pixel has up to four neighbours: above, below, left and right.
    """
    edge = np.zeros(labels.shape, bool)
    for one, other in (
        ((slice(1, None), slice(None)), (slice(None, -1), slice(None))),
        ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
    ):
        a, b = labels[one], labels[other]
        differ = (a != b) & (a >= 0) & (b >= 0)
        edge[one] |= differ
        edge[other] |= differ
    return edge


def trimap(labels: np.ndarray, bandwidth: int) -> np.ndarray:
    """Return the labelled pixels in squares of side 2 bandwidth + 1 around all boundary pixels.

    This is the trimap of the paper's Section 7.1; bandwidth 0 is the boundary itself. The trimap is
    empty if there is no boundary.
    """
    near = maximum_filter(boundary(labels), size=2 * bandwidth + 1, mode="constant", cval=False)
    return near & (labels >= 0)


def energies(probabilities: np.ndarray, floor: float = FLOOR) -> np.ndarray:
    """Return -log p, shape (N, L), of probabilities (h, w, L) that are clipped and normalised.

    Probabilities below ``floor`` are raised to it, and each pixel's are then divided by their sum.
    """
    p = np.maximum(probabilities.reshape(-1, probabilities.shape[-1]).astype(np.float64), floor)
    return -np.log(p / p.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Scene:
    """The inputs of inference and of its measures for one image of N = h w pixels, row by row.

    Attributes
    ----------
    name : str
    image : array of uint8, shape (h, w, 3)
    truth : array of int8, shape (N,)
        Labels 0 to 20; -1 for void, which no measure counts.
    unary : array of float64, shape (N, 21)
        -log p of the labels.
    regions : tuple of three arrays of int64, shape (N,)
        Superpixels, ordered by increasing range bandwidth. The paper's models with two layers use
        the first and the last.
    trimaps : mapping from a bandwidth, 0, 5, 10 or 20, to an array of bool, shape (N,)
        Labelled pixels near a boundary between labels.
    """

    name: str
    image: np.ndarray
    truth: np.ndarray
    unary: np.ndarray
    regions: tuple[np.ndarray, ...]
    trimaps: Mapping[int, np.ndarray]

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the image."""
        h, w = self.image.shape[:2]
        return h, w


def scene(name: str, unaries: str = "trained", floor: float = FLOOR) -> Scene:
    """Load the scene of a validation image or of one of the four test images.

    ``unaries`` is "trained", from the cache, or "textonboost", for the four test images only.
    """
    if unaries not in ("trained", "textonboost"):
        raise ValueError(f"unaries is {unaries!r}, but must be 'trained' or 'textonboost'")
    pixels, labels = image(name), truth(name)
    if unaries == "textonboost":
        probabilities = textonboost(name)
    else:
        probabilities = enlarge(recall("unaries", name).astype(np.float32), labels.shape, 2)
    layers = recall("superpixels", name)
    return Scene(
        name,
        pixels,
        labels.ravel(),
        energies(probabilities, floor),
        tuple(layer.ravel().astype(np.int64) for layer in layers),
        {h: trimap(labels, h).ravel() for h in BANDWIDTHS},
    )
