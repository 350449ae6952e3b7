"""Which marginals are true? Photographs with 21 labels and with two, before and after calibration.

    python experiments/no_paper/calibration.py [--quick] [--untrained]

The 59 validation images of MSRC-21 with trained unaries (``msrc21/unaries.py`` first), its four
test images with TextonBoost's, and the 20 photographs of GrabCut with two sets of scribbles:
unaries alone, and the marginals by four methods, at temperature 1 and at the temperature and scale
of the unaries of least NLL, or Brier score, on the other folds. What was measured is kept in the
cache, image by image.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.no_paper._calibrated_fields import (
    FLOOR,
    SETS,
    SMALL,
    STRENGTH,
    measured,
    names,
    told,
)
from experiments.shared.report import Table, arguments, parallel, report

METHODS = ("unaries", "projection", "trees", "mean_field", "belief_propagation")
ROWS = ("unaries", "projection", "trees", "trees, from below", "mean_field", "belief_propagation")
FOLDS = 5
# temperatures t, and a / t, which multiplies the unaries, a their scale
GRIDS = {
    "MSRC-21": ((0.5, 1.0, 2.0, 4.0), (0.5, 0.7, 1.0, 1.4)),
    "TextonBoost": ((1.0, 2.0, 4.0, 8.0), (0.2, 0.35, 0.5, 0.7, 1.0)),
    "GrabCut": ((8.0, 16.0, 32.0, 64.0, 128.0), (0.25, 0.35, 0.5, 0.7)),
}
STEPS = {"MSRC-21": 6, "TextonBoost": 4, "GrabCut": 1}
MEASURES = ("accuracy", "ece", "brier", "nll", "auroc")


def points_of(which: str) -> list[tuple[float, float]]:
    """Temperature 1 as it is, and the grid of temperatures and scales."""
    temperatures, factors = GRIDS[which]
    grid = [(t, t * factor) for t in temperatures for factor in factors]
    return [(1.0, 1.0), *(point for point in grid if point != (1.0, 1.0))]


def folds_of(groups: list[str]) -> np.ndarray:
    """A fold for each image: groups go to the folds in turn."""
    numbers = {group: k for k, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] % FOLDS for group in groups])


def chosen(tables: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """The point of each image: that of the least sum (P, images) over the other folds."""
    number = int(folds.max()) + 1
    best = [int(tables[:, folds != fold].sum(axis=1).argmin()) for fold in range(number)]
    return np.array(best)[folds]


def pooled(
    which: str, step: int, kept: list[str], row: str, points: list[tuple[float, float]], jobs: int
) -> sw.inference.Reliability:
    """How true the probabilities of a row are, over all pixels, each image at its point."""
    method = row.partition(",")[0]

    def one(case: tuple[str, tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
        truth, rows = told(which, case[0], step, method, case[1])
        return truth, rows[row]

    cases = list(zip(kept, points, strict=True))
    found = [answer for _, answer in parallel(one, cases, f"{which}, {row}", jobs)]
    truths, said = zip(*found, strict=True)
    return sw.inference.reliability(np.concatenate(truths), np.concatenate(said))


def table_of(which: str, quick: bool, jobs: int) -> tuple[Table, dict[str, object]]:
    """A table of one set of images, and the figures behind it."""
    step = STEPS[which] * (2 if quick else 1)
    kept = names(which)[: 6 if quick else None]
    points = points_of(which)[: 9 if quick else None]

    def grid_of(name: str) -> dict[str, np.ndarray]:
        return measured(which, name, step, METHODS, points)

    results = [found for _, found in parallel(grid_of, kept, f"{which}, grid", jobs)]
    folds = folds_of([name.split("_scribble")[0] for name in kept])
    head = ["probabilities", "temperature", *MEASURES, "seconds an image"]
    table = Table(f"{which}: {len(kept)} images, {len(points)} points", head)
    figures: dict[str, object] = {}
    for row in ROWS:
        method = row.partition(",")[0]
        order = [_places(found[f"points of {method}"], points) for found in results]
        sums = np.array([found[row][at] for found, at in zip(results, order, strict=True)])
        one = pooled(which, step, kept, row, [(1.0, 1.0)] * len(kept), jobs)
        lines = {"1": (one, [points[0]], sums[:, 0, 2].mean())}
        for k, scoring in enumerate(("NLL", "Brier")):
            best = chosen(sums[:, :, k].T, folds)
            true = pooled(which, step, kept, row, [points[p] for p in best], jobs)
            seconds = np.mean([sums[i, p, 2] for i, p in enumerate(best)])
            taken = sorted({points[p] for p in best.tolist()})
            lines[f"by {scoring} on other folds"] = (true, taken, seconds)
        for at, (true, taken, seconds) in lines.items():
            numbers = [getattr(true, measure) for measure in MEASURES]
            pairs = ", ".join(f"t {t:g}, a {a:g}" for t, a in taken)
            label = at if at == "1" else f"{at}: {pairs}"
            table.rows.append([row, label, *(f"{x:.3f}" for x in numbers), f"{seconds:.2f}"])
            figures[f"{row}, {at}"] = dict(zip(MEASURES, numbers, strict=True)) | {
                "points": taken,
                "seconds": seconds,
                "n": true.n,
            }
    return table, figures


def _places(known: np.ndarray, points: list[tuple[float, float]]) -> list[int]:
    return [int(np.abs(known - point).max(axis=1).argmin()) for point in points]


def main() -> None:
    given = arguments(
        __doc__, repeats=1, flags={"untrained": "without the images that need trained unaries"}
    )
    tables, data = [], {}
    for which in [w for w in SETS if w != "MSRC-21" or not given.untrained]:
        table, data[which] = table_of(which, given.quick, given.jobs)
        tables.append(table)
    report(
        __file__,
        "Calibration of marginals",
        tables,
        choices={
            "MSRC-21": f"59 validation images, one pixel of {STEPS['MSRC-21']} x "
            f"{STEPS['MSRC-21']}; trained unaries, {STRENGTH:g} times contrast weights on a grid"
            + (" (not run: --untrained)" if given.untrained else ""),
            "TextonBoost": "the same of the four test images with TextonBoost's probabilities, one "
            f"pixel of {STEPS['TextonBoost']} x {STEPS['TextonBoost']}",
            "GrabCut": f"20 photographs with two sets of scribbles, longer side at most {SMALL} "
            f"pixels; field_from_image as it is, but unaries of unmarked pixels at most "
            f"-log {FLOOR:g}; scribbled pixels and those without truth do not count",
            "points": "; ".join(
                f"{which}: temperatures {', '.join(f'{t:g}' for t in ts)}, scales a of the unaries "
                f"with a / t in {', '.join(f'{f:g}' for f in fs)}, and t = a = 1"
                for which, (ts, fs) in GRIDS.items()
            ),
            "folds": f"{FOLDS}, images (photographs) in turn; ECE of 15 bins of equal width",
            "measures": "over all pixels that count; Brier is the sum over labels",
            "tol": "1e-3",
            "seconds": "of processor time of one thread, bounds included; at the points chosen",
        },
        notes=[
            "'trees, from below' are the marginals of the distribution that has the lower bound."
        ],
        data=data,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
