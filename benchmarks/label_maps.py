"""Label maps of 8 x 19 x 512 x 1024 logits, compared with softmax and argmax.

The goal is five times their time on the same threads. Times are processor time of one thread, with
the probabilities, the bound and all starts included.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import alternate, arguments, as_ratio, as_seconds, ratio, report

GOAL = 5.0


def scores(kind: str, size: tuple[int, int, int, int]) -> torch.Tensor:
    """Draw logits with a bias for each class: smooth over 32 pixels, or noise."""
    generator = torch.Generator().manual_seed(0)
    images, classes, height, width = size
    if kind == "noise":
        x = 2 * torch.randn(size, generator=generator)
    else:
        coarse = torch.randn(images, classes, height // 32, width // 32, generator=generator)
        x = 4 * torch.nn.functional.interpolate(coarse, size=(height, width), mode="bilinear")
        x += 0.3 * torch.randn(size, generator=generator)
    return x + torch.linspace(3, 0, classes)[None, :, None, None]


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    torch.set_num_threads(1)
    size = (2, 5, 64, 64) if args.quick else (8, 19, 512, 1024)
    head = ["scores", "loss", "sets", "setwise", "softmax + argmax", "setwise / argmax"]
    table = [[*head, "loss above the bound", "argmax above ours"]]
    data, slowest = [], 0.0
    for kind in ("smooth", "noise"):
        x = scores(kind, size)
        for loss in ("jaccard", "dice"):
            for per_image in (False, True):
                options = {"classes": "exclusive", "per_image": per_image}
                found = sw.torch.decide(x, loss, **options)
                likely = torch.softmax(x, 1)
                regret = plain_loss(likely, likely.argmax(1), loss, per_image)
                regret -= plain_loss(likely, found.labels, loss, per_image)
                seconds = alternate(
                    {
                        "setwise": lambda x=x, o=options, n=loss: sw.torch.decide(x, n, **o),
                        "argmax": lambda x=x: torch.softmax(x, 1).argmax(1),
                    },
                    repeats=3,
                    clock=time.process_time,
                )
                share = ratio(seconds["setwise"], seconds["argmax"])
                slowest = max(slowest, share["median"])
                gap = float(found.regret_bound.mean())
                both = [float(np.median(seconds[who])) for who in ("setwise", "argmax")]
                sets = "images" if per_image else "batch"
                shown = [*map(as_seconds, both), as_ratio(share), f"{gap:.4f}", f"{regret:.4f}"]
                table.append([kind, loss, sets, *shown])
                data.append({"kind": kind, "loss": loss, "sets": sets, "seconds": both, "gap": gap})
    notes = [
        f"slowest: {slowest:.2f} times, goal {GOAL:g}: {'met' if slowest <= GOAL else 'NOT met'}"
    ]
    report("label_maps", table, data, notes=notes, quick=args.quick)


def plain_loss(p: torch.Tensor, labels: torch.Tensor, loss: str, per_image: bool) -> float:
    """Return the mean loss at the expected counts."""
    chosen = torch.nn.functional.one_hot(labels, p.shape[1]).movedim(-1, 1)
    over = (2, 3) if per_image else (0, 2, 3)
    m, k, a = (t.sum(over, dtype=torch.float64) for t in (p, chosen, p * chosen))
    score = a / (m + k - a) if loss == "jaccard" else 2 * a / (m + k)
    return 1 - float(score.nan_to_num().mean())


if __name__ == "__main__":
    main()
