"""B_D, one value and gradient: the first loss of its paper and Dice, 10 to a million elements.

The paper reports 0.002, 0.018 and 0.060 s for 10, 50 and 100 elements. Targets: below 0.0001 s at
100 elements and growth no worse than p log p. The surrogate caches its decompositions, as in
learning, so times are those of warm calls; the first call, which decomposes, is listed too.
"""

from __future__ import annotations

import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared import definitions
from benchmarks.shared.measure import (
    RESULTS,
    alternate,
    arguments,
    as_ratio,
    as_seconds,
    how_many,
    in_turn,
    ratio,
    report,
    require_close,
)

SIZES = [10, 50, 100, 10**3, 10**4, 10**5, 10**6]
PAPER = {10: 0.002, 50: 0.018, 100: 0.060}
Definition = Callable[[np.ndarray, np.ndarray], definitions.Answer]
LOSSES: dict[str, tuple[Callable[[], sw.losses.Loss], Definition]] = {
    "face track 1": (lambda: sw.losses.FaceTrack(1), definitions.decomposed_hinge_face_track),
    "Dice": (sw.losses.Dice, definitions.decomposed_hinge_dice),
}
TARGET_SECONDS = 1e-4


def measure(name: str, p: int, repeats: int) -> dict[str, object]:
    """Return the times of one size, after comparing the answer with the definition."""
    loss, definition = LOSSES[name]
    rng = np.random.default_rng(p)
    inputs = [(rng.random(p) < 0.3, rng.standard_normal(p)) for _ in range(how_many(p))]
    y, scores = inputs[0]
    surrogate = sw.surrogates.DecomposedHinge(loss())  # a new loss, for which nothing is cached yet
    first = timeit.timeit(lambda: surrogate.value_and_gradient(y, scores), number=1)
    value, gradient = surrogate.value_and_gradient(y, scores)
    expected, expected_gradient = definition(y, scores)
    require_close(f"value of {name} at {p}", value, expected, 1e-9)
    # Two sets may have equal maxima up to the last digit, so one element may differ.
    require_close(f"gradient of {name} at {p}", gradient, expected_gradient, 1e-9 + 10 / p**1.5)
    seconds = alternate(
        {
            "setwise": in_turn(surrogate.value_and_gradient, inputs),
            "numpy": in_turn(definition, inputs),
        },
        repeats=repeats,
        clock=time.process_time,
    )
    warm = float(np.median(seconds["setwise"]))
    return {
        "loss": name,
        "p": p,
        "seconds": warm,
        "fastest": float(seconds["setwise"].min()),
        "first_call": first,
        "paper_seconds": PAPER.get(p),
        "numpy / setwise": ratio(seconds["numpy"], seconds["setwise"]),
        "seconds / (p log2 p)": warm / (p * np.log2(p)),
    }


def exponent(rows: list[dict], least: int) -> float:
    """Return the slope of log time against log(p log p) from p = least on."""
    big = [row for row in rows if row["p"] >= least]
    work = np.log([row["p"] * np.log2(row["p"]) for row in big])
    return float(np.polyfit(work, np.log([row["seconds"] for row in big]), 1)[0])


def draw(data: list[dict]) -> None:
    """Plot time against p, with a line p log p through 10,000.

    For small p the overhead of the call dominates.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for k, name in enumerate(LOSSES):
        rows = [row for row in data if row["loss"] == name]
        p = np.array([row["p"] for row in rows])
        axes.loglog(p, [row["seconds"] for row in rows], "o-", color=f"C{k}", label=name)
    unit = max(row["seconds / (p log2 p)"] for row in data if row["p"] == 10**4)
    line = np.array([10**3, 10**6])
    axes.loglog(line, unit * line * np.log2(line), "k:", label="p log p")
    axes.loglog(list(PAPER), list(PAPER.values()), "x-", color="0.4", label="reported in the paper")
    axes.set(xlabel="elements p", ylabel="seconds", title="B_D, one value and gradient, one thread")
    axes.grid(which="major", alpha=0.3)
    axes.legend()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "decomposed_hinge.png", dpi=150, metadata={"Software": None})


def main() -> None:
    args = arguments(__doc__)
    head = ["loss", "p", "setwise", "first call", "paper", "NumPy / setwise"]
    table = [[*head, "relative to p log p"]]
    data, notes = [], []
    for name in LOSSES:
        rows = [measure(name, p, repeats=5 if args.quick else 41) for p in SIZES]
        unit = next(row["seconds / (p log2 p)"] for row in rows if row["p"] == 1000)
        table += [
            [
                name,
                f"{row['p']:,}",
                as_seconds(row["seconds"]),
                as_seconds(row["first_call"]),
                as_seconds(row["paper_seconds"]) if row["paper_seconds"] else "",
                as_ratio(row["numpy / setwise"]),
                f"{row['seconds / (p log2 p)'] / unit:.2f}",
            ]
            for row in rows
        ]
        data += rows
        at_100 = next(row["seconds"] for row in rows if row["p"] == 100)
        power, above = exponent(rows, 1000), exponent(rows, 10_000)
        notes += [
            f"{name}, p = 100: {as_seconds(at_100)} against a target of "
            f"{as_seconds(TARGET_SECONDS)}: {'met' if at_100 < TARGET_SECONDS else 'NOT met'}",
            f"{name}, 1,000 to 1,000,000: time grows as (p log p) to the power {power:.2f} (from "
            f"10,000, where the call weighs little: {above:.2f}) against a target of 1: "
            f"{'met' if power <= 1 else 'NOT met'}",
        ]
    notes.append(
        "Processor time of one thread. Relative to p log p: time / (p log2 p), over the same at "
        "p = 1,000."
    )
    report("decomposed_hinge", table, data, notes=notes, quick=args.quick)
    if not args.quick:
        draw(data)


if __name__ == "__main__":
    main()
