"""Marginals of fields on a GPU with their certificate, compared with the compiled solver.

The script prints the milliseconds of a layer's call to a relative gap of 1e-3 and of the solver
alone, the number of sweeps, and the cost per sweep. Logits are smooth fields plus noise, and all
pairs have one weight. On a small grid it checks that the bounds of device and host agree within
their gaps.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import setwise as sw
from setwise.torch._cuda._fields._grid import grid_bound

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.decide_cuda import milliseconds
from benchmarks.shared.measure import arguments, nothing_to_measure, report

TOL = 1e-3
SUBLINEAR = 5.0  # largest allowed ratio of the times for eight images and one
STEPS = ((0, 1), (1, 0))
TIMES = ("ms", "solver", "sweep")
# height, width, labels, weight, images, goal in ms
CASES = (
    (213, 320, 21, 1.0, 1, 3.0),
    (213, 320, 21, 2.0, 1, 3.0),
    (512, 512, 21, 1.0, 1, 1.5),
    (1024, 1024, 21, 1.0, 1, 5.0),
    (1024, 1024, 2, 1.0, 1, 1.0),
    (213, 320, 21, 1.0, 8, None),
    (128, 128, 2, 1.0, 1, None),
    (128, 128, 2, 1.0, 8, None),
)


def logits_of(batch: int, labels: int, height: int, width: int) -> torch.Tensor:
    """Return logits (B, L, N): a smooth field plus noise of size 1."""
    generator = torch.Generator("cuda").manual_seed(0)
    shape = (batch, labels, height, width)
    smooth = torch.randn(shape, device="cuda", generator=generator)
    for _ in range(3):
        smooth = torch.nn.functional.avg_pool2d(smooth, 9, 1, 4)
    noise = torch.randn(shape, device="cuda", generator=generator)
    return (smooth / smooth.std() * 2.5 + noise).flatten(2)


def check() -> None:
    """Check that the bounds of device and host agree within their gaps."""
    x = logits_of(2, 5, 32, 32)
    found = grid_bound(x, torch.ones(2, 2, 1024, device="cuda"), (32, 32), STEPS, TOL)
    assert found is not None, "no kernel runs here"
    edges = sw.fields.grid_edges((32, 32))
    for b in range(2):
        field = sw.fields.Field(-x[b].T.double().cpu().numpy()) + sw.fields.Potts(edges, 1.0)
        post = sw.marginals(field, "projection", tol=1e-6)
        upper, gap = found.upper[b].item(), found.gap[b].item()
        assert upper >= post.bound - 1e-9
        assert upper - gap <= post.value + 1e-9


def batches(data: list[dict]) -> list[str]:
    """Return the ratios of the times for eight images and one, where both were measured."""
    alone, notes = {}, []
    for row in data:
        number, sides = row["images"].split(" of ")
        same = (sides, *(value for key, value in row.items() if key not in ("images", *TIMES)))
        if number == "1":
            alone[same] = row
        elif row["labels"] > 2:  # otherwise the launch dominates
            times, solver = (row[key] / alone[same][key] for key in ("ms", "solver"))
            name = f"{row['method']}, {row['images']}" if "method" in row else row["images"]
            met = "met" if times <= SUBLINEAR else "NOT met"
            notes.append(f"{name}, a call: {times:.2f} times one, goal {SUBLINEAR:g}: {met}")
            notes.append(f"The solver alone: {solver:.2f} times one.")
    return notes


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    if not torch.cuda.is_available():
        nothing_to_measure("no CUDA device: nothing to measure")
    check()
    head = ["images", "labels", "weight", "ms", "goal", "met"]
    table = [[*head, "solver", "sweeps", "ms per sweep", "checks"]]
    data = []
    for height, width, labels, weight, batch, goal in CASES[-2:] if args.quick else CASES:
        x = logits_of(batch, labels, height, width)
        w = torch.full((batch, 2, height * width), weight, device="cuda")

        def solve(x=x, w=w, sides=(height, width), tol=TOL, limit=None, first=10):
            return grid_bound(x, w, sides, STEPS, tol, limit, first_check=first)

        found = solve()
        assert found is not None
        sweeps, checks = map(int, found.record.amax(0).tolist())
        layer, image = sw.torch.FieldMarginals(weight, tol=TOL), x.unflatten(2, (height, width))
        ms, solver = milliseconds(lambda x=image, layer=layer: layer(x), 9), milliseconds(solve, 9)
        few, many = (
            milliseconds(lambda k=k, solve=solve: solve(tol=0.0, limit=k, first=k), 9)
            for k in (20, 60)
        )
        each = (many - few) / 40
        met = "" if goal is None else "yes" if ms <= goal else "NO"
        shown = "" if goal is None else f"{goal:g}"
        name = f"{batch} of {height} x {width}"
        row = [name, str(labels), f"{weight:g}", f"{ms:.2f}", shown, met, f"{solver:.2f}"]
        table.append([*row, str(sweeps), f"{each:.3f}", str(checks)])
        times = {"ms": ms, "solver": solver, "sweep": each}
        data.append({"images": name, "labels": labels, "weight": weight, **times})
    device = torch.cuda.get_device_name()
    report(
        "field_layers_cuda",
        table,
        data,
        notes=[f"{device}; pairs of four neighbours, relative gap {TOL:g}.", *batches(data)],
        measured=f"Medians of nine calls, {device}",
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
