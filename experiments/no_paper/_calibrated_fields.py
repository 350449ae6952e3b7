"""Photographs as labelled fields, and how good their marginals are over a grid of temperatures."""

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

STRENGTH = 2.0  # of the contrast weights between pixels of MSRC-21
SMALL = 64  # the longer side of a photograph with scribbles, at most
FLOOR = 1e-3  # no label of a photograph with scribbles is less probable by colour alone


@dataclass(frozen=True, eq=False)
class Labelled:
    """A field and the right labels of its pixels, -1 for those that do not count."""

    name: str
    group: str
    field: sw.fields.Field
    truth: np.ndarray


def category(name: str, step: int) -> Labelled:
    """Every ``step``-th pixel of an MSRC-21 image: trained unaries, contrast weights on a grid."""
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
    """A photograph with scribbles, as ``field_from_image`` sees it; scribbled pixels do not count.

    Unaries of colours are limited to those of a probability of a thousandth: a Gaussian's tails
    would make every other label impossible.
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
    """Marks of every ``step``-th pixel: any of its block, so that thin strokes stay."""
    h, w = -(-marks.shape[0] // step), -(-marks.shape[1] // step)
    padded = np.full((h * step, w * step), -1, marks.dtype)
    padded[: marks.shape[0], : marks.shape[1]] = marks
    return padded.reshape(h, step, w, step).max(axis=(1, 3))


def names(which: str) -> list[str]:
    """The images of a set."""
    if which == "GrabCut":
        return grabcut_names()
    return msrc.names("validation")


SETS: dict[str, Callable[[str, int], Labelled]] = {
    "MSRC-21": category,
    "GrabCut": cutout,
}


@lru_cache(maxsize=64)
def labelled(which: str, name: str, step: int) -> Labelled:
    """An image of a set, read once in a while: points are tried on it by the hundred."""
    return SETS[which](name, step)


def unaries_alone(field: sw.fields.Field, temperature: float) -> np.ndarray:
    """exp(-u / t), normalised."""
    u = -field.unary / temperature
    p = np.exp(u - u.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def posterior(
    method: str, field: sw.fields.Field, temperature: float, scale: float
) -> dict[str, np.ndarray]:
    """Probabilities by the rows that a method gives: of trees also those of the lower bound."""
    scaled = field.with_unary(field.unary * scale)
    if method == "unaries":
        return {method: unaries_alone(scaled, temperature)}
    post = sw.marginals(scaled, method, temperature=temperature, n_jobs=1)
    found = {method: post.probabilities}
    if method == "trees":
        found["trees, from below"] = post.lower_probabilities
    return found


def told(
    which: str, name: str, step: int, point: Point
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The truth and the probabilities of the pixels that count, by rows; kept between runs."""
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
    """By row, the sums of NLL and Brier scores, and seconds; kept between runs."""
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
    """What the library's search asks of points, image by image in several processes, and kept."""

    has_potentials = True

    def __init__(self, which: str, step: int, names: list[str], jobs: int) -> None:
        self._of, self._names, self._jobs = (which, step), names, jobs
        self._found: dict[Point, list[dict[str, np.ndarray]]] = {}

    def tried(self, point: Point) -> list[dict[str, np.ndarray]]:
        """``measured`` of all images."""
        if point not in self._found:
            which, step = self._of

            def one(name: str) -> dict[str, np.ndarray]:
                return measured(which, name, step, point)

            said = f"{which}, {point.method}, t {point.temperature:.3g}, a {point.scale:.3g}"
            self._found[point] = [got for _, got in parallel(one, self._names, said, self._jobs)]
        return self._found[point]

    def scored(self, column: int) -> _Scored:
        """The sums of NLL (0) or Brier scores (1)."""
        return _Scored(self, column)


class _Scored:
    def __init__(self, trials: KeptTrials, column: int) -> None:
        self.cases, self._column = trials, column

    def sums(self, point: Point) -> np.ndarray:
        return np.array([found[point.method][self._column] for found in self.cases.tried(point)])
