"""Fields over MSRC-21 with weights of unaries, pairs and regions: fit and evaluation."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import cross_entropy

import setwise as sw
from experiments.log_supermodular._models import coarse
from experiments.shared.cache import cache_folder, keep
from experiments.shared.msrc import LABELS, names, scene

ALPHA = 0.8
TOLERANCE = 1e-3
LAYERS = 3
START = (1.0, 0.5, *(0.5,) * LAYERS)  # initial scale, and initial weights of pairs and regions
MOST = 30  # largest number of evaluations


@dataclass(frozen=True)
class Weights:
    """The weights of ``scale * unaries + pair * contrast + sum of regions[k] * layer k``."""

    scale: float = 1.0
    pair: float = 0.0
    regions: tuple[float, ...] = (0.0,) * LAYERS

    def show(self) -> str:
        """Return the weights as a cell of a table."""
        numbers = [f"{x:.2g}" for x in (self.scale, self.pair, *self.regions)]
        layers = numbers[2] if len(set(numbers[2:])) == 1 else " ".join(numbers[2:])
        return f"{numbers[0]}, {numbers[1]}, {layers}"


@dataclass(frozen=True, eq=False)
class Images:
    """Photographs of one shape, in the form that the layers of fields expect."""

    places: list[int]
    """The indices of the images."""
    logits: Tensor
    pictures: Tensor
    regions: list[Tensor]
    truth: Tensor

    def part(self, half: int) -> Images:
        """Return every second image, starting with image ``half``."""
        at = [k for k, place in enumerate(self.places) if place % 2 == half]
        return Images(
            [self.places[k] for k in at],
            self.logits[at],
            self.pictures[at],
            [layer[at] for layer in self.regions],
            self.truth[at],
        )


@cache
def images(count: int, step: int) -> list[Images]:
    """Return the first validation images by shape, ``step`` x ``step`` pixels merged into one."""
    scenes = [coarse(scene(name), step) for name in names("validation")[:count]]
    found = []
    for shape in sorted({one.shape for one in scenes}):
        places = [k for k, one in enumerate(scenes) if one.shape == shape]
        same = [scenes[k] for k in places]

        def stacked(arrays: list[np.ndarray], shape: tuple[int, int] = shape) -> Tensor:
            return torch.from_numpy(np.stack([array.reshape(*shape, -1) for array in arrays]))

        logits = stacked([-one.unary for one in same]).movedim(3, 1).contiguous()
        pictures = stacked([one.image.astype(np.float64) for one in same]).movedim(3, 1)
        layers = [stacked([one.regions[k] for one in same])[..., 0] for k in range(LAYERS)]
        truth = stacked([one.truth.astype(np.int64) for one in same])[..., 0]
        found.append(Images(places, logits, pictures, layers, truth))
    return found


@torch.no_grad()
def probabilities(of: Images, weights: Weights) -> Tensor:
    """Return marginals (B, L, H, W) by projection, or the softmax without couplings."""
    logits = weights.scale * of.logits
    if not weights.pair and not any(weights.regions):
        return logits.softmax(1)
    if not any(weights.regions):
        layer = sw.torch.FieldMarginals(weights.pair, tol=TOLERANCE)
        return layer(logits, image=of.pictures)
    layer = sw.torch.FieldMarginals(weights.pair, region_weight=weights.regions, alpha=ALPHA)
    return layer(logits, image=of.pictures, regions=of.regions)


def scores_of(case: tuple[Weights, int, int]) -> dict[str, np.ndarray]:
    """Return the scores of each image and each label, and seconds of processor time.

    By image they are pixels, hits, sums of Brier and NLL (n, 4); by label pixels and hits (n, 21,
    2). The result is cached on disk.
    """
    weights, count, step = case
    path = _kept(case)
    if not path.exists():
        sums, labels = np.zeros((count, 4)), np.zeros((count, LABELS, 2))
        start = process_time()
        answers = [(of, probabilities(of, weights)) for of in images(count, step)]
        seconds = process_time() - start
        for of, p in answers:
            for k, place in enumerate(of.places):
                truth = of.truth[k].ravel().numpy()
                predicted = p[k].flatten(1).T.numpy()
                sums[place], labels[place] = _sums(predicted[truth >= 0], truth[truth >= 0])
        keep(path, sums=sums, labels=labels, seconds=np.array(seconds))
    with np.load(path) as arrays:
        return dict(arrays)


def _kept(case: tuple[object, ...]) -> Path:
    """Return a cache file whose name contains all arguments of the computation."""
    key = hashlib.sha256(repr((case, ALPHA, TOLERANCE, START, MOST)).encode()).hexdigest()[:16]
    return Path(cache_folder()) / "msrc_weights" / f"{key}.npz"


def _sums(p: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    true = sw.inference.reliability(truth, p)
    right = p.argmax(axis=1) == truth
    labels = [np.bincount(truth, minlength=LABELS), np.bincount(truth[right], minlength=LABELS)]
    numbers = [len(truth), right.sum(), true.brier * true.n, true.nll * true.n]
    return np.array(numbers, np.float64), np.stack(labels, axis=1)


def learnt(case: tuple[str, int, int, int]) -> tuple[Weights, dict[str, float]]:
    """Return the weights of the greatest likelihood of one half; evaluations, seconds, loss.

    ``what`` of a case is "scale", "pairs" or "regions"; each also includes the preceding ones. The
    loss is convex in all weights, which are constrained to be at least 0. The result is cached on
    disk.
    """
    path = _kept(case)
    if not path.exists():
        x, numbers = _fitted(*case)
        keep(path, x=x, **{name: np.array(number) for name, number in numbers.items()})
    with np.load(path) as arrays:
        every = np.zeros(2 + LAYERS)
        every[: len(arrays["x"])] = arrays["x"]
        numbers = {name: float(arrays[name]) for name in ("evaluations", "seconds", "loss")}
    scale, pair, *layers = every.tolist()
    return Weights(scale, pair, tuple(layers)), numbers


def _fitted(what: str, half: int, count: int, step: int) -> tuple[np.ndarray, dict[str, float]]:
    parts = [part for of in images(count, step) if (part := of.part(half)).places]
    known = sum(int((of.truth >= 0).sum()) for of in parts)

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        weights = torch.tensor(x, requires_grad=True)
        total = torch.stack([_loss(of, weights, what) for of in parts]).sum() / known
        total.backward()
        assert weights.grad is not None
        return total.item(), weights.grad.numpy()

    start = process_time()
    begin = {"scale": START[:1], "pairs": START[:2], "regions": START}[what]
    found = minimize(
        evaluate,
        np.array(begin),
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-3, None)] + [(0.0, None)] * (len(begin) - 1),
        options={"maxfun": MOST, "ftol": 1e-6, "gtol": 1e-4},
    )
    numbers = {"evaluations": found.nfev, "seconds": process_time() - start, "loss": found.fun}
    return found.x, numbers


def _loss(of: Images, weights: Tensor, what: str) -> Tensor:
    """Return E(y) + upper bound on log Z, summed over photographs.

    ``weights`` holds the weights of scale, pairs and layers.
    """
    logits = weights[0] * of.logits
    if what == "scale":
        return cross_entropy(logits, of.truth, ignore_index=-1, reduction="sum")
    shared = {"reduction": "sum", "ignore_index": -1, "tol": TOLERANCE}
    pairs = weights[1].expand(len(logits), 2, *of.truth.shape[1:])
    if what == "pairs":
        criterion = sw.torch.FieldLikelihoodLoss(1.0, **shared)
        return criterion(logits, of.truth, image=of.pictures, weights=pairs)
    criterion = sw.torch.FieldLikelihoodLoss(1.0, region_weight=1.0, alpha=ALPHA, **shared)
    most = 1 + max(int(layer.max()) for layer in of.regions)
    return criterion(
        logits,
        of.truth,
        image=of.pictures,
        weights=pairs,
        regions=of.regions,
        region_weights=weights[None, 2:, None].expand(len(logits), LAYERS, most),
    )
