"""Training and evaluation on the horses of networks with fields, and the cost of a step."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from experiments.no_paper._field_models import Last, Model, jaccard, measure, nll
from experiments.no_paper.unet_losses import BATCH, RATES, VALIDATION, read
from experiments.shared.cache import cache_folder

STEPS = 600
OF_WEIGHT = 10.0  # step size of the field's weight, relative to the network's
SHIFT = 16
WEIGHTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)
TIMED = 30  # the number of timed steps, after as many untimed ones

ROWS = {  # each reported row: how the network was trained, and the field added after it
    "U-Net alone": ("cross-entropy", None),
    "U-Net, field behind it": ("cross-entropy", "field"),
    "U-Net, mean field behind it": ("cross-entropy", "mean field"),
    "field, likelihood": ("field, likelihood", None),
    "field, hinge": ("field, hinge", None),
    "mean field, likelihood": ("mean field, likelihood", None),
    "U-Net alone, Jaccard metric": ("Jaccard metric", None),
    "field, marginals into the Jaccard metric": ("field, marginals into the Jaccard metric", None),
    "mean field, into the Jaccard metric": ("mean field, into the Jaccard metric", None),
}


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@cache
def data(size: int) -> tuple[Tensor, Tensor]:
    """Return images and masks, on the device."""
    images, truths = read(size)
    return images.to(device()), truths.to(device())


def kept(name: str, make: Callable[[], dict]) -> dict:
    """Return stored figures, or make and store them. The file never exists in part."""
    path = cache_folder() / "field_layers" / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(make()))
        part.rename(path)
    return json.loads(path.read_text())


def train(
    model: Model, x: Tensor, y: Tensor, steps: int, rate: float, seed: int, until: int | None = None
) -> list[float]:
    """Train by Adam with a falling step size, flips and shifts; return step times in ms."""
    generator = torch.Generator().manual_seed(seed)
    own = [p for name, p in model.named_parameters() if name.endswith("raw_weight")]
    groups = [{"params": model.net.parameters()}, {"params": own, "lr": OF_WEIGHT * rate}]
    optimizer = torch.optim.Adam(groups if own else groups[:1], lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    spent = []
    for _ in range(steps if until is None else until):
        start = time.perf_counter()
        chosen = torch.randperm(len(x), generator=generator)[:BATCH].to(x.device)
        images, truths = x[chosen], y[chosen]
        if torch.rand((), generator=generator) < 0.5:
            images, truths = images.flip(3), truths.flip(3)
        shift = torch.randint(-SHIFT, SHIFT + 1, (2,), generator=generator).tolist()
        images, truths = images.roll(shift, (2, 3)), truths.roll(shift, (2, 3))
        optimizer.zero_grad()
        model.loss(images, truths).backward()
        optimizer.step()
        schedule.step()
        if until is not None and x.is_cuda:
            torch.cuda.synchronize()
        spent.append(1e3 * (time.perf_counter() - start))
    return spent


def best_temperature(last: Last, logits: Tensor, x: Tensor, y: Tensor) -> float:
    """Return the best temperature of network and field together, by held-out likelihood."""
    scores = {}
    for temperature in TEMPERATURES:
        p = Last(last.kind, last.weight, temperature)(logits, x)
        scores[temperature] = nll(p, y)
    return min(scores, key=lambda temperature: scores[temperature])


def test_figures(last: Last, held: tuple[Tensor, ...], test: tuple[Tensor, ...]) -> dict:
    """Return test figures of a last layer on logits, images and masks.

    The temperature is chosen on the held-out images.
    """
    logits, x, y = held
    score = jaccard(last(logits, x), y)
    temperature = best_temperature(last, logits, x, y)
    calm = Last(last.kind, last.weight, temperature)
    logits, x, y = test
    found = measure(last(logits, x), calm(logits, x), y)
    return found | {"held": score, "weight": last.weight, "temperature": temperature}


Case = tuple[int, float, str, int, int]


def one_run(case: Case) -> dict:
    """Train a network once, and return the test figures of each of its rows."""
    seed, rate, name, steps, size = case

    def make() -> dict:
        images, truths = data(size)
        order = torch.randperm(30, generator=torch.Generator().manual_seed(seed)).to(device())
        held, rest = order[:VALIDATION], order[VALIDATION:]
        torch.manual_seed(seed)
        model = Model(name).to(device())
        train(model, images[::2][rest], truths[::2][rest], steps, rate, seed)
        with torch.no_grad():
            parts = [(images[::2][held], truths[::2][held]), (images[1::2], truths[1::2])]
            on_held, on_test = ((model.logits(x), x, y) for x, y in parts)
        found = {}
        for row, (trained, behind) in ROWS.items():
            if trained != name:
                continue
            last = model.last
            if behind is not None:
                logits, x, y = on_held
                tried = [Last(behind, weight) for weight in WEIGHTS]
                last = max(tried, key=lambda one: jaccard(one(logits, x), y))
            found[row] = test_figures(last, on_held, on_test) | {"rate": rate}
        return found

    return kept(f"{size}-{steps}-{rate:g}-{seed}-{name}", make)


def cost(name: str, size: int, timed: int) -> dict:
    """Return milliseconds per step and per answer for one batch, in this process, and MiB used."""

    def make() -> dict:
        images, truths = data(size)
        torch.manual_seed(0)
        model = Model(name).to(device())
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        steps = train(model, images[::2], truths[::2], STEPS, RATES[0], 0, 2 * timed)
        memory = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0
        found: dict[str, Any] = {"step": _median(steps[timed:]), "MiB": memory, "answer": {}}
        found["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
        for row, (trained, behind) in ROWS.items():
            if trained == name:
                last = model.last if behind is None else Last(behind, 1.0)
                found["answer"][row] = _answer(model, last, images[1::2][:BATCH])
        return found

    return kept(f"cost-{size}-{timed}-{name}", make)


@torch.no_grad()
def _answer(model: Model, last: Last, x: Tensor) -> float:
    spent = []
    for _ in range(20):
        start = time.perf_counter()
        last(model.logits(x), x)
        if x.is_cuda:
            torch.cuda.synchronize()
        spent.append(1e3 * (time.perf_counter() - start))
    return _median(spent[5:])


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
