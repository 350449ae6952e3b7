"""Photographs as labelled fields, and how good their marginals are over a grid of temperatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

import setwise as sw
from experiments.diverse._scribbles import grabcut, grabcut_names
from experiments.shared import msrc
from experiments.shared.cache import cache_folder, keep

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
    return _category(name, step, msrc.enlarge(msrc.recall("unaries", name), shape, 2))


def textonboost(name: str, step: int) -> Labelled:
    """The same of a test image, with TextonBoost's own probabilities."""
    return _category(name, step, msrc.textonboost(name))


def _category(name: str, step: int, probabilities: np.ndarray) -> Labelled:
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
    return msrc.names("validation" if which == "MSRC-21" else "textonboost")


SETS: dict[str, Callable[[str, int], Labelled]] = {
    "MSRC-21": category,
    "TextonBoost": textonboost,
    "GrabCut": cutout,
}


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
    which: str, name: str, step: int, method: str, point: tuple[float, float]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The truth and the probabilities of the pixels that count, by rows; kept between runs."""
    t, a = point
    path = _kept(which, step) / f"{name}_{method}_{t:g}_{a:g}.npz"
    if not path.exists():
        case = SETS[which](name, step)
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


def measured(
    which: str, name: str, step: int, methods: tuple[str, ...], points: list[tuple[float, float]]
) -> dict[str, np.ndarray]:
    """By row (P, 3): sums of NLL and Brier, and seconds of each point; kept between runs.

    With ``labels``, how many pixels count.
    """
    path = _kept(which, step) / f"{name}.npz"
    found: dict[str, np.ndarray] = {}
    if path.exists():
        with np.load(path) as arrays:
            found = dict(arrays)
    case = None
    for method in methods:
        known = found.get(f"points of {method}", np.zeros((0, 2)))
        missing = [p for p in points if not (np.abs(known - p).max(axis=1) < 1e-9).any()]
        if not missing:
            continue
        case = case or SETS[which](name, step)
        found["labels"] = np.array(np.count_nonzero(case.truth >= 0))
        for t, a in missing:
            start = process_time()
            rows = posterior(method, case.field, t, a)
            seconds = process_time() - start
            for row, p in rows.items():
                found_true = sw.inference.reliability(case.truth, p)
                sums = [found_true.n * found_true.nll, found_true.n * found_true.brier]
                numbers = [[*sums, seconds]]
                found[row] = np.concatenate([found.get(row, np.zeros((0, 3))), numbers])
        found[f"points of {method}"] = np.concatenate([known, missing])
        keep(path, **found)
    return found
