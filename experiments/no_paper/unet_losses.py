"""A U-Net on the Weizmann horses, trained from the start with each loss, on a GPU.

    python experiments/no_paper/unet_losses.py [--quick] [--jobs 4]

Needs weizmann_horses/ (60 photographs with masks). Every other photograph is for training and for
the choice of the step size, the rest for the test. The table answers which loss trains best for
Jaccard and Dice, whether cross-entropy or soft labels help, and how much a decision for the measure
adds to each. The script also runs on a CPU, slowly. Finished runs are cached.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.no_paper.unet_horses import UNet
from experiments.shared.cache import cache_folder
from experiments.shared.report import Table, arguments, estimate, parallel, report
from experiments.shared.weizmann import mask, names, photograph

SIZE = 128
VALIDATION = 6
BATCH = 8
RATES = (1e-3, 3e-3)
SMOOTHING = 0.1

Criterion = Callable[[Tensor, Tensor], Tensor]
t = sw.torch


def smoothed(criterion: nn.Module) -> Criterion:
    """Return the criterion on soft labels: the truth is moved towards 1/2."""
    return lambda logits, y: criterion(logits, (1 - SMOOTHING) * y + SMOOTHING / 2)


def masks(make: Callable[..., nn.Module], *arguments: object, **options: object) -> nn.Module:
    """Return a loss with one mask per image."""
    return make(*arguments, per_image=True, **options)


def overlap(make: Callable[..., nn.Module], **options: object) -> nn.Module:
    return make(activation="sigmoid", classes="all", per_image=True, **options)


CRITERIA: dict[str, Criterion] = {
    "cross-entropy": nn.BCEWithLogitsLoss(),
    "cross-entropy, smoothed labels": smoothed(nn.BCEWithLogitsLoss()),
    "soft Dice": overlap(t.SoftDiceLoss),
    "Lovász hinge, Jaccard": masks(t.LovaszHingeLoss),
    "Lovász-sigmoid, Jaccard": masks(t.LovaszSigmoidLoss),
    "Lovász-sigmoid, Dice": masks(t.LovaszSigmoidLoss, "dice"),
    "Jaccard metric": overlap(t.JaccardMetricLoss),
    "Dice semimetric": overlap(t.DiceSemimetricLoss),
    "B_D, Dice": masks(t.DecomposedHingeLoss, "dice"),
    "cross-entropy + soft Dice": t.WithCrossEntropy(overlap(t.SoftDiceLoss)),
    "cross-entropy + Lovász hinge": t.WithCrossEntropy(masks(t.LovaszHingeLoss)),
    "cross-entropy + Lovász-sigmoid, Jaccard": t.WithCrossEntropy(masks(t.LovaszSigmoidLoss)),
    "cross-entropy + Lovász-sigmoid, Dice": t.WithCrossEntropy(masks(t.LovaszSigmoidLoss, "dice")),
    "cross-entropy + Jaccard metric": t.WithCrossEntropy(overlap(t.JaccardMetricLoss)),
    "Lovász-sigmoid, smoothed labels": smoothed(masks(t.LovaszSigmoidLoss)),
    "Jaccard metric, smoothed labels": smoothed(overlap(t.JaccardMetricLoss)),
}


def read(size: int) -> tuple[Tensor, Tensor]:
    """Return images (60, 3, size, size), each standardised, and masks (60, 1, size, size)."""
    images, truths = [], []
    for name in names():
        rgb = Image.fromarray(photograph(name)).resize((size, size), Image.Resampling.BILINEAR)
        horse = Image.fromarray(mask(name).astype(np.uint8))
        horse = horse.resize((size, size), Image.Resampling.NEAREST)
        x = np.asarray(rgb, np.float32).transpose(2, 0, 1) / 255.0
        images.append((x - x.mean((1, 2), keepdims=True)) / (x.std((1, 2), keepdims=True) + 1e-3))
        truths.append(np.asarray(horse)[None] > 0)
    return torch.tensor(np.stack(images)), torch.tensor(np.stack(truths)).float()


def train(
    net: nn.Module, criterion: Criterion, x: Tensor, y: Tensor, steps: int, rate: float, seed: int
) -> None:
    """Train by Adam with a step size that falls to zero, flips and shifts."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        chosen = torch.randperm(len(x), generator=generator)[:BATCH].to(x.device)
        images, truths = x[chosen], y[chosen]
        if torch.rand((), generator=generator) < 0.5:
            images, truths = images.flip(3), truths.flip(3)
        shift = torch.randint(-16, 17, (2,), generator=generator).tolist()
        images, truths = images.roll(shift, (2, 3)), truths.roll(shift, (2, 3))
        optimizer.zero_grad()
        criterion(net(images), truths).backward()
        optimizer.step()
        schedule.step()


