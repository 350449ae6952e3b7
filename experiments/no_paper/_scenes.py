"""Images with several classes, common and rare: synthetic scenes, and MSRC-21 at a reduced size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from experiments.shared.cache import cache_folder, keep

VOID = 255
SIZE = 48
# The numbers of images that train, choose the step size, and test.
TRAIN, CHOOSE, TEST = 96, 32, 64
# The background has 3 to 100 times as many pixels as another class.
IMBALANCE = (3.0, 100.0)
# The share of shapes in the images for training whose label is that of another class.
WRONG = 0.05
NOISE = 0.3


@dataclass(frozen=True)
class Images:
    """Images (S, N, 3, H, W) and labels (S, N, H, W) of S seeds; the parts follow each other."""

    x: Tensor
    y: Tensor
    n_classes: int
    parts: tuple[int, int, int]

    def part(self, k: int) -> tuple[Tensor, Tensor]:
        """Return the images and labels that train (0), choose (1) or test (2)."""
        first = sum(self.parts[:k])
        rows = slice(first, first + self.parts[k])
        return self.x[:, rows], self.y[:, rows]


def scenes(n_classes: int, seeds: list[int], parts: tuple[int, int, int], size: int) -> Images:
    """Return discs and polygons with textures on a background, another set for each seed.

    The classes differ in colour and in the direction and width of their stripes. A ring around each
    shape and a rectangle in every fourth image are void.
    """
    style = np.random.default_rng(n_classes)
    colors = 0.5 + 0.22 * style.standard_normal((n_classes, 3))
    waves = style.uniform(0.15, 0.45, n_classes), style.uniform(0, np.pi, n_classes)
    per_seed = []
    for seed in seeds:
        rng = np.random.default_rng([n_classes, seed])
        drawn = [_scene(rng, colors, waves, k < parts[0], k, size) for k in range(sum(parts))]
        per_seed.append([np.stack(part) for part in zip(*drawn, strict=True)])
    x, y = (np.stack(part) for part in zip(*per_seed, strict=True))
    return Images(torch.tensor((x - 0.5) / 0.3), torch.tensor(y), n_classes, parts)


def _scene(
    rng: np.random.Generator,
    colors: np.ndarray,
    waves: tuple[np.ndarray, np.ndarray],
    training: bool,
    number: int,
    size: int,
) -> tuple[np.ndarray, np.ndarray]:
    n = len(colors)
    ratios = np.geomspace(*IMBALANCE, n - 1)
    shares = 1 / ratios / (1 + np.sum(1 / ratios))
    radii = size / 64 * np.linspace(9.0, 4.0, n - 1)
    counts = rng.poisson(shares * size**2 / (np.pi * radii**2))
    rows, columns = np.mgrid[:size, :size]
    truth, shown = np.zeros((2, size, size), np.int64)
    void = np.zeros((size, size), bool)
    for c in rng.permutation(np.repeat(np.arange(1, n), counts)):
        center = rng.uniform(0, size, 2)
        turned = np.arctan2(rows - center[0], columns - center[1]) + rng.uniform(0, 2 * np.pi)
        corners = rng.choice([0, 3, 4])  # 0: a disc
        angle = turned % (2 * np.pi / corners) - np.pi / corners if corners else 0.0
        scale = np.cos(np.pi / corners) * 1.35 if corners else 1.0
        away = np.hypot(rows - center[0], columns - center[1]) * np.cos(angle)
        away = away - radii[c - 1] * rng.uniform(0.75, 1.25) * scale
        truth[away < 0] = c
        wrong = training and rng.random() < WRONG
        shown[away < 0] = rng.integers(n) if wrong else c
        void = np.where(away < -0.7, False, void) | (np.abs(away) <= 0.7)
    if number % 4 == 0:
        top, left = rng.integers(0, size - size // 5, 2)
        void[top : top + size // 5, left : left + size // 5] = True
    frequency, direction = waves
    phase = rng.uniform(0, 2 * np.pi, n)[truth]
    along = rows * np.cos(direction)[truth] + columns * np.sin(direction)[truth]
    stripes = 0.18 * np.sin(2 * np.pi * frequency[truth] * along + phase)
    x = colors[truth] + stripes[..., None] + 0.1 * rng.standard_normal(3)
    x = x + NOISE * rng.standard_normal(x.shape)
    labels = np.where(void, VOID, shown).astype(np.uint8)
    return x.transpose(2, 0, 1).astype(np.float32), labels


def msrc(seeds: list[int], parts: tuple[int, int, int], size: int) -> Images:
    """Return MSRC-21 at ``size`` x ``size``; its validation images are the test images."""
    kept = cache_folder() / "class_losses" / f"msrc-{size}.npz"
    if not kept.exists():
        _reduce(kept, size)
    with np.load(kept) as arrays:
        x, y, n_train = arrays["x"], arrays["y"], int(arrays["n_train"])
    orders = []
    for seed in seeds:
        shuffled = np.random.default_rng(seed).permutation(n_train)[: parts[0] + parts[1]]
        orders.append(np.concatenate([shuffled, np.arange(n_train, len(x))[: parts[2]]]))
    x = x.astype(np.float32).transpose(0, 3, 1, 2) / 255.0
    x = (x - x.mean((2, 3), keepdims=True)) / (x.std((2, 3), keepdims=True) + 1e-3)
    chosen = np.stack(orders)
    return Images(torch.tensor(x[chosen]), torch.tensor(y[chosen]), 21, parts)


def _reduce(path: object, size: int) -> None:
    from PIL import Image

    from experiments.shared.msrc import image, names, truth

    every = names("train") + names("validation")
    small = [Image.fromarray(image(name)).resize((size, size), 2) for name in every]
    labels = [
        Image.fromarray(truth(name).astype(np.uint8)).resize((size, size), 0) for name in every
    ]
    keep(
        path,
        x=np.stack([np.asarray(part) for part in small]),
        y=np.stack([np.asarray(part) for part in labels]),
        n_train=np.array(len(names("train"))),
    )
