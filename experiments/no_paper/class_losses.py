"""Losses that train a network of several classes, with rare classes, void pixels and wrong labels.

    python experiments/no_paper/class_losses.py [--quick] [--device cuda] [--seconds 400]

Small U-Nets are trained from the start on synthetic scenes with 5 and with 12 classes, and on
MSRC-21 at 48 x 48 (needs msrc21/). All seeds and step sizes of a loss are trained at the same time.
The step size is chosen on images of its own. Each training writes a file into ``--out``, so that a
run that was stopped, also by ``--seconds``, is continued, and that several processes with the same
``--out`` share the work: two of one thread each (``OMP_NUM_THREADS=1``) take less than an hour on
two cores. The logits of networks trained with cross-entropy are kept for ``label_maps.py``. The
table follows when every training is finished. Training needs NumPy, torch and ``setwise.torch``.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.no_paper._many_networks import Networks, confusion
from experiments.no_paper._scenes import (
    CHOOSE,
    IMBALANCE,
    SIZE,
    TEST,
    TRAIN,
    VOID,
    WRONG,
    Images,
    msrc,
    scenes,
)
from experiments.shared.cache import cache_folder, keep

SEEDS = list(range(5))
RATES = (1e-3, 4e-3)
BATCH = 8
EPOCHS = 25
WARM = 0.2
DATA: dict[str, Callable[[list[int], bool], Images]] = {
    "5 classes": lambda seeds, quick: scenes(5, seeds, *_parts(quick)),
    "12 classes": lambda seeds, quick: scenes(12, seeds, *_parts(quick)),
    "MSRC-21": lambda seeds, quick: msrc(
        seeds, *((8, 4, 4), 16) if quick else ((216, 60, 59), SIZE)
    ),
}
Criterion = Callable[[Tensor, Tensor], Tensor]
t = sw.torch


def _parts(quick: bool) -> tuple[tuple[int, int, int], int]:
    return ((8, 4, 4), 16) if quick else ((TRAIN, CHOOSE, TEST), SIZE)


def entropy(power: float = 0.0) -> Callable[[Tensor], Criterion]:
    """Return cross-entropy with class weights share ** -power."""

    def make(shares: Tensor) -> Criterion:
        weight = shares.clamp(min=1e-4) ** -power
        return lambda x, y: functional.cross_entropy(
            x, y.long(), weight / weight.mean(), ignore_index=VOID
        )

    return make


def sets(
    make: Callable[..., nn.Module], *words: object, **options: object
) -> Callable[[Tensor], Criterion]:
    """Return a loss whose sets are the classes of each network."""
    return lambda shares: make(*words, per_image=True, ignore_index=VOID, **options)


def mixed(loss: Callable[[Tensor], Criterion], share: float) -> Callable[[Tensor], Criterion]:
    return lambda shares: t.WithCrossEntropy(loss(shares), share)


DICE, JACCARD, SEMIMETRIC = (
    sets(t.SoftDiceLoss),
    sets(t.JaccardMetricLoss),
    sets(t.DiceSemimetricLoss),
)
LOVASZ, LOVASZ_DICE = sets(t.LovaszSoftmaxLoss), sets(t.LovaszSoftmaxLoss, "dice")
HINGE = sets(t.LovaszHingeLoss, per_class=True)
# The losses, in the order in which they are trained. "warm" means a fifth of cross-entropy first.
LOSSES: dict[str, Callable[[Tensor], Criterion]] = {
    "cross-entropy": entropy(),
    "soft Dice + CE": mixed(DICE, 0.5),
    "Lovász-softmax": LOVASZ,
    "Jaccard metric": JACCARD,
    "soft Dice": DICE,
    "Jaccard metric + CE": mixed(JACCARD, 0.5),
    "Lovász-softmax + CE": mixed(LOVASZ, 0.5),
    "Jaccard metric, warm": JACCARD,
    "cross-entropy, weights 1/sqrt(share)": entropy(0.5),
    "Dice semimetric": SEMIMETRIC,
    "Lovász-softmax, Dice": LOVASZ_DICE,
    "Lovász hinge": HINGE,
    "Jaccard metric + CE, share 0.8": mixed(JACCARD, 0.8),
    "soft Dice + CE, share 0.8": mixed(DICE, 0.8),
    "Lovász-softmax + CE, share 0.8": mixed(LOVASZ, 0.8),
    "soft Dice, warm": DICE,
    "Lovász-softmax, warm": LOVASZ,
    "Dice semimetric + CE": mixed(SEMIMETRIC, 0.5),
    "Lovász-softmax, Dice + CE": mixed(LOVASZ_DICE, 0.5),
    "Jaccard metric, all classes": sets(t.JaccardMetricLoss, classes="all"),
    "soft Dice, all classes": sets(t.SoftDiceLoss, classes="all"),
    "cross-entropy, weights 1/share": entropy(1.0),
    "Dice semimetric, warm": SEMIMETRIC,
    "Dice semimetric + CE, share 0.8": mixed(SEMIMETRIC, 0.8),
    "Lovász-softmax, Dice, warm": LOVASZ_DICE,
    "Lovász hinge + CE": mixed(HINGE, 0.5),
    "Lovász hinge + CE, share 0.8": mixed(HINGE, 0.8),
    "Lovász-softmax, Dice + CE, share 0.8": mixed(LOVASZ_DICE, 0.8),
    "Tversky, alpha 0.3, beta 0.7": sets(t.TverskyLoss, alpha=0.3, beta=0.7),
    "B_D of Dice": sets(t.DecomposedHingeLoss, "dice", per_class=True),
}


def batches(images: Images, epochs: int, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches (B, S, 3, H, W) and labels (S, B, H, W), flipped half of the time."""
    x, y = images.part(0)
    x, y = x.to(device), y.to(device)
    generator = torch.Generator().manual_seed(0)
    seeds = torch.arange(len(x), device=device)[:, None]
    for _ in range(epochs):
        order = torch.stack([torch.randperm(x.shape[1], generator=generator) for _ in x]).to(device)
        for first in range(0, x.shape[1] - BATCH + 1, BATCH):
            chosen = order[:, first : first + BATCH]
            images_, labels = x[seeds, chosen], y[seeds, chosen]
            if torch.rand((), generator=generator) < 0.5:
                images_, labels = images_.flip(4), labels.flip(3)
            yield images_.transpose(0, 1), labels


