"""Weights of pairs and regions on MSRC-21: learnt by likelihood, and from a grid.

    python experiments/no_paper/msrc_weights.py [--quick] [--jobs 2]

The images are the 59 validation images with trained unaries and superpixels (run
``msrc21/unaries.py`` and ``msrc21/superpixels.py`` first). A scale of the unaries, a weight of
contrast pairs and a weight for each of three layers of superpixels are learnt on one half of the
images and reported on the other half, and vice versa. The objective is the likelihood of the
labels, with an upper bound on log Z. Further rows are the points of a grid that have the highest
accuracy, or the least NLL, on the same half.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.no_paper._msrc_weights import (
    ALPHA,
    MOST,
    START,
    TOLERANCE,
    Weights,
    learnt,
    scores_of,
)
from experiments.shared.msrc import FEW, names
from experiments.shared.report import Table, arguments, estimate, parallel, report

STEP = 8
SCALES = (0.7, 1.0, 1.4)
PAIRS = (0.1, 0.3, 1.0, 2.0)
REGIONS = (0.0, 0.5, 2.5, 6.0, 12.0)
CHOSEN_BY = {"accuracy": (1, max), "NLL": (3, min)}  # the column of the sums, and how to choose
WHAT = {"pairs": "pairs", "pairs and regions": "regions"}


def grid(regions: bool) -> list[Weights]:
    """Return points with equal weights of the layers, with scale 1 and with other scales."""
    layers = REGIONS if regions else (0.0,)
    return [Weights(a, w, (v,) * 3) for a, w, v in product(SCALES, PAIRS, layers)]


def best_point(
    points: list[Weights], found: dict[Weights, dict], half: np.ndarray, by: str
) -> Weights:
    """Return the best point by the images of a half; the first if several tie."""
    column, best = CHOSEN_BY[by]
    return best(points, key=lambda point: found[point]["sums"][half, column].sum())


def row_of(
    chosen: list[Weights], found: dict[Weights, dict], halves: np.ndarray
) -> dict[str, np.ndarray]:
    """Return sums by image and by label, each image at the weights chosen on the other half."""
    parts = [found[weights] for weights in chosen]
    count = len(halves)
    return {
        key: np.array([parts[1 - halves[i]][key][i] for i in range(count)])
        for key in ("sums", "labels")
    }


def figures(row: dict[str, np.ndarray], control: dict[str, np.ndarray]) -> dict[str, object]:
    """Return pooled measures, and the mean gain over the control per image."""
    total, labels = row["sums"].sum(axis=0), row["labels"].sum(axis=0)
    present = labels[:, 0] > 0
    means, others = (one["sums"][:, 1:] / one["sums"][:, :1] for one in (row, control))
    gains = {
        name: estimate((means - others)[:, k])
        for k, name in enumerate(("accuracy", "Brier", "NLL"))
    }
    return {
        "global": total[1] / total[0],
        "per class": float((labels[present, 1] / labels[present, 0]).mean()),
        "Brier": total[2] / total[0],
        "NLL": total[3] / total[0],
        "above unaries": gains,
    }


def main() -> None:
    given = arguments(__doc__, repeats=1)
    torch.set_num_threads(1)
    count, step = (FEW, 16) if given.quick else (len(names("validation")), STEP)
    halves = np.arange(count) % 2
    points = [Weights(), *grid(regions=True)]
    points = points[::12] if given.quick else points
    cases = [(what, half, count, step) for what in ("regions", "pairs", "scale") for half in (0, 1)]
    fitted = {case[:2]: answer for case, answer in parallel(learnt, cases, "learnt", given.jobs)}
    points += [weights for weights, _ in fitted.values()]
    tasks = [(weights, count, step) for weights in dict.fromkeys(points)]
    found = {case[0]: answer for case, answer in parallel(scores_of, tasks, "points", given.jobs)}
    rows: dict[str, list[Weights]] = {
        "unaries alone": [Weights()] * 2,
        "scale, learnt": [fitted["scale", half][0] for half in (0, 1)],
    }
    spent = {"scale, learnt": sum(fitted["scale", half][1]["seconds"] for half in (0, 1))}
    for name, what in WHAT.items():
        own = [p for p in points if p in set(grid(regions=what == "regions"))]
        kinds = {
            "grid of the tables, by accuracy": ([p for p in own if p.scale == 1], "accuracy"),
            "grid with scales, by accuracy": (own, "accuracy"),
            "grid with scales, by NLL": (own, "NLL"),
        }
        for kind, (tried, by) in kinds.items():
            rows[f"{name}, {kind}"] = [
                best_point(tried, found, halves == half, by) for half in (0, 1)
            ]
            spent[f"{name}, {kind}"] = sum(float(found[p]["seconds"]) for p in tried)
        key = f"{name}, learnt by likelihood"
        rows[key] = [fitted[what, half][0] for half in (0, 1)]
        spent[key] = sum(fitted[what, half][1]["seconds"] for half in (0, 1))
    head = ["weights", "global", "per class", "Brier", "NLL"]
    head += ["accuracy above unaries", "NLL above unaries", "scale, pairs, regions", "CPU s"]
    table = Table(f"{count} images, each with the weights that the other half chose", head)
    data: dict[str, object] = {}
    control = row_of(rows["unaries alone"], found, halves)
    for name, chosen in rows.items():
        of = figures(row_of(chosen, found, halves), control)
        gains = of["above unaries"]
        shown = [f"{of[key]:.3f}" for key in head[1:5]]
        shown += [gains["accuracy"].show(), gains["NLL"].show()] if name in spent else ["", ""]
        seconds = f"{spent[name]:.0f}" if name in spent else ""
        table.rows.append([name, *shown, "; ".join(w.show() for w in chosen), seconds])
        data[name] = {**of, "weights": [vars(w) for w in chosen], "seconds": spent.get(name)}
    fits = {
        f"{what}, half {half}": numbers
        | {"marginals' NLL there": _nll(found[weights]["sums"][halves == half])}
        for (what, half), (weights, numbers) in fitted.items()
    }
    report(
        __file__,
        "Weights of pairs and regions on MSRC-21, by likelihood and from a grid",
        [table],
        choices={
            "data": f"{count} validation images, {step} x {step} pixels made one; halves are "
            "every second image; void does not count, and is no part of the fields",
            "field": f"scale times unaries, contrast pairs, three layers of superpixels to the "
            f"power {ALPHA:g}; marginals of projection, relative gap {TOLERANCE:g}",
            "likelihood": f"L-BFGS-B over weights that are not negative, from {_list(START)}, "
            f"ended by its rule or soon after {MOST} evaluations",
            "grid": f"scales {_list(SCALES)}, pairs {_list(PAIRS)}, regions {_list(REGIONS)}, the "
            "same for three layers; that of the tables has scale 1",
            "measures": "over all pixels that count, global accuracy of the most probable label, "
            "per class the mean over labels; above unaries: mean over images and its standard "
            "error",
            "CPU s": "of processor time, to learn on both halves, or to answer all points of the "
            "grid for all images, once for both halves",
        },
        data={"rows": data, "fits": fits},
        quick=given.quick,
    )


def _list(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{x:g}" for x in numbers)


def _nll(sums: np.ndarray) -> float:
    return float(sums[:, 3].sum() / sums[:, 0].sum())


if __name__ == "__main__":
    main()
