"""The tables of ``class_losses.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.no_paper._many_networks import WIDTH
from experiments.shared.report import Table, estimate, report

# A network has collapsed if the IoU of at least half of the classes is below this.
NOTHING = 0.02


def scores(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return IoU and Dice of each class; 1 for a class that is neither true nor predicted."""
    hit, predicted, true = np.moveaxis(counts, -2, 0)
    union = predicted + true - hit
    with np.errstate(invalid="ignore"):
        iou = np.where(union > 0, hit / union, 1.0)
        dice = np.where(union > 0, 2 * hit / (predicted + true), 1.0)
    return iou, dice


def write(
    script: str,
    runs: Mapping[str, dict],
    losses: Sequence[str],
    data: Sequence[str],
    choices: dict[str, object],
    quick: bool,
) -> None:
    """Print the tables, and write them unless ``quick`` is set."""
    tables, kept = [], {}
    for part in data:
        table = Table(
            f"{part}: mean ± standard error over the seeds",
            ["trained with", "mean IoU", "above CE", "mean Dice", "worst class", "collapsed"],
        )
        control = None
        for name in losses:
            counts = {k: np.array(runs[f"{part} | {name}"][k], float) for k in ("choose", "test")}
            best = scores(counts["choose"])[0].mean(2).argmax(0)
            every = scores(counts["test"])[0]
            at = best, np.arange(len(best))
            iou, dice = (values[at] for values in scores(counts["test"]))
            means = iou.mean(1)
            control = means if control is None else control
            collapsed = float(np.mean(np.mean(every < NOTHING, 2) >= 0.5))
            columns = {
                "mean IoU": estimate(means),
                "above CE": estimate(means - control),
                "mean Dice": estimate(dice.mean(1)),
                "worst class": estimate(iou.min(1)),
            }
            table.rows.append([name, *(e.show() for e in columns.values()), f"{collapsed:.0%}"])
            kept[f"{part} | {name}"] = {
                **columns,
                "collapsed": collapsed,
                "chosen step size": best,
                "IoU of all runs": every.mean(2),
                "seconds": runs[f"{part} | {name}"]["seconds"],
            }
        tables.append(table)
    device = sorted({run["device"] for run in runs.values()})
    choices = {
        **choices,
        "network": f"U-Net of three scales, {WIDTH} to {4 * WIDTH} channels, group normalisation",
        "collapsed": f"the share of all runs, with either step size, in which half of the classes "
        f"have an IoU below {NOTHING:g}",
        "device": ", ".join(device),
    }
    report(
        script,
        "Which loss trains a network of several classes",
        tables,
        choices=choices,
        data=kept,
        quick=quick,
    )