def train(name: str, images: Images, epochs: int, device: torch.device) -> Networks:
    """Train networks by Adam with step sizes that fall to zero."""
    y = images.part(0)[1]
    shares = torch.bincount(y[y != VOID].long().flatten(), minlength=images.n_classes)
    shares = (shares / shares.sum()).float().to(device)
    criterion, warm_up = LOSSES[name](shares), entropy()(shares)
    networks = Networks(images.n_classes, list(range(len(y))), len(RATES)).to(device)
    groups = [
        {"params": list(of_rate), "lr": rate}
        for of_rate, rate in zip(networks.of_rate, RATES, strict=True)
    ]
    optimizer = torch.optim.Adam(groups)
    steps = epochs * (y.shape[1] // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps, 1))
    for step, (x, labels) in enumerate(batches(images, epochs, device)):
        warm = name.endswith("warm") and step < WARM * steps
        logits = networks(x.repeat(1, len(RATES), 1, 1, 1))
        truth = labels.flatten(1, 2).repeat(len(RATES), 1, 1)
        loss = (warm_up if warm else criterion)(logits, truth)
        optimizer.zero_grad()
        (loss * len(truth)).backward()  # the loss is a mean over the networks
        optimizer.step()
        schedule.step()
    return networks


@torch.no_grad()
def counts_of(networks: Networks, images: Images, part: int, device: torch.device) -> np.ndarray:
    """Return the counts (R, S, 3, C) of true positives, predicted and true pixels of a part."""
    x, y = images.part(part)
    total = 0
    for first in range(0, x.shape[1], BATCH):
        some = x[:, first : first + BATCH].to(device).transpose(0, 1)
        logits = networks(some.repeat(1, len(RATES), 1, 1, 1))
        truth = y[:, first : first + BATCH].to(device).flatten(1, 2).repeat(len(RATES), 1, 1)
        total = total + confusion(logits.argmax(1), truth, images.n_classes, VOID)
    return total.view(len(RATES), len(x), 3, -1).cpu().numpy()


def _iou(counts: np.ndarray) -> np.ndarray:
    hit, predicted, true = np.moveaxis(counts, -2, 0)
    return hit / np.maximum(predicted + true - hit, 1)


@torch.no_grad()
def keep_logits(networks: Networks, images: Images, choice: np.ndarray, to: Path) -> None:
    """Write logits (N, C, H, W) of each seed for the images that choose and test, with labels."""
    device = next(networks.parameters()).device
    for seed, rate in enumerate(choice):
        arrays = {}
        for part, name in ((1, "choose"), (2, "test")):
            x, y = images.part(part)
            found = []
            for first in range(x.shape[1]):
                one = x[:, first].to(device)[None].repeat(1, len(RATES), 1, 1, 1)
                found.append(networks(one)[rate * len(x) + seed].cpu().numpy())
            arrays[f"{name}_logits"] = np.stack(found)
            arrays[f"{name}_labels"] = y[seed].numpy()
        keep(to.with_name(f"{to.name}-{seed}.npz"), **arrays)


def trainings() -> list[tuple[str, str]]:
    """Return all data sets with all losses, in the order of the losses."""
    return [(data, name) for name in LOSSES for data in DATA]


def file_of(folder: Path, data: str, name: str) -> Path:
    """Return the file of a training."""
    words = re.findall(r"[A-Za-z0-9.]+", unicodedata.normalize("NFKD", f"{data} {name}"))
    return folder / ("-".join(words) + ".json")


def run(given: argparse.Namespace, folder: Path) -> None:
    """Train what has no file yet and no other process trains, until the time is over."""
    began, device = time.perf_counter(), torch.device(given.device)
    torch.backends.cudnn.benchmark = True
    folder.mkdir(parents=True, exist_ok=True)
    seeds, epochs = (SEEDS[:1], 1) if given.quick else (SEEDS, EPOCHS)
    drawn: dict[str, Images] = {}
    for data, name in trainings():
        path = file_of(folder, data, name)
        with path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if path.exists():
                continue
            if time.perf_counter() - began > given.seconds:
                return
            if data not in drawn:
                drawn[data] = DATA[data](seeds, given.quick)
            start = time.perf_counter()
            networks = train(name, drawn[data], epochs, device)
            found = [counts_of(networks, drawn[data], part, device) for part in (1, 2)]
            seconds = time.perf_counter() - start
            best = _iou(found[0]).mean(2).argmax(0)
            if name == "cross-entropy":
                to = folder / "logits" / data.replace(" ", "-")
                keep_logits(networks, drawn[data], best, to)
            content = {
                "choose": found[0].astype(int).tolist(),
                "test": found[1].astype(int).tolist(),
                "seconds": round(seconds, 2),
                "device": torch.cuda.get_device_name() if device.type == "cuda" else "CPU",
            }
            unfinished = path.with_suffix(".part")
            unfinished.write_text(json.dumps(content))
            unfinished.replace(path)
            means = _iou(found[1]).mean(2)[best, np.arange(len(seeds))]
            print(f"{seconds:6.1f} s  {data}, {name}: mean IoU {means.mean():.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute's look, nothing written")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--out", type=Path, help="a folder, by default in the cache")
    given = parser.parse_args()
    folder = given.out or cache_folder() / "class_losses" / ("quick" if given.quick else "runs")
    run(given, folder)
    paths = {f"{data} | {name}": file_of(folder, data, name) for data, name in trainings()}
    missing = sum(not path.exists() for path in paths.values())
    if missing:
        print(f"{missing} of {len(paths)} trainings are missing: run it again")
        return
    runs = {key: json.loads(path.read_text()) for key, path in paths.items()}
    from experiments.no_paper._class_losses_report import write

    choices = {
        "synthetic scenes": f"{TRAIN} images of {SIZE} x {SIZE} to train, {CHOOSE} to choose the "
        f"step size, {TEST} to test, drawn anew for each seed; a class is {IMBALANCE[0]:g} to "
        f"{IMBALANCE[1]:g} times rarer than the background, {WRONG:.0%} of the shapes to train "
        "with have a wrong label, rings around shapes and some rectangles are void",
        "MSRC-21": "216 images to train and 60 to choose, drawn anew for each seed, 59 to test",
        "training": f"{EPOCHS} epochs of Adam, batches of {BATCH}, flips, cosine schedule",
        "step size": f"of {', '.join(f'{rate:g}' for rate in RATES)}, by mean IoU",
        "losses": "each class of a batch is one set; with CE: half of each unless a share of the "
        f"set loss is given; warm: cross-entropy in the first {WARM:.0%} of the steps",
        "scores": "of argmax, each class over all test images",
        "seeds": SEEDS,
    }
    write(__file__, runs, list(LOSSES), list(DATA), choices, given.quick)


if __name__ == "__main__":
    main()
