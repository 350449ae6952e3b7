"""Out-of-sample probabilities of the U-Net for both halves of the horses."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn

import setwise as sw
from experiments.decisions._decided_masks import Picture, field_of
from experiments.no_paper.unet_horses import UNet, read, train
from experiments.shared.cache import cache_folder, keep
from experiments.shared.report import progress

FOLDS = 3
RATE = 3e-3


def decide_tensor(p: np.ndarray, loss: str) -> np.ndarray:
    """Return the best mask of a picture, (1, n), by the library's decision for PyTorch."""
    scores = torch.from_numpy(p)[None, :, None, :]
    given = sw.torch.decide(scores, loss, activation="none", per_image=True, per_class=True)
    return given.mask[0, :, 0].numpy()


def both_halves(
    seed: int, steps: int, strengths: tuple[float, ...]
) -> tuple[list[Picture], list[Picture]]:
    """Return the pictures of the training half and of the test half, with probabilities.

    Those of the training half come from networks that did not see the picture, those of the test
    half from one network that was trained on the whole training half.
    """
    images, masks = read()
    logits = _all_logits(images, masks, seed, steps)
    pictures = _pictures(logits, images, masks, strengths)
    return pictures[::2], pictures[1::2]


def _all_logits(images: Tensor, masks: Tensor, seed: int, steps: int) -> np.ndarray:
    path = cache_folder() / "unet_horses" / f"logits_{seed}_{steps}.npz"
    if path.exists():
        with np.load(path) as arrays:
            return arrays["logits"]
    x, y = images[::2], masks[::2]
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed)).numpy()
    logits = np.empty((len(images), *images.shape[2:]))
    for fold in progress(range(FOLDS), "networks of folds"):
        held = np.isin(np.arange(len(x)), order[fold::FOLDS])
        logits[::2][held] = _logits(_network(x[~held], y[~held], seed, steps), x[held])
    logits[1::2] = _logits(_network(x, y, seed, steps), images[1::2])
    keep(path, logits=logits)
    return logits


def _network(x: Tensor, y: Tensor, seed: int, steps: int) -> nn.Module:
    torch.manual_seed(seed)
    net = UNet()
    generator = torch.Generator().manual_seed(seed)
    train(net, nn.BCEWithLogitsLoss(), x, y, steps, RATE, generator)
    return net


@torch.no_grad()
def _logits(net: nn.Module, x: Tensor) -> np.ndarray:
    return net(x)[:, 0].double().numpy()


def _pictures(
    logits: np.ndarray, images: Tensor, masks: Tensor, strengths: tuple[float, ...]
) -> list[Picture]:
    found = []
    for z, image, mask in zip(logits, images.numpy(), masks.numpy() > 0, strict=True):
        p = expit(z).reshape(1, -1)
        both = np.vstack([1 - p, p])
        colors = image.transpose(1, 2, 0)
        fields = {s: field_of(both, colors, s)[1:] for s in strengths}
        found.append(Picture({0.0: p, **fields}, mask.reshape(1, -1), np.ones(z.size, bool)))
    return found
