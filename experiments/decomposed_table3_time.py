"""Table 3 of the B_D paper: the time of one loss-augmented inference, with Δ1.

That is one value and one subgradient for one bag of p elements. The paper's program is Matlab on an
unnamed machine, and evaluates the loss O(p) times at O(p) each; here both surrogates are one sort
and one scan, compiled. Cutting planes ask for all bags in one call, so that is shown as well.
"""

from __future__ import annotations

import timeit

import numpy as np
from _bags import GreedySlack
from _report import Estimate, Table, arguments, estimate, progress, report

import setwise as sw

SIZES = (10, 50, 100)
BATCH = 1000
LOSS = sw.losses.FaceTrack(1)
SURROGATES = {
    "B_D": sw.surrogates.DecomposedHinge(LOSS),
    "S, exact": sw.surrogates.SlackRescaling(LOSS),
    "S, greedy (library)": sw.surrogates.SlackRescaling(LOSS, maximizer="greedy"),
    "S, greedy (these scripts)": GreedySlack(LOSS),
}
PAPER = {
    "B_D": {10: Estimate(0.002, 0.000), 50: Estimate(0.018, 0.003), 100: Estimate(0.060, 0.008)},
    "S, greedy (library)": {
        10: Estimate(0.002, 0.000),
        50: Estimate(0.016, 0.002),
        100: Estimate(0.057, 0.002),
    },
}


def seconds(surrogate: object, p: int, bags: int, repeats: int, seed: int) -> np.ndarray:
    """Seconds a bag, one figure a repeat: each on other labels and scores."""
    rng = np.random.default_rng([seed, p])
    offsets = np.arange(bags + 1) * p
    times = np.empty(repeats)
    for k in range(repeats + 1):
        y, scores = rng.random(bags * p) < 0.5, rng.standard_normal(bags * p)
        calls = max(1, 20 // bags)
        total = timeit.timeit(
            lambda y=y, scores=scores: surrogate.value_and_gradient(y, scores, offsets=offsets),
            number=calls,
        )
        if k > 0:  # the first makes the tables that later ones use
            times[k - 1] = total / calls / bags
    return times


def show(of: Estimate) -> str:
    """Microseconds with their standard error."""
    return f"{1e6 * of.mean:.2f} ± {1e6 * (of.error or 0):.2f}"


def main() -> None:
    args = arguments(__doc__, repeats=200, quick_repeats=20)
    head = ["inference"]
    for p in SIZES:
        head += [f"p = {p}, paper (s)", "ours, one bag (µs)", f"ours, of {BATCH} bags (µs)"]
    table = Table("Table 3: time of one loss-augmented inference", head)
    data: dict[str, dict[str, object]] = {}
    for name, surrogate in progress(list(SURROGATES.items()), "surrogates"):
        row, data[name] = [name], {}
        for p in SIZES:
            one = estimate(seconds(surrogate, p, 1, args.repeats, args.seed))
            # The library's search in Python takes half a second for a batch of the largest bags.
            few = max(2, args.repeats // 40)
            batch = estimate(seconds(surrogate, p, BATCH, few, args.seed))
            paper = PAPER.get(name, {}).get(p)
            row += ["–" if paper is None else paper.show(), show(one), show(batch)]
            data[name][str(p)] = {"one bag": one, "of a batch": batch}
        table.rows.append(row)
    ratio = PAPER["B_D"][100].mean / data["B_D"]["100"]["one bag"].mean
    report(
        "decomposed_table3_time",
        "B_D, Table 3: time of one loss-augmented inference",
        [table],
        choices={
            "loss": "Δ1, as in the paper",
            "input": "labels positive with probability 1/2, standard normal scores",
            "repeats": f"{args.repeats}, each with its own input and 20 calls in a row; batches "
            f"{max(2, args.repeats // 40)}; seed {args.seed}; one thread",
            "decomposition": "made before the clock starts, as in learning",
        },
        data=data,
        notes=[
            f"At p = 100 one call of B_D takes {ratio:,.0f} times less than the paper reports, on "
            "another machine and in another language.",
            "In one call most of the time is Python around the kernel; in a batch it is the kernel.",
        ],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
