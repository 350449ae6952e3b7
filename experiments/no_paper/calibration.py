"""Calibration of marginals on photographs with 21 labels and with two, before and after tuning.

    python experiments/no_paper/calibration.py [--quick] [--untrained] [--trained]

The images are the 59 validation images of MSRC-21 with trained unaries (run ``msrc21/unaries.py``
first), and the 20 photographs of GrabCut with two sets of scribbles. The rows are the unaries alone
and the marginals by four methods. Each has temperature 1, and the temperature and scale of the
unaries that ``calibrate_temperature`` finds on the other folds, by NLL or by Brier score. By
default ``calibrate_temperature`` also chooses the method, on the other folds as well: the search is
the library's own. All measurements are cached, image by image.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import setwise as sw
from setwise.inference._calibration._reliability import Reliability

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.no_paper._calibrated_fields import (
    FLOOR,
    SETS,
    SMALL,
    STRENGTH,
    KeptTrials,
    names,
    probabilities_of,
)
from experiments.shared.msrc import FEW
from experiments.shared.report import Table, arguments, parallel, report
from setwise.inference._calibration._point_search import searched
from setwise.inference._calibration._trials import Point

METHODS = ("trees", "projection", "mean_field", "belief_propagation", "unaries")
BELOW = "trees, from below"
DEFAULT = "default"
ROWS = (DEFAULT, "unaries", "projection", "trees", BELOW, "mean_field", "belief_propagation")
FOLDS = 5
STEPS = {"MSRC-21": 6, "GrabCut": 1}
QUICK_STEPS = {"MSRC-21": 12, "GrabCut": 24}
MEASURES = ("accuracy", "ece", "brier", "nll", "auroc")


def folds_of(groups: list[str]) -> np.ndarray:
    """Assign a fold to each image: groups go to the folds in turn."""
    numbers = {group: k for k, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] % FOLDS for group in groups])


def chosen(trials: KeptTrials, row: str, column: int, folds: np.ndarray) -> list[Point]:
    """Return the point of each image that the search finds on the other folds."""
    scored = trials.scored(column)
    methods = METHODS if row == DEFAULT else (row.partition(",")[0],)
    number = int(folds.max()) + 1
    best = [searched(scored, methods, folds != fold) for fold in range(number)]
    return [best[fold] for fold in folds.tolist()]


def pooled(
    which: str, step: int, kept: list[str], row: str, points: list[Point], jobs: int
) -> Reliability:
    """Return the reliability of a row's probabilities over all pixels, each image at its point."""

    def one(case: tuple[str, Point]) -> tuple[np.ndarray, np.ndarray]:
        truth, rows = probabilities_of(which, case[0], step, case[1])
        return truth, rows[BELOW if row == BELOW else case[1].method]

    cases = list(zip(kept, points, strict=True))
    found = [answer for _, answer in parallel(one, cases, f"{which}, {row}", jobs)]
    truths, predicted = zip(*found, strict=True)
    return sw.inference.reliability(np.concatenate(truths), np.concatenate(predicted))


def table_of(
    which: str, quick: bool, jobs: int
) -> tuple[Table, dict[str, dict[str, Any]], dict[str, np.ndarray]]:
    """Return a table of one set of images, its figures, and the sums of scores by group."""
    step = (QUICK_STEPS if quick else STEPS)[which]
    kept = names(which)[: FEW if quick else None]
    trials = KeptTrials(which, step, kept, jobs)
    groups = [name.split("_scribble")[0] for name in kept]
    folds = folds_of(groups)
    head = ["probabilities", "temperature", *MEASURES, "seconds an image"]
    table = Table(f"{which}: {len(kept)} images", head)
    figures: dict[str, dict[str, Any]] = {}
    sums: dict[str, np.ndarray] = {}
    for row in ROWS:
        lines = {}
        if row != DEFAULT:
            lines["1"] = [Point(row.partition(",")[0], 1.0, 1.0)] * len(kept)
        for column, scoring in enumerate(("NLL", "Brier")):
            lines[f"by {scoring} on other folds"] = chosen(trials, row, column, folds)
        for at, points in lines.items():
            true = pooled(which, step, kept, row, points, jobs)
            by_image = np.array(
                [
                    trials.tried(point)[i][BELOW if row == BELOW else point.method]
                    for i, point in enumerate(points)
                ]
            )
            seconds = by_image[:, 2].mean()
            numbers = [getattr(true, measure) for measure in MEASURES]
            taken = sorted(set(points))
            point_text = ", ".join(
                (f"{p.method} " if row == DEFAULT else "")
                + f"t {p.temperature:.3g}, a {p.scale:.3g}"
                for p in taken
            )
            label = at if at == "1" else f"{at}: {point_text}"
            table.rows.append([row, label, *(f"{x:.4f}" for x in numbers), f"{seconds:.2f}"])
            figures[f"{row}, {at}"] = dict(zip(MEASURES, numbers, strict=True)) | {
                "points": taken,
                "seconds": seconds,
                "n": true.n,
            }
            sums[f"{row}, {at}"] = summed(by_image[:, :2], groups)
    return table, figures, sums


