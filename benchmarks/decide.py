"""The set of least expected Dice or Jaccard loss, against rankseg: time and regret.

rankseg approximates the expectation. The regret is the expected loss of its mask minus that of our
answer; the first is computed by quadrature in this script. Goals: 0.1 s for a million probabilities
without sorting, and no regret. Thresholds at 1/2, the simplest alternative, are listed too.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rankseg import RankSEG

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import alternate, arguments, as_ratio, as_seconds, ratio, report

torch.set_num_threads(1)
METRICS = {"dice": "dice", "jaccard": "IoU"}


def expected_loss(p: np.ndarray, mask: np.ndarray, loss: str) -> float:
    """Return the expected loss of any mask.

    It uses 1 / x = int exp(-x u) du and the trapezoid rule in log u.
    """
    if not mask.any():
        return float(-np.expm1(np.log1p(-p).sum()))
    k, inside, outside = np.count_nonzero(mask), p[mask], p[~mask]
    step, score = 0.25, 0.0
    for v in np.arange(np.log(1e-13 / len(p)), np.log(45.0), step):
        u = np.exp(v)
        power = np.exp(-u)
        if loss == "jaccard":
            logs = np.log((1 - outside) + outside * power).sum() - k * u
            score += step * u * inside.sum() * np.exp(logs)
        else:
            logs = np.log((1 - p) + p * power).sum() - k * u
            odds = (inside * power / ((1 - inside) + inside * power)).sum()
            score += 2 * step * u * odds * np.exp(logs)
    return 1.0 - score


def draws(n: int, kind: str, seed: int) -> np.ndarray:
    """Draw probabilities: uniform, with few positives, or as sharp as a trained network's."""
    rng = np.random.default_rng(seed)
    if kind == "spread":
        return rng.random(n)
    if kind == "rare":
        return rng.beta(0.3, 3.0, n)
    return 1 / (1 + np.exp(-4 * rng.standard_normal(n) + 2))


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    sizes = (20, 1000) if args.quick else (20, 100, 1000, 10_000, 100_000, 1_000_000)
    head = ["n", "probabilities", "loss", "setwise", "rankseg", "rankseg / setwise"]
    table = [[*head, "rankseg loses (at most)", "threshold 1/2 loses (at most)"]]
    data = []
    slowest = 0.0
    for n in sizes:
        trials = 3 if args.quick else {20: 200, 100: 60, 1000: 20, 10_000: 3}.get(n, 1)
        for kind in ("spread", "rare", "sharp"):
            for loss, metric in METRICS.items():
                peer = RankSEG(metric=metric, solver="RMA", output_mode="multilabel")
                sets = [draws(n, kind, seed) for seed in range(trials)]
                tensors = [torch.tensor(p, dtype=torch.float32).view(1, 1, 1, -1) for p in sets]
                lost: dict[str, list[float]] = {"rankseg": [], "threshold": []}
                for p, tensor in zip(sets, tensors, strict=True):
                    best = sw.decide(p, loss).expected
                    masks = {
                        "rankseg": peer.predict(tensor).numpy().reshape(-1).astype(bool),
                        "threshold": p > 0.5,
                    }
                    for who, mask in masks.items():
                        regret = expected_loss(p, mask, loss) - best
                        if regret < -1e-9:
                            sys.exit(f"{who} has a better set than ours, by {-regret:.1e}")
                        lost[who].append(max(regret, 0.0))
                seconds = alternate(
                    {
                        "setwise": partial(sw.decide, sets[0], loss, n_jobs=1),
                        "rankseg": partial(peer.predict, tensors[0]),
                    },
                    repeats=3 if args.quick else 7,
                    clock=time.process_time,
                )
                both = [float(np.median(seconds[who])) for who in ("setwise", "rankseg")]
                shown = [
                    f"{np.mean(lost[who]):.2g} ({np.max(lost[who]):.2g})"
                    for who in ("rankseg", "threshold")
                ]
                if n == max(sizes):
                    slowest = max(slowest, both[0])
                share = as_ratio(ratio(seconds["rankseg"], seconds["setwise"]))
                table.append([f"{n:,}", kind, loss, *map(as_seconds, both), share, *shown])
                data.append({"n": n, "kind": kind, "loss": loss, "seconds": both, "regret": lost})
    notes = [
        f"slowest at {max(sizes):,}, sorting included: {as_seconds(slowest)}, goal 0.1 s: "
        + ("met" if slowest <= 0.1 else "NOT met"),
        "Processor time of one thread; rankseg by its solver RMA, with its defaults.",
    ]
    report("decide", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
