"""The time of a diverse list compared with that of the single best labelling.

Six alternatives by Hamming balls on a synthetic scene of 320 x 213 pixels and two labels: CPU
seconds of one thread divided by those of ``solve_map`` on the same field, target 10, with the
largest gap of a step in units of the ball's weight; small balls under strong smoothing by branches
too. Fifteen alternatives by label costs of 500 superpixels and 21 labels, every step with its
bound: target 1 second. Then the growth with the number of items and of pixels.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.fields import fresh, scene, superpixels
from benchmarks.shared.measure import RESULTS, arguments, as_ratio, as_seconds, ratio, report

BALLS = ((2.0, 0.05), (20.0, 0.01), (200.0, 0.001), (2000.0, 0.0003))


def seconds_of_map(field: sw.fields.Field) -> float:
    field = fresh(field)
    start = process_time()
    sw.solve_map(field, n_jobs=1)
    return process_time() - start


def seconds_of_list(
    field: sw.fields.Field, m: int, diversity: sw.diversities.Diversity, method: str = "auto"
) -> tuple[float, sw.inference.DiverseResult]:
    field = fresh(field)
    start = process_time()
    found = sw.diverse(field, m, diversity, method=method, n_jobs=1)
    return process_time() - start, found


def seconds_of_biases(field: sw.fields.Field, largest: float) -> float:
    """Time six best labellings under equally spaced biases: the baseline of alternatives."""
    field = fresh(field)
    start = process_time()
    for bias in np.linspace(-largest, largest, 6):
        sw.solve_map(field.with_unary(field.unary + np.array([0.0, bias])), n_jobs=1)
    return process_time() - start


def growth(quick: bool) -> dict[str, list[tuple[int, float, float]]]:
    """Return the number of items or pixels, the seconds of the list and of the best labelling."""
    ball = sw.diversities.HammingBall(20.0, 0.01)
    shape = (40, 60) if quick else (213, 320)
    field = scene(shape, 2.0)
    once = seconds_of_map(field)
    counts = (1, 2, 3) if quick else (1, 2, 4, 6, 9, 12, 16, 20)
    sides = (30, 60) if quick else (60, 120, 240, 480, 960)
    pixels = []
    for side in sides:
        grown = scene((side, side), 2.0)
        pixels.append((side * side, seconds_of_list(grown, 6, ball)[0], seconds_of_map(grown)))
    return {
        "items": [(m, seconds_of_list(field, m, ball)[0], once) for m in counts],
        "pixels": pixels,
    }


def plot(grown: dict[str, list[tuple[int, float, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    for axis, (name, rows) in zip(axes, grown.items(), strict=True):
        size, listed, once = np.array(rows).T
        draw = axis.plot if name == "items" else axis.loglog
        draw(size, listed, "o-", label="list" if name == "items" else "six items")
        draw(size, once, "s--", color="0.4", label="best labelling alone")
        if name == "items":
            axis.set_ylim(0)
        axis.set(xlabel=name, ylabel="seconds, one thread")
        axis.legend()
    figure.savefig(RESULTS / "diverse_growth.png", dpi=150, metadata={"Software": None})


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    repeats = 2 if args.quick else 7
    shape, n = ((40, 60), 60) if args.quick else ((213, 320), 500)
    table = [["field", "list", "best labelling", "list's time", "list / best", "largest gap"]]
    data, ratios, slowest, widest = [], [], 0.0, 0.0
    for strength in (0.5, 2.0, 8.0):
        field = scene(shape, strength)
        small = [(*ball, "branches") for ball in BALLS[:2] if strength == 8.0]
        for weight, gamma, method in [*((*ball, "auto") for ball in BALLS), *small]:
            ball = sw.diversities.HammingBall(weight, gamma)
            times = {"map": [], "list": []}
            for _ in range(repeats):
                times["map"].append(seconds_of_map(field))
                seconds, found = seconds_of_list(field, 6, ball, method)
                times["list"].append(seconds)
            longer = ratio(np.array(times["list"]), np.array(times["map"]))
            gap = float(found.gaps.max()) / weight
            if method == "auto":
                ratios.append(longer["median"])
            else:
                widest = max(widest, gap)
            table.append(
                [
                    f"two labels, strength {strength:g}",
                    f"6, ball {weight:g}, {gamma:g}" + ("" if method == "auto" else f", {method}"),
                    as_seconds(float(np.median(times["map"]))),
                    as_seconds(float(np.median(times["list"]))),
                    as_ratio(longer),
                    f"{100 * gap:.2g} % of the weight",
                ]
            )
            data.append(
                {"strength": strength, "ball": [weight, gamma], "method": method, "gap": gap}
                | times
            )
    over_loop = {}
    joint = sw.diversities.DivMBest(0.2)
    for name, make in {
        "alternatives": lambda field: sw.diverse(field, 6, n_jobs=1),
        "DivMBest 0.2, joint": lambda field: sw.diverse(field, 6, joint, method="joint", n_jobs=1),
    }.items():
        for strength in (0.5, 2.0, 8.0):
            field = scene(shape, strength)
            times = {"map": [], "list": [], "biases": []}
            largest = float(np.abs(make(field).biases).max())
            for _ in range(repeats):
                times["map"].append(seconds_of_map(field))
                times["biases"].append(seconds_of_biases(field, largest))
                again, start = fresh(field), process_time()
                found = make(again)
                times["list"].append(process_time() - start)
            loop = ratio(np.array(times["list"]), np.array(times["biases"]))
            over_loop.setdefault(name, []).append(loop["median"])
            table.append(
                [
                    f"two labels, strength {strength:g}",
                    f"6, {name}",
                    as_seconds(float(np.median(times["map"]))),
                    as_seconds(float(np.median(times["list"]))),
                    as_ratio(ratio(np.array(times["list"]), np.array(times["map"]))),
                    f"none; {loop['median']:.2g} times six biases in a loop",
                ]
            )
            data.append({"strength": strength, "list": name, **times})
    for strength in (0.5, 1.5):
        field = superpixels(n, 21, strength)
        for h in ("min1", "sqrt", "log1p"):
            costs = sw.diversities.LabelDiversity(h, 20.0)
            times = {"map": [], "list": []}
            for _ in range(repeats):
                times["map"].append(seconds_of_map(field))
                seconds, found = seconds_of_list(field, 15, costs)
                times["list"].append(seconds)
            slowest = max(slowest, float(np.median(times["list"])))
            gap = float(found.relative_gaps[1:].max())
            table.append(
                [
                    f"{n} superpixels, 21 labels, strength {strength:g}",
                    f"15, label costs, {h}",
                    as_seconds(float(np.median(times["map"]))),
                    as_seconds(float(np.median(times["list"]))),
                    as_ratio(ratio(np.array(times["list"]), np.array(times["map"]))),
                    f"{100 * gap:.2g} % of the energy",
                ]
            )
            data.append({"strength": strength, "h": h, "gap": gap, **times})
    grown = growth(args.quick)
    data.append({"growth": grown})
    if not args.quick:
        plot(grown)

    def met(reached: float, target: float) -> str:
        return "met" if reached <= target else "NOT met"

    notes = [
        *(
            f"{name}: at most {max(found):.3g} times a loop over six biases: target 3, "
            f"{met(max(found), 3.0)}"
            for name, found in over_loop.items()
        ),
        f"six alternatives of 320 x 213 pixels: at most {max(ratios):.3g} times the best "
        f"labelling's time, target 10: {met(max(ratios), 10.0)}",
        f"small balls under strong smoothing by branches: gaps of at most {100 * widest:.2g} % of "
        f"the weight, target 5: {met(100 * widest, 5.0)}",
        f"fifteen alternatives by label costs: {slowest:.2f} s at most, target 1: "
        f"{met(slowest, 1.0)}",
    ]
    report("diverse", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