@torch.no_grad()
def measure(net: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """Return the images' mean Jaccard and Dice, at a threshold of 0 and decided per measure."""
    logits = net(x)
    found = {}
    for loss in ("jaccard", "dice"):
        score = t.SetScore(loss, n_classes=1, kind="masks", per_image=True).to(x.device)
        decided = t.decide(logits, loss, per_image=True).mask
        found[loss] = score(logits, y).item()
        found[f"{loss}, decided"] = score(decided, y).item()
    return found


Case = tuple[str, int, int, tuple[float, ...], int]


def one_run(case: Case) -> dict:
    """Return the test figures of a loss and a seed, with the step size tuned on other images."""
    name, seed, steps, rates, size = case
    kept_at = cache_folder() / "unet_losses" / f"{size}-{steps}-{seed}-{name}.json"
    if kept_at.exists():
        return json.loads(kept_at.read_text())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images, truths = (part.to(device) for part in read(size))
    order = torch.randperm(30, generator=torch.Generator().manual_seed(seed)).to(device)
    held, kept = order[:VALIDATION], order[VALIDATION:]
    best: dict = {"held": -1.0}
    for rate in rates:
        torch.manual_seed(seed)
        net = UNet(24).to(device)
        train(net, CRITERIA[name], images[::2][kept], truths[::2][kept], steps, rate, seed)
        on_held = measure(net, images[::2][held], truths[::2][held])["jaccard"]
        if on_held > best["held"]:
            best = {"held": on_held, "rate": rate, **measure(net, images[1::2], truths[1::2])}
    kept_at.parent.mkdir(parents=True, exist_ok=True)
    kept_at.write_text(json.dumps(best))
    return best


def main() -> None:
    given = arguments(__doc__, repeats=5)
    steps, size = (20, 32) if given.quick else (600, SIZE)
    rates = RATES[:1] if given.quick else RATES
    seeds = [given.seed + k for k in range(given.repeats)]
    cases = [(name, seed, steps, rates, size) for name in CRITERIA for seed in seeds]
    runs = {case[:2]: run for case, run in parallel(one_run, cases, "runs", given.jobs)}
    table = Table(
        f"30 test images of {size} x {size}, mean ± standard error over {given.repeats} seeds",
        [
            "trained with",
            "Jaccard",
            "above cross-entropy",
            "Dice",
            "Jaccard, decided",
            "Dice, decided",
        ],
    )
    data = {}
    for name in CRITERIA:
        of_name = [runs[name, seed] for seed in seeds]
        control = [runs["cross-entropy", seed] for seed in seeds]
        above = estimate(a["jaccard"] - b["jaccard"] for a, b in zip(of_name, control, strict=True))
        columns = {
            key: estimate(run[key] for run in of_name)
            for key in ("jaccard", "dice", "jaccard, decided", "dice, decided")
        }
        shown = "" if name == "cross-entropy" else above.show()
        table.rows.append(
            [name, columns["jaccard"].show(), shown]
            + [columns[key].show() for key in ("dice", "jaccard, decided", "dice, decided")]
        )
        data[name] = {**columns, "above cross-entropy": above, "runs": of_name}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    choices = {
        "data": f"60 Weizmann horses at {size} x {size}; every other image to train "
        f"({30 - VALIDATION}) and to choose the step size ({VALIDATION}, drawn anew for each seed)"
        ", the other 30 to test",
        "seeds": seeds,
        "network": "U-Net of three scales, 24 to 96 channels, group normalisation, from the start",
        "training": f"{steps} steps of Adam with each loss; batches of {BATCH}, flips, shifts, "
        "cosine schedule",
        "step size": f"of {', '.join(f'{rate:g}' for rate in rates)}, by Jaccard on the held-out "
        "training images",
        "losses": "each image is one set; half of each where two are added; smoothed labels are "
        f"{SMOOTHING / 2:g} and {1 - SMOOTHING / 2:g}",
        "decided": "sw.torch.decide on the sigmoid of the logits, for the measure of the column; "
        "else a logit above 0",
        "device": device,
    }
    report(
        __file__,
        "A U-Net on the Weizmann horses, trained with each loss",
        [table],
        choices=choices,
        data=data,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
