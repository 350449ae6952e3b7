"""Table 3 of the B_D paper: the time of one loss-augmented inference, with Δ1.

One inference is one value and one subgradient for one bag of p elements. The paper's program is
written in Matlab, was run on an unnamed machine, and evaluates the loss O(p) times at O(p) each.
Here each surrogate takes one compiled sort and scan. Cutting planes pass all bags in one call, so
that time is shown as well.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from time import process_time
from timeit import timeit

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.report import Estimate, Table, arguments, estimate, progress, report

SIZES = (10, 50, 100)
BATCH, CALLS = 1000, 20
LOSS = sw.losses.FaceTrack(1)
SURROGATES = {
    "B_D": sw.surrogates.DecomposedHinge(LOSS),
    "S, exact": sw.surrogates.SlackRescaling(LOSS),
    "S, greedy": sw.surrogates.SlackRescaling(LOSS, maximizer="greedy"),
}
PAPER = {
    "B_D": {10: Estimate(0.002, 0.000), 50: Estimate(0.018, 0.003), 100: Estimate(0.060, 0.008)},
    "S, greedy": {
        10: Estimate(0.002, 0.000),
        50: Estimate(0.016, 0.002),
        100: Estimate(0.057, 0.002),
    },
}


def seconds(surrogate: sw.surrogates.Surrogate, shape: tuple[int, ...], repeats: int) -> Estimate:
    """Return seconds per bag, over repeats with labels and scores of their own."""
    rng = np.random.default_rng(shape)
    bags = shape[0] if len(shape) == 2 else 1
    calls = max(1, CALLS // bags)
    times = []
    for _ in range(repeats + 1):
        y, scores = rng.random(shape) < 0.5, rng.standard_normal(shape)
        call = partial(surrogate.value_and_gradient, y, scores)
        times.append(timeit(call, timer=process_time, number=calls) / calls / bags)
    return estimate(times[1:])  # the first call builds the tables that later calls reuse


def show(of: Estimate) -> str:
    """Return the estimate in microseconds."""
    return f"{1e6 * of.mean:.2f} ± {1e6 * (of.error or 0):.2f} µs"


def main() -> None:
    args = arguments(__doc__, repeats=200, quick_repeats=20)
    batches = max(2, args.repeats // 20)
    head = ["inference"]
    for p in SIZES:
        head += [f"p = {p}, paper", f"p = {p}, ours"]
    table = Table("Table 3: one bag in a call", head)
    in_batch = Table(f"A bag among {BATCH} in a call", ["inference", *(f"p = {p}" for p in SIZES)])
    data: dict[str, dict[str, Estimate]] = {}
    for name, surrogate in progress(list(SURROGATES.items()), "surrogates"):
        one = {p: seconds(surrogate, (p,), args.repeats) for p in SIZES}
        many = {p: seconds(surrogate, (BATCH, p), batches) for p in SIZES}
        row = [name]
        for p in SIZES:
            paper = PAPER.get(name, {}).get(p)
            row += ["–" if paper is None else f"{paper.show()} s", show(one[p])]
        table.rows.append(row)
        in_batch.rows.append([name, *(show(many[p]) for p in SIZES)])
        data[name] = {f"{p}, one": one[p] for p in SIZES} | {f"{p}, batch": many[p] for p in SIZES}
    ratio = PAPER["B_D"][100].mean / data["B_D"]["100, one"].mean
    report(
        __file__,
        "B_D, Table 3: time of one loss-augmented inference",
        [table, in_batch],
        choices={
            "loss": "Δ1, as in the paper",
            "input": "labels positive with probability 1/2, standard normal scores",
            "repeats": f"{args.repeats} of {CALLS} calls for one bag, {batches} calls for a batch, "
            "each repeat with an input of its own; processor time, one thread",
            "decomposition": "made before the clock starts, as in learning",
        },
        data=data,
        notes=[
            f"At p = 100 one call of B_D takes {ratio:,.0f} times less than the paper reports, on "
            "another machine and in another language.",
            "With one bag in a call most of the time is Python around the kernel.",
        ],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
