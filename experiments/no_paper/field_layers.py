"""What a field as the last layer adds to a U-Net on the Weizmann horses, on a GPU.

    python experiments/no_paper/field_layers.py [--quick] [--jobs 1]

Needs weizmann_horses/ (60 photographs with masks): every other one to train and to choose settings,
the rest to test. The same backbone and the same budget (steps, and seconds where a layer is slow)
for: the network alone, a field put behind it, a field trained with it by its likelihood, by the
structured hinge, and through its marginals into a set loss, and a plain mean-field layer
(CRF-RNN's update) with the same pairs. Runs on the CPU where there is no GPU, slowly. What is done
is kept in the cache and not done again.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.no_paper.unet_horses import UNet
from experiments.no_paper.unet_losses import BATCH, VALIDATION, read
from experiments.shared.cache import cache_folder
from experiments.shared.report import Table, arguments, estimate, parallel, report

SIZE = 128
SECONDS = 40.0
RATE = 3e-3
WEIGHTS = (0.25, 0.5, 1.0, 2.0)
MEAN_FIELD_PASSES = 5
NEAR = 3  # pixels from the truth's boundary
BINS = 15

t = sw.torch


class MeanField(nn.Module):
    """A fixed number of parallel mean-field updates with pairs weighted by contrast (CRF-RNN)."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.raw_weight = nn.Parameter(torch.tensor(weight).expm1().log())

    def forward(self, logits: Tensor, image: Tensor) -> Tensor:
        """Probabilities (B, L, H, W)."""
        weight = functional.softplus(self.raw_weight)
        right, down = (contrast(image, axis) for axis in (3, 2))
        q = logits.softmax(1)
        for _ in range(MEAN_FIELD_PASSES):
            votes = torch.zeros_like(q)
            for w, axis in ((right, 3), (down, 2)):
                length = q.shape[axis]
                first, second = q.narrow(axis, 0, length - 1), q.narrow(axis, 1, length - 1)
                pad = (0, 1) if axis == 3 else (0, 0, 0, 1)
                back = (1, 0) if axis == 3 else (0, 0, 1, 0)
                votes = votes + functional.pad(w * second, pad) + functional.pad(w * first, back)
            q = (logits + weight * votes).softmax(1)
        return q


def contrast(image: Tensor, axis: int) -> Tensor:
    """(B, 1, ...): exp(-beta |difference|^2) of neighbours along an axis."""
    change = image.diff(dim=axis).square().sum(1, keepdim=True)
    both = [image.diff(dim=a).square().sum(1).flatten(1) for a in (2, 3)]
    mean = torch.cat(both, 1).mean(1).view(-1, 1, 1, 1).clamp(min=1e-12)
    return torch.exp(-change / (2 * mean))


class Model(nn.Module):
    """The backbone, what is behind it, and the loss that both are trained with."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.net = name, UNet(24)
        self.weight = 0.0
        if name == "field, likelihood":
            self.head: nn.Module | None = t.FieldLikelihoodLoss(0.5, learn=True)
        elif name == "field, hinge":
            self.head = t.FieldHingeLoss(0.5, learn=True)
        elif name == "field, Lovász-softmax of marginals":
            self.head = t.FieldMarginals(0.5, learn=True)
        elif name == "mean field, likelihood":
            self.head = MeanField(0.5)
        else:
            self.head = None

    def logits(self, x: Tensor) -> Tensor:
        """(B, 2, H, W): the background has a logit of 0."""
        horse = self.net(x)
        return torch.cat([torch.zeros_like(horse), horse], 1)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        logits, truth = self.logits(x), y[:, 0].long()
        if isinstance(self.head, t.FieldMarginals):
            p = self.head(logits, image=x)
            return t.lovasz_softmax(p, truth, per_image=True, from_logits=False)
        if isinstance(self.head, MeanField):
            p = self.head(logits, x).clamp(min=1e-7)
            return functional.nll_loss(p.log(), truth)
        if self.head is None:
            return functional.cross_entropy(logits, truth)
        return self.head(logits, truth, image=x)

    @torch.no_grad()
    def probabilities(self, x: Tensor) -> Tensor:
        """(B, 1, H, W): of the horse."""
        logits = self.logits(x)
        if isinstance(self.head, MeanField):
            return self.head(logits, x)[:, 1:]
        weight = self.weight if self.head is None else self.head.weight.item()
        return t.FieldMarginals(weight)(logits, image=x)[:, 1:]


NAMES = (
    "U-Net alone",
    "U-Net, field behind it",
    "field, likelihood",
    "field, hinge",
    "field, Lovász-softmax of marginals",
    "mean field, likelihood",
)


def train(model: Model, x: Tensor, y: Tensor, steps: int, seed: int) -> tuple[int, float]:
    """Adam with a step size that falls to zero; steps made, milliseconds a step."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    start = time.perf_counter()
    for step in range(steps):
        spent = time.perf_counter() - start
        if spent > SECONDS:
            steps = step
            break
        done = max(step / steps, spent / SECONDS)
        for group in optimizer.param_groups:
            group["lr"] = RATE * 0.5 * (1 + torch.cos(torch.tensor(done * torch.pi)).item())
        chosen = torch.randperm(len(x), generator=generator)[:BATCH].to(x.device)
        images, truths = x[chosen], y[chosen]
        if torch.rand((), generator=generator) < 0.5:
            images, truths = images.flip(3), truths.flip(3)
        optimizer.zero_grad()
        model.loss(images, truths).backward()
        optimizer.step()
    if x.is_cuda:
        torch.cuda.synchronize()
    return steps, 1e3 * (time.perf_counter() - start) / max(steps, 1)


