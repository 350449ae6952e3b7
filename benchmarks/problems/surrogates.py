"""Losses and their surrogates: single sets, batches, ragged sets, both precisions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems import Problem, attempt
from benchmarks.shared.scores import draw
from setwise import functions, losses, surrogates


def rises_then_falls(k: Any, p: int) -> Any:
    return k * (1.5 * p - k) / max(p, 1)


def squared(k: Any, p: int) -> Any:
    return (k / max(p, 1)) ** 2


def mixed(n: Any, q: Any, m: int, r: int) -> Any:
    return n * q / (m + r + 1) + np.minimum(n, 1) + 0.25 * q


def any_mistake(mistakes: np.ndarray, positive: np.ndarray) -> float:
    return float(mistakes.any()) + 0.25 * float((mistakes & positive).any())


def all_losses(p: int) -> dict[str, losses.Loss]:
    """Return losses on sets of p elements: every name, every class, sums and multiples."""
    rng = np.random.default_rng(p)
    weights = rng.uniform(0.1, 2.0, p)
    made: dict[str, losses.Loss] = {name: losses.get(name) for name in NAMES}
    made |= {
        "f_0.5": losses.FBeta(0.5),
        "f_2": losses.FBeta(2.0),
        "slow detection": losses.EarlyDetection(0.1, 0.3),
        "slow exponential": losses.Exponential(0.2),
        "concave": losses.ConcaveLoss(np.log1p),
        "cardinality": losses.CardinalityLoss(rises_then_falls),
        "supermodular": losses.CardinalityLoss(squared),
        "counts": losses.CountsLoss(mixed),
        "jaccard + hamming": 0.5 * losses.Jaccard() + 0.25 * losses.Hamming(),
        "sum": 0.5 * losses.Jaccard() + 2.0 * losses.FaceTrack(2),
        "3 jaccard": 3.0 * losses.Jaccard(),
        "jaccard + exponential": losses.Jaccard() + losses.Exponential(),
        "own": losses.SetLoss(any_mistake, submodular=True, increasing=True),
        "unknown": losses.SetLoss(any_mistake),
    }
    if p:
        made |= {
            "weighted hamming": losses.Hamming(weights),
            "weighted truncated": losses.TruncatedModular(1.3, weights),
            "weighted concave": losses.ConcaveLoss(np.sqrt, weights),
            "itemsets": losses.ItemsetLoss(rng.integers(1, 9, p)),
            "set function": losses.SetLoss(functions.Cardinality(np.sqrt(np.arange(p + 1.0)))),
            "dice + weighted hamming": losses.Dice() + 0.5 * losses.Hamming(weights),
            "detection + hamming": 2.0 * losses.EarlyDetection() + losses.Hamming(weights),
            "track + hamming": losses.FaceTrack(1) + losses.Hamming(weights),
        }
    return made


# Fixed names, so that aliases that a build adds do not count as new answers.
NAMES = (
    *("dice", "early_detection", "exponential", "f_beta", "face_track_1", "face_track_2"),
    *("face_track_3", "face_track_4", "hamming", "jaccard", "truncated_modular"),
)
MAKERS = {
    "lovasz": surrogates.LovaszHinge,
    "lovasz 1": partial(surrogates.LovaszHinge, case=1),
    "lovasz 2": partial(surrogates.LovaszHinge, case=2),
    "margin": surrogates.MarginRescaling,
    "margin 0.5": partial(surrogates.MarginRescaling, scale=0.5),
    "margin extension": partial(surrogates.MarginRescaling, scale="extension"),
    "margin greedy": partial(surrogates.MarginRescaling, maximizer="greedy"),
    "slack": surrogates.SlackRescaling,
    "slack greedy": partial(surrogates.SlackRescaling, maximizer="greedy"),
    "decomposed": surrogates.DecomposedHinge,
}


def loss_seen(loss: losses.Loss, p: int) -> Any:
    rng = np.random.default_rng(p)
    y, z = rng.random((2, 12, p)) < 0.4
    function = loss.set_function(y[0])
    return {
        "batch": loss(y, z),
        "one": loss(y[0], z[0]),
        "ragged": loss(y.ravel(), z.ravel(), offsets=np.arange(13) * p),
        "gains": function.gains(rng.permutation(p)),
        "flags": [loss.is_submodular, loss.is_increasing, function.is_submodular],
    }


def surrogate_seen(make: Any, loss: losses.Loss, p: int) -> Any:
    """Evaluate a batch in both precisions, its rows as ragged sets, and a single set.

    Return the values and properties, or a ``Refusal``.
    """
    rng = np.random.default_rng(p)
    y, scores = rng.random((6, p)) < 0.4, rng.normal(0.0, 1.5, (6, p))
    y[0] = False
    surrogate = attempt(make, loss)
    if isinstance(surrogate, str):
        return surrogate
    both = attempt(surrogate.value_and_gradient, y, scores)
    if isinstance(both, str):
        return both
    offsets = np.arange(7) * p
    return {
        "batch": both,
        "float32": surrogate.value_and_gradient(y, scores.astype(np.float32)),
        "ragged": surrogate.value_and_gradient(y.ravel(), scores.ravel(), offsets=offsets),
        "one": surrogate.value_and_gradient(y[1], scores[1]),
        "value": surrogate(y[1], scores[1]),
        "properties": surrogate.properties(y[1]),
    }


def wide() -> Iterator[Problem]:
    for p in (0, 1, 3, 7, 18, 60):
        for name, loss in all_losses(p).items():
            yield f"{p}/{name}/loss", partial(loss_seen, loss, p)
            for kind, make in MAKERS.items():
                if p > 18 and name in SLOW:
                    continue
                yield f"{p}/{name}/{kind}", partial(surrogate_seen, make, loss, p)
    for name in ("dice", "hamming", "exponential", "jaccard"):
        yield (
            f"extension scale of {name}",
            lambda name=name: attempt(
                surrogates.MarginRescaling(name).extension_scale, [1, 0, 1, 1, 0]
            ),
        )
    Y = np.random.default_rng(0).random((30, 5)) < 0.6
    yield "itemsets from labels", lambda: losses.ItemsetLoss.from_labels(Y, 0.2, 3)(Y, ~Y)
    ragged = np.random.default_rng(1).integers(0, 30, 200)
    for name in NAMES:
        for kind in ("lovasz", "margin", "slack", "decomposed"):
            yield f"ragged/{name}/{kind}", partial(on_ragged, MAKERS[kind], name, ragged)


# Losses without a kernel, whose maximisers are slow on large sets.
SLOW = ("own", "unknown", "supermodular")


def on_ragged(make: Any, loss: losses.Loss | str, sizes: np.ndarray) -> Any:
    rng = np.random.default_rng(0)
    total = int(sizes.sum())
    y, scores = rng.random(total) < 0.3, rng.standard_normal(total)
    surrogate = attempt(make, loss)
    if isinstance(surrogate, str):
        return surrogate
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return attempt(surrogate.value_and_gradient, y, scores, offsets=offsets)


def in_a_row(surrogate: surrogates.Surrogate, inputs: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    both = [surrogate.value_and_gradient(y, scores) for y, scores in inputs]
    values, gradients = zip(*both, strict=True)
    return [np.array(values), np.concatenate(gradients)]


def timed() -> Iterator[Problem]:
    hinge = surrogates.LovaszHinge("jaccard")
    for kind, p in (("random", 10**4), ("random", 10**6), ("separated", 10**6)):
        inputs = [draw(kind, p, seed) for seed in range(max(4, 2 * 10**6 // p))]
        yield f"lovasz_hinge {kind} {p}", partial(in_a_row, hinge, inputs)
    y, scores = draw("random", 10**6, 0)
    yield "lovasz_hinge float64", partial(hinge.value_and_gradient, y, scores.astype(np.float64))
    rng = np.random.default_rng(0)
    rows = rng.random((10_000, 20)) < 0.3, rng.standard_normal((10_000, 20))
    for loss, make in (
        ("jaccard", "lovasz"),
        ("dice", "decomposed"),
        ("face_track_1", "decomposed"),
        ("jaccard", "margin"),
        ("jaccard", "slack"),
        ("early_detection", "margin"),
    ):
        yield f"batch {loss} {make}", partial(in_a_row, MAKERS[make](loss), [rows] * 8)
    sets = [(rng.random(20) < 0.3, rng.standard_normal(20)) for _ in range(3000)]
    for loss, make in (("jaccard", "lovasz"), ("dice", "decomposed"), ("jaccard", "slack")):
        yield f"calls of 20 {loss} {make}", partial(in_a_row, MAKERS[make](loss), sets)
    for loss in ("face_track_1", "dice"):
        for p in (10**3, 10**5):
            few = [(rng.random(p) < 0.3, rng.standard_normal(p)) for _ in range(3 * 10**6 // p)]
            surrogate = surrogates.DecomposedHinge(loss)
            yield f"decomposed_hinge {loss} {p}", partial(in_a_row, surrogate, few)
    sizes = rng.integers(1, 60, 2000)
    for loss, make in (("jaccard", "lovasz"), ("dice", "decomposed"), ("jaccard", "margin")):
        yield (
            f"2000 ragged sets {loss} {make}",
            lambda loss=loss, make=make: [
                on_ragged(MAKERS[make], losses.get(loss), sizes) for _ in range(15)
            ],
        )
