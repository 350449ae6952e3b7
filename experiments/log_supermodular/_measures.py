"""Inference by every model in many images, and the measures of Table 1 over all images."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.log_supermodular._models import MODELS, Setting, cross_entropy
from experiments.log_supermodular._posterior import WIDEST, posterior
from experiments.log_supermodular._roc import mean_roc
from experiments.shared.msrc import BANDWIDTHS, scene
from experiments.shared.report import estimate, parallel


def all_models(task: tuple[str, dict[str, Setting]], unaries: str) -> None:
    """Run every model on one image; the cache holds the results."""
    image, settings = task
    for name in MODELS:
        posterior(image, unaries, name, settings[name])


def measure(name: str, settings: dict[str, dict[str, Setting]], unaries: str) -> dict[str, object]:
    """Return areas, divergences, accuracies and seconds of one model over all images."""
    posts = [posterior(image, unaries, name, of[name]) for image, of in settings.items()]
    plain = [posterior(image, unaries, "UNARY", ()) for image in settings]
    scenes = [scene(image, unaries) for image in settings]
    known = [int((s.truth >= 0).sum()) for s in scenes]
    accuracies = [100 * post.accuracy for post in posts]
    gain = [100 * (a.accuracy - b.accuracy) for a, b in zip(posts, plain, strict=True)]
    result: dict[str, object] = {
        "accuracy": estimate(accuracies),
        "gain": estimate(gain),
        "pooled": float(np.average(accuracies, weights=known)),
        "accuracies": accuracies,
        "seconds": estimate([post.seconds for post in posts]),
        "iterations": float(np.mean([post.n_iter for post in posts])),
        "converged": sum(post.converged for post in posts),
    }
    if MODELS[name].robust:
        return result
    log_p = np.concatenate([post.log_p for post in posts])
    truth = np.concatenate([s.truth[s.trimaps[WIDEST]] for s in scenes])
    loss = cross_entropy(log_p, truth)
    rocs, losses = [], []
    for bandwidth in BANDWIDTHS:
        inside = np.concatenate([s.trimaps[bandwidth][s.trimaps[WIDEST]] for s in scenes])
        rocs.append(mean_roc(log_p[inside], truth[inside]))
        losses.append(float(loss[inside].mean()) if inside.any() else float("nan"))
    result["area"] = [roc.area for roc in rocs]
    result["curves"] = [roc.curve.round(4) for roc in rocs]
    result["labels"] = [roc.labels for roc in rocs]
    result["divergence"] = losses
    return result


def evaluate(
    settings: dict[str, dict[str, Setting]], unaries: str, jobs: int
) -> dict[str, dict[str, object]]:
    """Run inference in all images, and return the measures of every model."""
    for _ in parallel(partial(all_models, unaries=unaries), list(settings.items()), "images", jobs):
        pass
    task = partial(measure, settings=settings, unaries=unaries)
    return dict(parallel(task, list(MODELS), "measures", jobs))
