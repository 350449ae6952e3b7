"""Small U-Nets that are trained at the same time: every seed with every step size, in one batch.

The weights of M networks are stacked, and each convolution is one with M groups. In the losses each
network is an "image" whose pixels are those of its batch, so that ``per_image=True`` gives every
network its own sets. Only cross-entropy divides by the mean number of valid pixels of the networks
in place of each network's own.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 8


class Networks(nn.Module):
    """U-Nets of three scales, for each step size and seed; Adam has a group for each step size."""

    def __init__(self, n_classes: int, seeds: list[int], n_rates: int, width: int = WIDTH) -> None:
        super().__init__()
        w = width
        pairs = [(3, w), (w, w), (w, 2 * w), (2 * w, 2 * w), (2 * w, 4 * w), (4 * w, 4 * w)]
        pairs += [(6 * w, 2 * w), (2 * w, 2 * w), (3 * w, w), (w, w)]
        self.members, self.n_classes = n_rates * len(seeds), n_classes
        drawn = []
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed)
            tensors = []
            for inputs, outputs in pairs:
                scale = math.sqrt(2 / (9 * inputs))
                tensors.append(scale * torch.randn(outputs, inputs, 3, 3, generator=generator))
                tensors += [torch.ones(outputs), torch.zeros(outputs)]
            last = torch.randn(n_classes, w, 1, 1, generator=generator) / math.sqrt(w)
            drawn.append([*tensors, last, torch.zeros(n_classes)])
        stacked = [torch.cat(same) for same in zip(*drawn, strict=True)]
        copies = [[nn.Parameter(t.clone()) for t in stacked] for _ in range(n_rates)]
        self.of_rate = nn.ModuleList(nn.ParameterList(copy) for copy in copies)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (M, C, B * H, W) of images (B, M, 3, H, W)."""
        weights = iter([torch.cat(same) for same in zip(*self.of_rate, strict=True)])
        m, size = self.members, x.shape[-2:]

        def block(x: Tensor) -> Tensor:
            for _ in range(2):
                x = functional.conv2d(x, next(weights), padding=1, groups=m)
                x = functional.group_norm(x, 4 * m, next(weights), next(weights)).relu()
            return x

        def joined(x: Tensor, skip: Tensor) -> Tensor:
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
            parts = [part.unflatten(1, (m, -1)) for part in (x, skip)]
            return torch.cat(parts, 2).flatten(1, 2)

        first = block(x.flatten(1, 2))
        second = block(functional.max_pool2d(first, 2))
        third = block(functional.max_pool2d(second, 2))
        x = block(joined(third, second))
        x = block(joined(x, first))
        x = functional.conv2d(x, next(weights), next(weights), groups=m)
        x = x.unflatten(1, (m, self.n_classes)).permute(1, 2, 0, 3, 4)
        return x.reshape(m, self.n_classes, -1, size[1])


def confusion(predicted: Tensor, truth: Tensor, n_classes: int, void: int) -> Tensor:
    """Return the counts (M, 3, C) of true positives, predicted and true pixels of each network."""
    predicted, truth = predicted.flatten(1).long(), truth.flatten(1).long()
    valid = truth != void
    found = []
    for classes, at in ((truth, valid & (predicted == truth)), (predicted, valid), (truth, valid)):
        counts = torch.zeros(len(truth), n_classes + 1, device=truth.device)
        index = torch.where(at, classes, n_classes)
        found.append(counts.scatter_add_(1, index, torch.ones_like(index, dtype=counts.dtype)))
    return torch.stack(found, 1)[:, :, :n_classes]
