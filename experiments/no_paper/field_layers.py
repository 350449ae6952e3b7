"""The benefit of a field as the last layer of a U-Net on the Weizmann horses, on a GPU.

    python experiments/no_paper/field_layers.py [--quick] [--jobs 8]

Needs weizmann_horses/ (60 photographs with masks). Every other photograph is for training and for
the choice of settings, the rest for the test. The rows have the same backbone and the same number
of steps: the network alone; a field added after training; a field trained with the network by its
likelihood, by the structured hinge, and through its marginals into a set loss; and a plain mean
field (CRF-RNN's update) with the same pairs. The script also runs on a CPU, slowly. Runs are
parallel processes, but milliseconds are measured by one process alone. Finished runs are cached.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.no_paper._field_models import NEAR, PASSES, START, TRAINED
from experiments.no_paper._field_runs import (
    OF_WEIGHT,
    ROWS,
    STEPS,
    TEMPERATURES,
    TIMED,
    WEIGHTS,
    cost,
    one_run,
)
from experiments.no_paper.unet_losses import BATCH, RATES, VALIDATION
from experiments.shared.report import Estimate, Table, arguments, estimate, parallel, report

SIZE = 128
CONTROL, ALONE = "U-Net alone", "U-Net alone, Jaccard metric"
LONGEST = ("field, hinge", "field, marginals into the Jaccard metric")  # the slowest, started first
COLUMNS = {
    "jaccard": "Jaccard",
    "above": "above U-Net alone",
    "with field": "above the same loss alone",
    "dice": "Dice",
    "jaccard, decided": "Jaccard, decided",
    "boundary": "accuracy near the boundary",
    "calibration error": "calibration error",
    "calibration error, calibrated": "calibrated",
    "nll, calibrated": "NLL, calibrated",
    "weight": "weight of pairs",
}


def main() -> None:
    given = arguments(__doc__, repeats=5)
    steps, size = (4, 32) if given.quick else (STEPS, SIZE)
    rates = RATES[:1] if given.quick else RATES
    seeds = [given.seed + k for k in range(given.repeats)]
    cases = [(s, rate, name, steps, size) for s in seeds for name in TRAINED for rate in rates]
    cases.sort(key=lambda case: LONGEST.index(case[2]) if case[2] in LONGEST else len(LONGEST))
    runs = {case[:3]: run for case, run in parallel(one_run, cases, "runs", given.jobs)}
    costs = {name: cost(name, size, 2 if given.quick else TIMED) for name in TRAINED}
    chosen: dict[str, list[dict]] = {}
    for row, (name, _) in ROWS.items():
        of_rates = [[runs[s, rate, name][row] for rate in rates] for s in seeds]
        chosen[row] = [max(tried, key=lambda run: run["held"]) for tried in of_rates]
    table = Table(
        f"30 test images of {size} x {size}, mean ± standard error over {given.repeats} seeds",
        ["model", *COLUMNS.values()],
    )
    spent = Table(
        f"Milliseconds for {BATCH} images, one process, nothing beside it",
        ["model", "a step", "an answer", "MiB in training"],
    )
    figures: dict[str, Any] = {}
    for row, (name, _) in ROWS.items():
        alone = ALONE if TRAINED[name][1] == "set loss" else CONTROL
        for key, control in (("above", CONTROL), ("with field", alone)):
            for run, other in zip(chosen[row], chosen[control], strict=True):
                run[key] = run["jaccard"] - other["jaccard"]
        columns: dict[str, Estimate] = {
            key: estimate(run[key] for run in chosen[row]) for key in COLUMNS
        }
        shown = {key: column.show() for key, column in columns.items()}
        if row in (CONTROL, ALONE):
            shown["with field"] = shown["weight"] = ""
        if row == CONTROL:
            shown["above"] = ""
        table.rows.append([row, *shown.values()])
        of = costs[name]
        spent.rows.append(
            [row, f"{of['step']:.1f}", f"{of['answer'][row]:.1f}", f"{of['MiB']:.0f}"]
        )
        figures[row] = {**columns, "cost": of, "runs": chosen[row]}
    longest = steps * max(of["step"] for of in costs.values()) / 1e3
    report(
        __file__,
        "A field as the last layer of a U-Net on the Weizmann horses",
        [table, spent],
        choices={
            "data": f"60 Weizmann horses at {size} x {size}; of every other image "
            f"{30 - VALIDATION} to train and {VALIDATION}, drawn anew for each seed, to choose "
            "settings; the other 30 to test",
            "seeds": seeds,
            "network": "U-Net of three scales, 24 to 96 channels, group normalisation, from the "
            "start; the same start for every row of a seed",
            "training": f"{steps} steps of Adam; batches of {BATCH}, flips, shifts, cosine "
            f"schedule; the longest run takes {longest:.0f} s with nothing beside it",
            "step size": f"of {', '.join(f'{rate:g}' for rate in rates)}, by Jaccard on the "
            f"held-out images; {OF_WEIGHT:g} times that for the weight of pairs, which starts at "
            f"{START:g}",
            "field": "four neighbours, weights times the image's contrast; the marginals are those "
            "of projection; behind the network with a weight of "
            f"{', '.join(f'{weight:g}' for weight in WEIGHTS)}, by Jaccard on held-out images",
            "mean field": f"{PASSES[True]} parallel passes over the same pairs in training, "
            f"{PASSES[False]} after it",
            "calibrated": "logits and weights divided by a temperature of least NLL on the "
            f"held-out images, of {', '.join(f'{one:g}' for one in TEMPERATURES)}",
            "decided": "sw.torch.decide for Jaccard on the calibrated probabilities; else above "
            "1/2, which with a field is its best labelling",
            "boundary": f"pixels within {NEAR} of another label",
            "milliseconds": f"medians of {TIMED} steps after as many, and of 15 answers",
            "device": costs["cross-entropy"]["device"],
        },
        data=figures,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
