"""A small U-Net on the Weizmann horses: cross-entropy, then fine-tuned with each loss.

    python experiments/no_paper/unet_horses.py [--quick]

Needs weizmann_horses/ (60 photographs with masks). Every other photograph is for training and for
the choice of the step size, the rest for the test. No paper has this table. It shows whether a loss
made for a measure improves that measure; the control continues with cross-entropy for the same
number of steps.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.report import Estimate, Table, arguments, estimate, progress, report
from experiments.shared.weizmann import mask, names, photograph

SIZE = (48, 64)
VALIDATION = 6
BATCH = 8
RATES = (3e-4, 1e-3)

Criterion = Callable[[Tensor, Tensor], Tensor]


def lovasz_softmax(logits: Tensor, target: Tensor) -> Tensor:
    """Return the Lovász softmax of two classes, where the background has a logit of zero."""
    both = torch.cat([torch.zeros_like(logits), logits], dim=1)
    return sw.torch.lovasz_softmax(both, target[:, 0].long(), per_image=True)


CRITERIA: dict[str, Criterion] = {
    "cross-entropy (control)": nn.BCEWithLogitsLoss(),
    "Lovász hinge, Jaccard": sw.torch.LovaszHingeLoss("jaccard", per_image=True),
    "Lovász-softmax, Jaccard": lovasz_softmax,
    "B_D, Dice": sw.torch.DecomposedHingeLoss("dice", per_image=True),
    "margin rescaling, Jaccard": sw.torch.MarginRescalingLoss("jaccard", per_image=True),
    "slack rescaling, Jaccard": sw.torch.SlackRescalingLoss("jaccard", per_image=True),
}


class UNet(nn.Module):
    """A U-Net with three scales, two convolutions at each, and joined skips: 67,153 weights."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            [_block(3, width), _block(width, 2 * width), _block(2 * width, 4 * width)]
        )
        self.up = nn.ModuleList([_block(6 * width, 2 * width), _block(3 * width, width)])
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (N, 1, H, W) of images (N, 3, H, W)."""
        skips = []
        for k, block in enumerate(self.down):
            x = block(x if k == 0 else functional.max_pool2d(x, 2))
            skips.append(x)
        for block, skip in zip(self.up, skips[-2::-1], strict=True):
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, skip], dim=1))
        return self.last(x)


def _block(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for first in (inputs, outputs):
        layers += [nn.Conv2d(first, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def read() -> tuple[Tensor, Tensor]:
    """Return images (60, 3, H, W), each standardised, and masks (60, 1, H, W)."""
    images, masks = [], []
    for name in names():
        rgb = Image.fromarray(photograph(name)).resize(SIZE[::-1], Image.Resampling.BILINEAR)
        horse = Image.fromarray(mask(name).astype(np.uint8))
        horse = horse.resize(SIZE[::-1], Image.Resampling.NEAREST)
        x = np.asarray(rgb, np.float32).transpose(2, 0, 1) / 255.0
        images.append((x - x.mean((1, 2), keepdims=True)) / (x.std((1, 2), keepdims=True) + 1e-3))
        masks.append(np.asarray(horse)[None] > 0)
    return torch.tensor(np.stack(images)), torch.tensor(np.stack(masks)).float()


def train(
    net: nn.Module,
    criterion: Criterion,
    images: Tensor,
    masks: Tensor,
    steps: int,
    rate: float,
    generator: torch.Generator,
) -> None:
    """Train by Adam with a step size that falls to zero, flips and shifts."""
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        chosen = torch.randperm(len(images), generator=generator)[:BATCH]
        x, y = images[chosen], masks[chosen]
        if torch.rand((), generator=generator) < 0.5:
            x, y = x.flip(3), y.flip(3)
        shift = torch.randint(-8, 9, (2,), generator=generator).tolist()
        x, y = x.roll(shift, (2, 3)), y.roll(shift, (2, 3))
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()
        schedule.step()


@torch.no_grad()
def measure(net: nn.Module, images: Tensor, masks: Tensor) -> dict[str, float]:
    """Return mean Jaccard index and Dice coefficient of the images, at a threshold of zero."""
    predicted = (net(images) > 0).flatten(1).numpy()
    truth = (masks > 0).flatten(1).numpy()
    return {
        "jaccard": 1.0 - float(np.mean(sw.losses.Jaccard()(truth, predicted))),
        "dice": 1.0 - float(np.mean(sw.losses.Dice()(truth, predicted))),
    }


def one_seed(seed: int, first: int, second: int, rates: tuple[float, ...]) -> dict[str, dict]:
    """Train once, fine-tune with every criterion from there, and return test figures of each."""
    images, masks = read()
    train_x, train_y = images[::2], masks[::2]
    test_x, test_y = images[1::2], masks[1::2]
    order = torch.randperm(len(train_x), generator=torch.Generator().manual_seed(seed))
    held, kept = order[:VALIDATION], order[VALIDATION:]
    torch.manual_seed(seed)
    start = UNet()
    generator = torch.Generator().manual_seed(seed)
    train(start, nn.BCEWithLogitsLoss(), train_x[kept], train_y[kept], first, 3e-3, generator)
    results = {"before": {**measure(start, test_x, test_y), "rate": 0.0}}
    for name, criterion in CRITERIA.items():
        best, chosen = -1.0, {}
        for rate in rates:
            net = copy.deepcopy(start)
            again = torch.Generator().manual_seed(seed + 1)
            train(net, criterion, train_x[kept], train_y[kept], second, rate, again)
            on_held = measure(net, train_x[held], train_y[held])
            goal = on_held["dice" if "Dice" in name else "jaccard"]
            if goal > best:
                best, chosen = goal, {**measure(net, test_x, test_y), "rate": rate}
        results[name] = chosen
    return results


def main() -> None:
    given = arguments(__doc__, repeats=3)
    torch.set_num_threads(1)
    first, second = (60, 20) if given.quick else (240, 80)
    rates = RATES[:1] if given.quick else RATES
    seeds = [given.seed + k for k in range(given.repeats)]
    runs = [one_seed(seed, first, second, rates) for seed in progress(seeds, "seeds")]
    table = Table(
        f"30 test images, mean ± standard error over {given.repeats} seeds",
        ["fine-tuned with", "Jaccard", "Dice", "Jaccard above the control", "step sizes"],
    )
    data: dict[str, dict[str, Estimate]] = {}
    for name in runs[0]:
        jaccard, dice = (estimate(run[name][key] for run in runs) for key in ("jaccard", "dice"))
        control = "cross-entropy (control)"
        above = estimate(run[name]["jaccard"] - run[control]["jaccard"] for run in runs)
        rates_chosen = ", ".join(f"{run[name]['rate']:g}" for run in runs)
        label = "nothing: cross-entropy, first part" if name == "before" else name
        shown = "" if name == control else above.show()
        row = [label, jaccard.show(), dice.show(), shown]
        table.rows.append([*row, "" if name == "before" else rates_chosen])
        data[name] = {"jaccard": jaccard, "dice": dice, "above control": above}
    choices = {
        "data": f"60 Weizmann horses at {SIZE[0]} x {SIZE[1]}; every other image to train ("
        f"{30 - VALIDATION}) and to choose the step size ({VALIDATION}, drawn anew for each seed), "
        "the other 30 to test",
        "seeds": seeds,
        "network": "U-Net of three scales, 12 to 48 channels, group normalisation",
        "training": f"{first} steps of Adam with cross-entropy at 3e-3, then {second} more with "
        f"each loss from that network; batches of {BATCH}, flips, shifts, cosine schedule",
        "step size": f"of {', '.join(f'{rate:g}' for rate in rates)}, by the measure that the loss "
        "is for, on the held-out training images",
        "losses": "each image is one set; prediction is a logit above 0",
    }
    report(
        __file__,
        "A U-Net on the Weizmann horses, fine-tuned with set losses",
        [table],
        choices=choices,
        data={"summary": data, "runs": runs},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
