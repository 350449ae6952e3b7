"""Inference in one image, kept in the cache, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import setwise as sw
from experiments.log_supermodular._models import (
    MODELS,
    Setting,
    accuracy,
    coarse,
    cross_entropy,
    field_of,
    logarithms,
)
from experiments.shared.cache import keep
from experiments.shared.msrc import Scene, cached, scene

WIDEST = 20  # marginals are kept for the pixels of this trimap, which contains all others
TOLERANCE, SEARCH_TOLERANCE = 1e-3, 1e-2
# The largest number of passes.
LIMITS = {"projection": 150, "belief_propagation": 50, "mean_field": 200}


@dataclass(frozen=True, eq=False)
class Posterior:
    """The part of a model's answer in one image that the measures need.

    Attributes
    ----------
    log_p : array of float32, shape (n, 21)
        log of the marginals at the n pixels of the widest trimap; n = 0 for a MAP labelling.
    labels : array of uint8, shape (N,)
        The most probable labels, or the MAP labelling.
    entropy : array of float16, shape (N,)
        Entropy of the marginals, in nats; 0 for a MAP labelling.
    accuracy : float
        Over all labelled pixels of the image.
    seconds : float
        Processor time on one thread, without the construction of the field.
    n_iter : int
    converged : bool
    """

    log_p: np.ndarray
    labels: np.ndarray
    entropy: np.ndarray
    accuracy: float
    seconds: float
    n_iter: int
    converged: bool


def infer(image: Scene, name: str, setting: Setting) -> Posterior:
    """Run full inference with one model."""
    model = MODELS[name]
    field = field_of(image, name, setting)
    dtype = "float32" if model.method == "projection" else "float64"
    start = time.process_time()
    if model.robust:
        found = sw.solve_map(field, model.method, tol=np.inf, n_jobs=1)
        seconds = time.process_time() - start
        log_p = np.empty((0, image.unary.shape[1]), np.float32)
        entropy = np.zeros(len(image.truth))
    else:
        found = sw.marginals(
            field,
            model.method,
            tol=TOLERANCE,
            max_iter=LIMITS[model.method],
            n_jobs=1,
            dtype=dtype,
        )
        seconds = time.process_time() - start
        log_p = logarithms(found.probabilities[image.trimaps[WIDEST]])
        entropy = found.entropy
    return Posterior(
        log_p,
        found.labels.astype(np.uint8),
        entropy.astype(np.float16),
        accuracy(found.labels, image.truth),
        seconds,
        found.n_iter,
        found.converged,
    )


def posterior(image: str, unaries: str, name: str, setting: Setting) -> Posterior:
    """Return the posterior from the cache, or compute it."""
    path = _path(image, unaries, name, setting)
    if not path.exists():
        keep(path, **vars(infer(scene(image, unaries), name, setting)))
    with np.load(path) as stored:
        return Posterior(
            stored["log_p"],
            stored["labels"],
            stored["entropy"],
            float(stored["accuracy"]),
            float(stored["seconds"]),
            int(stored["n_iter"]),
            bool(stored["converged"]),
        )


def _path(image: str, unaries: str, name: str, setting: Setting) -> Path:
    words = [name.replace(" ", "-").lower(), *(f"{x:g}" for x in setting)]
    return cached(f"posterior_{unaries}", f"{image}_{'_'.join(words)}")


def search_scores(image: str, name: str, settings: list[Setting], step: int) -> list[list[float]]:
    """Return accuracy and mean cross entropy of each setting in a coarse image.

    The search is less accurate than ``infer``. Each setting starts from the answer of the previous
    setting with the same shape. The cross entropy of a MAP labelling is NaN.
    """
    path = cached("search", image).with_suffix(".json")
    known = json.loads(path.read_text()) if path.exists() else {}
    keys = [" ".join([name, str(step), *(f"{x:g}" for x in setting)]) for setting in settings]
    missing = [k for k, key in enumerate(keys) if key not in known]
    small = coarse(scene(image), step) if missing else None
    last = None
    for k in missing:
        field = field_of(small, name, settings[k], step)
        if MODELS[name].robust:
            labels = sw.solve_map(field, MODELS[name].method, tol=np.inf, n_jobs=1).labels
            loss = float("nan")
        else:
            last = sw.marginals(
                field,
                MODELS[name].method,
                tol=SEARCH_TOLERANCE,
                n_jobs=1,
                dtype="float32",
                init=last,
            )
            labels, known_pixels = last.labels, small.truth >= 0
            log_p = logarithms(last.probabilities[known_pixels])
            loss = float(cross_entropy(log_p, small.truth[known_pixels]).mean())
        known[keys[k]] = [accuracy(labels, small.truth), loss]
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known))
    return [known[key] for key in keys]
