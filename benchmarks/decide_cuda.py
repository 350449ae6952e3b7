"""Masks of least expected loss on a GPU: from logits to masks, compared with sorting alone.

Times are milliseconds for 8 x 19 x 512 x 1024 scores, with sets by image and class and by class;
the goal is 20 ms. The answers for one class are compared with those of the host.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, nothing_to_measure, report, require_close

GOAL = 20.0


def milliseconds(call, repeats: int) -> float:
    """Return the median time of a call on the device."""
    call()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return float(np.median(times))


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    if not torch.cuda.is_available():
        nothing_to_measure("no CUDA device: nothing to measure")
    shape = (2, 5, 64, 64) if args.quick else (8, 19, 512, 1024)
    generator = torch.Generator("cuda").manual_seed(0)
    logits = torch.randn(shape, generator=generator, device="cuda") * 2
    smooth = torch.nn.functional.avg_pool2d(logits, 9, 1, 4) * 12 - 1.5
    inputs = {"smooth": smooth, "noise": logits}
    table = [["scores", "loss", "sets", "ms", "of which sorting", "goal", "met"]]
    data = []
    for kind, x in inputs.items():
        for loss in ("jaccard", "dice"):
            for name, sets in (
                ("image and class", {"per_image": True, "per_class": True}),
                ("class", {"per_class": True}),
            ):
                options = {"activation": "softmax", **sets}
                found = sw.torch.decide(x, loss, **options)
                p = torch.softmax(x, 1)
                one = (p[0, 0] if sets.get("per_image") else p[:, 0]).double().cpu().numpy()
                value = found.expected.flatten()[0].item()
                require_close(f"{kind}, {loss}", value, sw.decide(one.ravel(), loss).expected, 1e-6)
                ms = milliseconds(
                    lambda x=x, o=options, loss=loss: sw.torch.decide(x, loss, **o), 9
                )
                rows = p.flatten(0, 1).flatten(1) if sets.get("per_image") else p.transpose(0, 1)
                rows = rows.reshape(rows.shape[0], -1).contiguous()
                alone = milliseconds(lambda rows=rows: torch.sort(rows, 1, descending=True), 9)
                met = "yes" if ms <= GOAL else "NO"
                table.append([kind, loss, name, f"{ms:.2f}", f"{alone:.2f}", f"{GOAL:g}", met])
                data.append({"scores": kind, "loss": loss, "sets": name, "ms": ms, "sort": alone})
    device = torch.cuda.get_device_name()
    report(
        "decide_cuda",
        table,
        data,
        notes=[f"{device}, {shape}, softmax and checks included."],
        measured=f"Medians of nine calls, {device}",
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
