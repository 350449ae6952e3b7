"""A U-Net whose last layer is a field or a mean field, and measures of its masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

import setwise as sw
from experiments.no_paper.unet_horses import UNet

START = 0.5  # initial weight of the pairs
PASSES = {True: 5, False: 10}  # passes of the mean field in training and after it
NEAR = 3  # distance in pixels from the true boundary
BINS = 15
LEAST = 1e-7

t = sw.torch

# For each network, the field in its last layer and the loss that trains it.
TRAINED = {
    "cross-entropy": ("none", "likelihood"),
    "Jaccard metric": ("none", "set loss"),
    "field, likelihood": ("field", "likelihood"),
    "field, hinge": ("field", "hinge"),
    "field, marginals into the Jaccard metric": ("field", "set loss"),
    "mean field, likelihood": ("mean field", "likelihood"),
    "mean field, into the Jaccard metric": ("mean field", "set loss"),
}


def mean_field(logits: Tensor, image: Tensor, weight: Tensor | float, passes: int) -> Tensor:
    """Return probabilities (B, L, H, W) after parallel updates with contrast pairs (CRF-RNN)."""
    factors = {axis: _contrast(image, axis) for axis in (3, 2)}
    q = logits.softmax(1)
    for _ in range(passes):
        votes = torch.zeros_like(q)
        for axis, factor in factors.items():
            length = q.shape[axis] - 1
            first, second = q.narrow(axis, 0, length), q.narrow(axis, 1, length)
            after, before = ((0, 1), (1, 0)) if axis == 3 else ((0, 0, 0, 1), (0, 0, 1, 0))
            votes = votes + functional.pad(factor * second, after)
            votes = votes + functional.pad(factor * first, before)
        q = (logits + weight * votes).softmax(1)
    return q


def _contrast(image: Tensor, axis: int) -> Tensor:
    """Return exp(-beta |difference|^2) of neighbours along an axis, (B, 1, ...)."""
    change = image.diff(dim=axis).square().sum(1, keepdim=True)
    every = [image.diff(dim=a).square().sum(1).flatten(1) for a in (2, 3)]
    mean = torch.cat(every, 1).mean(1).view(-1, 1, 1, 1).clamp(min=1e-12)
    return torch.exp(-change / (2 * mean))


@dataclass(frozen=True)
class Last:
    """The layer after the logits: a kind of field, its weight, and a temperature for both."""

    kind: str
    weight: float
    temperature: float = 1.0

    @torch.no_grad()
    def __call__(self, logits: Tensor, image: Tensor) -> Tensor:
        """Return the probability of the horse, (B, 1, H, W)."""
        logits, weight = logits / self.temperature, self.weight / self.temperature
        if self.kind == "none" or weight == 0:
            return logits.softmax(1)[:, 1:]
        if self.kind == "mean field":
            return mean_field(logits, image, weight, PASSES[False])[:, 1:]
        return t.FieldMarginals(weight, tol=1e-5)(logits, image=image)[:, 1:]


class Model(nn.Module):
    """The backbone, its last layer, and the loss that trains both."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.kind, self.by = TRAINED[name]
        self.net = UNet(24)
        makers = {
            ("field", "likelihood"): t.FieldLikelihoodLoss,
            ("field", "hinge"): t.FieldHingeLoss,
            ("field", "set loss"): t.FieldMarginals,
        }
        maker = makers.get((self.kind, self.by))
        self.layer = maker(START, learn=True) if maker else None
        start = torch.tensor(START).expm1().log()
        self.raw_weight = nn.Parameter(start) if self.kind == "mean field" else None
        self.set_loss = t.JaccardMetricLoss(activation="none", classes="all", per_image=True)

    @property
    def last(self) -> Last:
        """The last layer with the current weights."""
        if self.layer is not None:
            return Last("field", self.layer.weight.item())
        weight = 0.0 if self.raw_weight is None else functional.softplus(self.raw_weight).item()
        return Last(self.kind, weight)

    def logits(self, x: Tensor) -> Tensor:
        """Return (B, 2, H, W); the background has a logit of 0."""
        horse = self.net(x)
        return torch.cat([torch.zeros_like(horse), horse], 1)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of images (B, 3, H, W) and masks (B, 1, H, W)."""
        logits, truth = self.logits(x), y[:, 0].long()
        if self.layer is not None and self.by != "set loss":
            return self.layer(logits, truth, image=x)
        if self.kind == "none" and self.by == "likelihood":
            return functional.cross_entropy(logits, truth)
        if self.layer is not None:
            p = self.layer(logits, image=x)
        elif self.raw_weight is not None:
            p = mean_field(logits, x, functional.softplus(self.raw_weight), PASSES[True])
        else:
            p = logits.softmax(1)
        if self.by == "likelihood":
            return functional.nll_loss(p.clamp(min=LEAST).log(), truth)
        return self.set_loss(p[:, 1:].clamp(0, 1), y)


def jaccard(p: Tensor, y: Tensor) -> float:
    """Return the mean Jaccard index over images at a threshold of 1/2."""
    score = t.SetScore("jaccard", n_classes=1, kind="masks", per_image=True).to(p.device)
    return score(p > 0.5, y).item()


def nll(p: Tensor, y: Tensor) -> float:
    """Return the negative log likelihood in nats per pixel."""
    right = torch.where(y > 0, p, 1 - p)
    return -right.clamp(min=LEAST).log().mean().item()


def calibration_error(p: Tensor, y: Tensor) -> float:
    """Return the expected calibration error of the label above 1/2, in bins of equal width."""
    sure, right = torch.maximum(p, 1 - p), ((p > 0.5) == (y > 0)).float()
    bins = ((sure - 0.5) * 2 * BINS).long().clamp(max=BINS - 1).flatten()
    sums = torch.zeros(BINS, device=p.device).scatter_add_(0, bins, (sure - right).flatten())
    return (sums.abs().sum() / bins.numel()).item()


@torch.no_grad()
def measure(p: Tensor, calibrated: Tensor, y: Tensor) -> dict[str, float]:
    """Return the measures of probabilities (B, 1, H, W).

    The decisions use ``calibrated``, the probabilities at another temperature.
    """
    found = {"jaccard": jaccard(p, y)}
    for loss in ("jaccard", "dice"):
        score = t.SetScore(loss, n_classes=1, kind="masks", per_image=True).to(p.device)
        found[loss] = score(p > 0.5, y).item()
        decided = t.decide(calibrated.contiguous(), loss, activation="none", per_image=True).mask
        found[f"{loss}, decided"] = score(decided, y).item()
    size = 2 * NEAR + 1
    grown = functional.max_pool2d(y, size, 1, NEAR)
    shrunk = -functional.max_pool2d(-y, size, 1, NEAR)
    near = grown != shrunk
    found["boundary"] = ((p > 0.5) == (y > 0))[near].float().mean().item()
    for name, probabilities in (("", p), (", calibrated", calibrated)):
        found[f"calibration error{name}"] = calibration_error(probabilities, y)
        found[f"nll{name}"] = nll(probabilities, y)
    return found
