"""Photographs as labelled fields, and the quality of marginals over a grid of temperatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import process_time

import numpy as np

import setwise as sw
from experiments.diverse._scribbles import grabcut, grabcut_names
from experiments.shared import msrc
from experiments.shared.cache import cache_folder, keep
from experiments.shared.report import parallel
from setwise.inference._calibration._trials import Point

STRENGTH = 2.0  # factor of the contrast weights between pixels of MSRC-21
SMALL = 64  # largest side of a photograph with scribbles
FLOOR = 1e-3  # smallest probability of a label by colour, in a photograph with scribbles


@dataclass(frozen=True, eq=False)
class Labelled:
    """A field and the right labels of its pixels, -1 for those that do not count."""

    name: str
    group: str
    field: sw.fields.Field
    truth: np.ndarray


def category(name: str, step: int) -> Labelled:
    """Return a field of every ``step``-th pixel of an MSRC-21 image.

    It has trained unaries, and contrast weights on a grid.
    """
    shape = msrc.truth(name).shape
    probabilities = msrc.enlarge(msrc.recall("unaries", name), shape, 2)
    picture = msrc.image(name)[::step, ::step]
    edges = sw.fields.grid_edges(picture.shape[:2])
    weights = STRENGTH * sw.fields.contrast_weights(picture, edges)
    unary = msrc.energies(probabilities[::step, ::step].astype(np.float64))
    truth = msrc.truth(name)[::step, ::step].ravel().astype(np.int64)
    field = sw.fields.Field(unary) + sw.fields.Potts(edges, weights)
    return Labelled(name, name, field, truth)


def cutout(name: str, step: int) -> Labelled:
    """Return a photograph with scribbles as a field; scribbled pixels do not count.

    Probabilities by colour are at least FLOOR: a Gaussian's tails would make every other label
    impossible.
    """
    marked = grabcut(name)
    step = max(step, -(-max(marked.truth.shape) // SMALL))
    image, marks = marked.image[::step, ::step], _thinned(marked.marks, step)
    truth = marked.truth[::step, ::step].astype(np.int64)
    field = sw.images.field_from_image(image, marks)
    scribbled = marks.ravel() >= 0
    unary = field.unary - field.unary.min(axis=1, keepdims=True)
    unary = np.where(scribbled[:, None], unary, np.minimum(unary, -np.log(FLOOR)))
    truth = np.where(marks >= 0, -1, truth).ravel()
    return Labelled(name, marked.photograph, field.with_unary(unary), truth)


def _thinned(marks: np.ndarray, step: int) -> np.ndarray:
    """Reduce marks by ``step``: a block keeps any mark in it, so that thin strokes remain."""
    h, w = -(-marks.shape[0] // step), -(-marks.shape[1] // step)
    padded = np.full((h * step, w * step), -1, marks.dtype)
    padded[: marks.shape[0], : marks.shape[1]] = marks
    return padded.reshape(h, step, w, step).max(axis=(1, 3))


def names(which: str) -> list[str]:
    """Return the names of a set's images."""
    if which == "GrabCut":
        return grabcut_names()
    return msrc.names("validation")


SETS: dict[str, Callable[[str, int], Labelled]] = {
    "MSRC-21": category,
    "GrabCut": cutout,
}


@lru_cache(maxsize=64)
def labelled(which: str, name: str, step: int) -> Labelled:
    """Return an image of a set, cached in memory because a search evaluates hundreds of points."""
    return SETS[which](name, step)


def unaries_alone(field: sw.fields.Field, temperature: float) -> np.ndarray:
    """Return exp(-u / t), normalised."""
    u = -field.unary / temperature
    p = np.exp(u - u.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def posterior(
    method: str, field: sw.fields.Field, temperature: float, scale: float
) -> dict[str, np.ndarray]:
    """Return probabilities for each row of a method; trees also have those of the lower bound."""
    scaled = field.with_unary(field.unary * scale)
    if method == "unaries":
        return {method: unaries_alone(scaled, temperature)}
    post = sw.marginals(scaled, method, temperature=temperature, n_jobs=1)
    found = {method: post.probabilities}
    if method == "trees":
        found["trees, from below"] = post.lower_probabilities
    return found


def probabilities_of(
    which: str, name: str, step: int, point: Point
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the truth and each row's probabilities at the pixels that count, cached on disk."""
    method, t, a = point
    path = _kept(which, step) / f"{name}_{method}_{t:.6g}_{a:.6g}.npz"
    if not path.exists():
        case = labelled(which, name, step)
        known = case.truth >= 0
        found = posterior(method, case.field, t, a)
        rows = {row: p[known].astype(np.float32) for row, p in found.items()}
        keep(path, truth=case.truth[known], **rows)
    with np.load(path) as arrays:
        found = dict(arrays)
    return found.pop("truth"), found


def _kept(which: str, step: int) -> Path:
    folder = cache_folder() / "calibration" / f"{which}_{step}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def measured(which: str, name: str, step: int, point: Point) -> dict[str, np.ndarray]:
    """Return for each row the sums of NLL and Brier scores, and seconds, cached on disk."""
    method, t, a = point
    path = _kept(which, step) / f"{name}_{method}_sums.npz"
    known: dict[str, np.ndarray] = {}
    if path.exists():
        with np.load(path) as arrays:
            known = dict(arrays)
    key = f"{t:.9g}_{a:.9g}"
    if not any(entry.startswith(f"{key}_") for entry in known):
        case = labelled(which, name, step)
        start = process_time()
        rows = posterior(method, case.field, t, a)
        seconds = process_time() - start
        for row, p in rows.items():
            true = sw.inference.reliability(case.truth, p)
            known[f"{key}_{row}"] = np.array([true.n * true.nll, true.n * true.brier, seconds])
        keep(path, **known)
    return {
        entry.removeprefix(f"{key}_"): numbers
        for entry, numbers in known.items()
        if entry.startswith(f"{key}_")
    }


class KeptTrials:
    """Trials of the library's calibration search, run in parallel over images and cached."""

    has_potentials = True

    def __init__(self, which: str, step: int, names: list[str], jobs: int) -> None:
        self._of, self._names, self._jobs = (which, step), names, jobs
        self._found: dict[Point, list[dict[str, np.ndarray]]] = {}

    def tried(self, point: Point) -> list[dict[str, np.ndarray]]:
        """Return ``measured`` of all images."""
        if point not in self._found:
            which, step = self._of

            def one(name: str) -> dict[str, np.ndarray]:
                return measured(which, name, step, point)

            title = f"{which}, {point.method}, t {point.temperature:.3g}, a {point.scale:.3g}"
            self._found[point] = [got for _, got in parallel(one, self._names, title, self._jobs)]
        return self._found[point]

    def scored(self, column: int) -> _Scored:
        """Return the sums of NLL (0) or Brier scores (1)."""
        return _Scored(self, column)


class _Scored:
    def __init__(self, trials: KeptTrials, column: int) -> None:
        self.cases, self._column = trials, column

    def sums(self, point: Point) -> np.ndarray:
        return np.array([found[point.method][self._column] for found in self.cases.tried(point)])
