"""Photographs with probabilities of an object that a classifier of pixels gives, out of fold.

The probabilities come from gradient boosting on colours, smoothed colours and the position of each
pixel, trained on the other folds of images; for GrabCut, from the colours under the scribbles of
the photograph itself. The longer side is at most ``SIDE`` pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude
from scipy.special import expit
from skimage.color import rgb2lab
from skimage.transform import resize
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import KFold

import setwise as sw
from experiments.diverse._scribbles import grabcut, grabcut_names
from experiments.shared import msrc, weizmann

SIDE = 160
FOLDS = 5
PIXELS = 600  # pixels per training image
THINGS = {"cow", "sheep", "aeroplane", "face", "car", "bicycle", "flower", "sign", "bird"}
THINGS |= {"book", "chair", "cat", "dog", "body", "boat"}
PLANTS = {"grass", "tree", "flower"}


@dataclass(frozen=True, eq=False)
class Photograph:
    """An image (h, w, 3) of bytes, a map of probabilities (h, w), and the true mask (h, w)."""

    image: np.ndarray
    probabilities: np.ndarray
    truth: np.ndarray


def horses(quick: bool) -> list[Photograph]:
    """Return the Weizmann horses."""
    chosen = weizmann.names()[: 20 if quick else None]
    return _classified([(weizmann.photograph(k), weizmann.mask(k)) for k in chosen])


def msrc_things(quick: bool) -> list[Photograph]:
    """Return the images of MSRC-21 with an animal, a vehicle or another thing."""
    return _classified(list(_msrc(THINGS, quick)))


def msrc_plants(quick: bool) -> list[Photograph]:
    """Return the images of MSRC-21 with grass, trees or flowers."""
    return _classified(list(_msrc(PLANTS, quick)))


def grabcut_objects(quick: bool) -> list[Photograph]:
    """Return GrabCut's 20 photographs, each with its first set of scribbles."""
    found = []
    for name in grabcut_names()[::2][: 8 if quick else None]:
        given = grabcut(name)
        shape = _shape(given.image)
        step = np.array(given.truth.shape) / shape
        rows, columns = (
            np.minimum(((np.arange(n) + 0.5) * s).astype(int), full - 1)
            for n, s, full in zip(shape, step, given.truth.shape, strict=True)
        )
        marks = np.full(shape, -1)
        for y, x in np.argwhere(given.marks >= 0):
            marks[int(y / step[0]), int(x / step[1])] = given.marks[y, x]
        image = _small(given.image, shape)
        costs = sw.images.field_from_image(image, marks, smoothness=0.0).unary
        free = np.where(np.isfinite(costs), costs, np.sign(costs) * 30.0)
        p = expit(free[:, 0] - free[:, 1]).reshape(shape)
        found.append(Photograph(image, p, given.truth[np.ix_(rows, columns)] == 1))
    return found


SETS: dict[str, Callable[[bool], list[Photograph]]] = {
    "horses": horses,
    "GrabCut": grabcut_objects,
    "MSRC-21 things": msrc_things,
    "MSRC-21 plants": msrc_plants,
}


def _msrc(wanted: set[str], quick: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    names = [*msrc.names("train"), *msrc.names("validation")][: 24 if quick else None]
    numbers = [k for k, name in enumerate(msrc.classes()) if name in wanted]
    for name in names:
        mask = np.isin(msrc.truth(name), numbers)
        if mask.mean() >= 0.02:
            yield msrc.image(name), mask


def _shape(image: np.ndarray) -> tuple[int, int]:
    h, w = image.shape[:2]
    scale = min(1.0, SIDE / max(h, w))
    return max(round(h * scale), 1), max(round(w * scale), 1)


def _small(image: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return np.round(resize(image, shape, anti_aliasing=True) * 255).astype(np.uint8)


def _features(image: np.ndarray) -> np.ndarray:
    """Return features (h, w, F) of the pixels of an image."""
    lab = rgb2lab(image)
    smooth = [gaussian_filter(lab[..., c], s) for s in (1, 3, 8) for c in range(3)]
    light = lab[..., 0]
    edges = [gaussian_gradient_magnitude(light, s) for s in (1, 3)]
    wide = [np.sqrt(np.maximum(gaussian_filter(light**2, 4) - gaussian_filter(light, 4) ** 2, 0))]
    y, x = np.mgrid[-1 : 1 : image.shape[0] * 1j, -1 : 1 : image.shape[1] * 1j]
    whole = [np.full(y.shape, lab[..., c].mean()) for c in range(3)]
    return np.stack([*lab.transpose(2, 0, 1), *smooth, *edges, *wide, y, np.abs(x), *whole], -1)


def _classified(given: list[tuple[np.ndarray, np.ndarray]]) -> list[Photograph]:
    """Return photographs with probabilities of a classifier that was trained on other ones."""
    images, truths, features = [], [], []
    for image, mask in given:
        shape = _shape(image)
        images.append(_small(image, shape))
        truths.append(resize(mask.astype(np.float64), shape, anti_aliasing=True) > 0.5)
        features.append(_features(images[-1]))
    rng = np.random.default_rng(0)
    found: dict[int, Photograph] = {}
    for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(images):
        rows, labels = [], []
        for i in train:
            flat = features[i].reshape(-1, features[i].shape[-1])
            chosen = rng.integers(len(flat), size=PIXELS)
            rows.append(flat[chosen])
            labels.append(truths[i].ravel()[chosen])
        model = HistGradientBoostingClassifier(max_iter=80, random_state=0)
        model.fit(np.concatenate(rows), np.concatenate(labels))
        for i in test:
            p = model.predict_proba(features[i].reshape(-1, features[i].shape[-1]))[:, 1]
            found[i] = Photograph(images[i], p.reshape(truths[i].shape), truths[i])
    return [found[i] for i in range(len(images))]