@torch.no_grad()
def measure(p: Tensor, y: Tensor) -> dict[str, float]:
    """Jaccard and Dice (also decided), accuracy near boundaries, expected calibration error."""
    found = {}
    for loss in ("jaccard", "dice"):
        score = t.SetScore(loss, n_classes=1, kind="masks", per_image=True).to(p.device)
        found[loss] = score(p > 0.5, y).item()
        decided = t.decide(p.contiguous(), loss, activation="none", per_image=True).mask
        found[f"{loss}, decided"] = score(decided, y).item()
    size = 2 * NEAR + 1
    grown = functional.max_pool2d(y, size, 1, NEAR)
    shrunk = -functional.max_pool2d(-y, size, 1, NEAR)
    near = grown != shrunk
    found["boundary"] = ((p > 0.5) == (y > 0))[near].float().mean().item()
    sure, right = torch.maximum(p, 1 - p), ((p > 0.5) == (y > 0)).float()
    bins = ((sure - 0.5) * 2 * BINS).long().clamp(max=BINS - 1).flatten()
    sums = torch.zeros(BINS, device=p.device).scatter_add_(0, bins, (sure - right).flatten())
    found["calibration"] = (sums.abs().sum() / bins.numel()).item()
    return found


Case = tuple[str, int, int, int]


def one_run(case: Case) -> dict:
    """The test figures of a model and a seed."""
    name, seed, steps, size = case
    kept_at = cache_folder() / "field_layers" / f"{size}-{steps}-{seed}-{name}.json"
    if kept_at.exists():
        return json.loads(kept_at.read_text())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images, truths = (part.to(device) for part in read(size))
    order = torch.randperm(30, generator=torch.Generator().manual_seed(seed)).to(device)
    held, kept = order[:VALIDATION], order[VALIDATION:]
    torch.manual_seed(seed)
    model = Model(name).to(device)
    made, milliseconds = train(model, images[::2][kept], truths[::2][kept], steps, seed)
    if name == "U-Net, field behind it":
        scores = {}
        for model.weight in WEIGHTS:
            p = model.probabilities(images[::2][held])
            scores[model.weight] = measure(p, truths[::2][held])["jaccard"]
        model.weight = max(scores, key=lambda weight: scores[weight])
    found = measure(model.probabilities(images[1::2]), truths[1::2])
    weight = model.weight
    if isinstance(model.head, MeanField):
        weight = functional.softplus(model.head.raw_weight).item()
    elif model.head is not None:
        weight = model.head.weight.item()
    found |= {"steps": made, "milliseconds": milliseconds, "weight": weight}
    kept_at.parent.mkdir(parents=True, exist_ok=True)
    kept_at.write_text(json.dumps(found))
    return found


COLUMNS = {
    "jaccard": "Jaccard",
    "dice": "Dice",
    "jaccard, decided": "Jaccard, decided",
    "boundary": "accuracy near the boundary",
    "calibration": "calibration error",
    "weight": "weight of pairs",
    "milliseconds": "ms a step",
}


def main() -> None:
    given = arguments(__doc__, repeats=5)
    steps, size = (6, 32) if given.quick else (600, SIZE)
    seeds = [given.seed + k for k in range(given.repeats)]
    cases = [(name, seed, steps, size) for name in NAMES for seed in seeds]
    runs = {case[:2]: run for case, run in parallel(one_run, cases, "runs", given.jobs)}
    table = Table(
        f"30 test images of {size} x {size}, mean ± standard error over {given.repeats} seeds",
        ["model", *COLUMNS.values()],
    )
    data = {}
    for name in NAMES:
        of_name = [runs[name, seed] for seed in seeds]
        columns = {key: estimate(run[key] for run in of_name) for key in COLUMNS}
        table.rows.append([name, *(column.show() for column in columns.values())])
        data[name] = {**columns, "runs": of_name}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    choices = {
        "data": f"60 Weizmann horses at {size} x {size}; of every other image {30 - VALIDATION} to "
        f"train and {VALIDATION} to choose the weight of the field behind it, the other 30 "
        "to test",
        "seeds": seeds,
        "network": "U-Net of three scales, 24 to 96 channels, group normalisation, from the start",
        "training": f"{steps} steps of Adam at {RATE:g}, or {SECONDS:g} s where that is less; "
        f"batches of {BATCH}, flips, cosine schedule",
        "field": "four neighbours, weights times the image's contrast; the marginals are those "
        "of projection",
        "mean field": f"{MEAN_FIELD_PASSES} parallel passes over the same pairs, trained by the "
        "likelihood of its marginals",
        "decided": "sw.torch.decide on the probabilities, for Jaccard; else above 1/2",
        "device": device,
    }
    report(
        __file__,
        "A field as the last layer of a U-Net on the Weizmann horses",
        [table],
        choices=choices,
        data=data,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
