"""Photographs of one object with scribbles: GrabCut's, and horses with generated strokes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from PIL import Image
from scipy.ndimage import binary_erosion, distance_transform_edt, label
from skimage.graph import route_through_array
from skimage.io import imread

from experiments.shared.data import require
from experiments.shared.weizmann import mask, photograph

GRABCUT = ("grabcut_scribbles", "with_image")
MARGIN = 0.02  # distance of strokes from the outline, relative to the image's diagonal
LONGEST = 0.25  # largest length of a stroke, relative to the image's diagonal
STROKES = (2, 1)  # the numbers of strokes on the background and on the object


@dataclass(frozen=True, eq=False)
class Marked:
    """A photograph whose object is to be segmented.

    Attributes
    ----------
    name : str
    photograph : str
        The same for all scribbles on one photograph, which belong in one half of a split.
    image : array of uint8, shape (h, w, 3)
    truth : array of int8, shape (h, w)
        1 on the object, 0 beside it, -1 where the annotator was unsure.
    marks : array of int8, shape (h, w)
        Scribbles: 1 on the object, 0 beside it, -1 where there are none.
    """

    name: str
    photograph: str
    image: np.ndarray
    truth: np.ndarray
    marks: np.ndarray


def grabcut_names() -> list[str]:
    """Return 40 names: 20 photographs with two sets of scribbles, such as 21077_scribble1."""
    found = sorted(path.stem for path in require(*GRABCUT).glob("*.jpg"))
    return [f"{name}_scribble{k}" for name in found for k in (1, 2)]


def grabcut(name: str) -> Marked:
    """Return a photograph of GrabCut's with one set of scribbles."""
    photograph = name.split("_")[0]
    outline = imread(require(*GRABCUT, f"{photograph}_gt.png"))
    outline = outline[..., 0] if outline.ndim == 3 else outline
    truth = np.select([outline == 0, outline == 255], [0, 1], -1).astype(np.int8)
    # The colours of a scribble encode numbers: 0 for none, 1 for the object, 2 for the rest.
    numbers = np.array(Image.open(require(*GRABCUT, f"{name}.png")))
    marks = np.array([-1, 1, 0], np.int8)[numbers]
    image = imread(require(*GRABCUT, f"{photograph}.jpg"))
    return Marked(name, photograph, image, truth, marks)


def horse(name: str, seed: int = 0) -> Marked:
    """Return a horse with strokes drawn at random inside and outside the true outline."""
    truth = mask(name).astype(np.int8)
    return Marked(name, name, photograph(name), truth, strokes(truth, _generator(name, seed)))


def _generator(name: str, seed: int) -> np.random.Generator:
    """Return a generator per image, so that strokes do not depend on the other images."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def strokes(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw scribbles (h, w) for a label map: two strokes on the background, one on the object.

    A stroke is three pixels wide. It follows the shortest path between two random pixels that keeps
    a distance from the outline. Where the object is thin, that distance is half of what its
    thickest part allows.
    """
    marks = np.full(truth.shape, -1, np.int8)
    diagonal = float(np.hypot(*truth.shape))
    for value, number in enumerate(STROKES):
        depth = distance_transform_edt(np.pad(truth == value, 1))[1:-1, 1:-1]
        inner = depth > min(MARGIN * diagonal, depth.max() / 2)
        for _ in range(number):
            y, x = _path(inner, LONGEST * diagonal, rng).T
            line = np.zeros(truth.shape, bool)
            line[y, x] = True
            wide = ~binary_erosion(~line, np.ones((3, 3)), border_value=1)
            marks[wide & (truth == value)] = value
    return marks


def _path(inner: np.ndarray, longest: float, rng: np.random.Generator) -> np.ndarray:
    """Return at most ``longest`` pixels (n, 2) of a path through ``inner``, its ends random."""
    pieces, _ = label(inner)
    start = rng.choice(np.argwhere(inner))
    near = np.argwhere(pieces == pieces[tuple(start)])
    near = near[np.hypot(*(near - start).T) <= longest]
    end = rng.choice(near)
    path, _ = route_through_array(np.where(inner, 1.0, -1.0), start, end)
    return np.array(path)[: max(int(longest), 1)]