def summed(by_image: np.ndarray, groups: list[str]) -> np.ndarray:
    """Sum NLL and Brier scores over the images of each group (photograph)."""
    _, group = np.unique(groups, return_inverse=True)
    sums = np.zeros((group.max() + 1, by_image.shape[1]))
    np.add.at(sums, group, by_image)
    return sums


def verdicts(
    which: str, figures: dict[str, dict[str, Any]], sums: dict[str, np.ndarray]
) -> list[str]:
    """Compare the default, chosen by NLL, with the best line of a method that it did not choose.

    Compare it also with the best line of all, which may be the same method with another score.
    Differences have standard errors over the groups.
    """
    default = f"{DEFAULT}, by NLL on other folds"
    took = {point.method for point in figures[default]["points"]}
    others = [line for line in figures if not line.startswith(DEFAULT)]
    apart = [line for line in others if line.partition(",")[0] not in took]
    found = []
    for column, measure in enumerate(("nll", "brier")):
        ours, comparisons = figures[default][measure], []
        for what, lines in (("another method", apart), ("all", others)):
            theirs, best = min((figures[line][measure], line) for line in lines)
            groups = (sums[default] - sums[best])[:, column] / figures[default]["n"]
            error = float(np.sqrt(len(groups)) * groups.std(ddof=1))
            more = ours - theirs
            verdict = "level" if abs(more) <= error else "ahead" if more < 0 else "behind"
            comparisons.append(
                f"the best line of {what} ({best}) {theirs:.4f}, "
                f"{more:+.4f} ± {error:.4f}: {verdict}"
            )
        found.append(
            f"{which}, {measure}: the default, by NLL, has {ours:.4f}; {'; '.join(comparisons)}"
        )
    return found


def main() -> None:
    given = arguments(
        __doc__,
        repeats=1,
        flags={
            "untrained": "without the images that need trained unaries",
            "trained": "with these alone",
        },
    )
    left_out = {"MSRC-21": given.untrained, "GrabCut": given.trained}
    tables, data, notes = [], {}, []
    for which in [w for w in SETS if not left_out[w]]:
        table, data[which], sums = table_of(which, given.quick, given.jobs)
        tables.append(table)
        notes += verdicts(which, data[which], sums)
    report(
        __file__,
        "Calibration of marginals",
        tables,
        choices={
            "MSRC-21": f"59 validation images, one pixel of {STEPS['MSRC-21']} x "
            f"{STEPS['MSRC-21']}; trained unaries, {STRENGTH:g} times contrast weights on a grid"
            + (" (not run: --untrained)" if given.untrained else ""),
            "GrabCut": f"20 photographs with two sets of scribbles, longer side at most {SMALL} "
            f"pixels; field_from_image as it is, but unaries of unmarked pixels at most "
            f"-log {FLOOR:g}; scribbled pixels and those without truth do not count"
            + (" (not run: --trained)" if given.trained else ""),
            "points": "the search of `calibrate_temperature`, from t = a = 1 by factors of 2 and "
            "then of its roots, in t, in 1 / t, in a / t, and of one of these for the other; "
            "'trees, from below' at the points of trees",
            "folds": f"{FOLDS}, images (photographs) in turn; ECE of 15 bins of equal width",
            "measures": "over all pixels that count; Brier is the sum over labels",
            "tol": "1e-3",
            "seconds": "of processor time of one thread, bounds included; at the points chosen",
        },
        notes=[
            *notes,
            "The default chooses the method on the other folds too. Differences have standard "
            "errors over photographs; within one of them two lines are level.",
            "'trees, from below' are the marginals of the distribution that has the lower bound.",
        ],
        data=data,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
