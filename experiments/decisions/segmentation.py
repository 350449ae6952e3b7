"""Masks for IoU and Dice: most probable class, thresholds and decisions, with and without a field.

    python experiments/decisions/segmentation.py [--quick]

Needs msrc21/ and weizmann_horses/. On MSRC-21 the unaries are those of a smaller version of our own
classifier, for the 59 validation images, and TextonBoost's, for the four test images that have
them. On the horses they come from the U-Net of ``no_paper/unet_horses.py``. No setting is chosen on
the pictures that a figure is computed from.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.decisions._decided_masks import (
    MEASURES,
    POLICIES,
    Picture,
    Verdict,
    calibration,
    counted,
    evaluate,
    field_of,
    mean,
)
from experiments.decisions._horse_masks import FOLDS, both_halves, decide_tensor
from experiments.decisions._small_unaries import TRAINED_ON, probabilities
from experiments.shared.msrc import FEW, LABELS, image, names, textonboost, truth
from experiments.shared.report import Table, arguments, progress, report
from experiments.shared.texture import CELL

STRENGTHS = (0.5, 1.0, 2.0)
POLICY_NAMES = {
    "there": "classes that are in the truth",
    "all": "all 21 classes, 1 where a class is neither there nor predicted",
}

Verdicts = dict[tuple[str, str], Verdict]


def scene(name: str, p: np.ndarray) -> Picture:
    """Return an image of MSRC-21 at cells of 2 x 2 pixels, with marginals for each strength."""
    labels, colors = truth(name)[::CELL, ::CELL], image(name)[::CELL, ::CELL]
    flat = p.reshape(-1, LABELS).T
    fields = {s: field_of(flat, colors, s).astype(np.float32) for s in STRENGTHS}
    there = labels.ravel() == np.arange(LABELS)[:, None]
    return Picture({0.0: flat.astype(np.float32), **fields}, there, labels.ravel() >= 0)


def joined(parts: list[tuple[np.ndarray, Verdicts]], count: int) -> Verdicts:
    """Join verdicts on parts of the pictures; the settings are those of the first part."""
    found: Verdicts = {}
    for key, first in parts[0][1].items():
        scores = {}
        for measure, table in first.scores.items():
            whole = np.empty((count, table.shape[1]))
            for rows, verdicts in parts:
                whole[rows] = verdicts[key].scores[measure]
            scores[measure] = whole
        found[key] = Verdict(scores, first.settings)
    return found


def crossed(pictures: list[Picture], folds: int) -> Verdicts:
    """Return verdicts by cross-validation; picture k belongs to part k % folds."""
    parts = []
    part_of = np.arange(len(pictures)) % folds
    for k in progress(range(folds), "parts"):
        fit = tuple(p for p, part in zip(pictures, part_of, strict=True) if part != k)
        asked = tuple(p for p, part in zip(pictures, part_of, strict=True) if part == k)
        parts.append((np.flatnonzero(part_of == k), evaluate(fit, asked)))
    return joined(parts, len(pictures))


def averaged(runs: list[Verdicts]) -> Verdicts:
    """Average every picture's score over seeds."""
    return {
        key: Verdict(
            {m: np.mean([run[key].scores[m] for run in runs], axis=0) for m in first.scores},
            first.settings,
        )
        for key, first in runs[0].items()
    }


def shown(title: str, verdicts: Verdicts, counts: np.ndarray, policy: str) -> tuple[Table, dict]:
    """Return a table of one policy, each row beside the plain argmax, and the figures behind it."""
    head = ["probabilities", "rule", "IoU", "above argmax", "Dice", "above argmax", "chosen (IoU)"]
    table = Table(title, head)
    data = {}
    plain = verdicts["as they are", "argmax"]
    for (source, rule), verdict in verdicts.items():
        cells, row = [], {}
        for measure in MEASURES:
            ours, theirs = (v.scores[measure, policy] for v in (verdict, plain))
            value, above = mean(ours, counts), mean(ours - theirs, counts)
            cells += [value.show(), "" if verdict is plain else above.show()]
            row[measure] = {"mean": value, "above argmax": above}
        chosen = verdict.settings["IoU", policy]
        words = [f"strength {chosen.strength:g}"] if source == "the field's" else []
        words += [f"threshold {chosen.threshold:g}"] if chosen.threshold is not None else []
        table.rows.append([source, rule, *cells, ", ".join(words)])
        data[f"{source}, {rule}"] = row
    return table, data


def main() -> None:
    given = arguments(__doc__, repeats=2)
    torch.set_num_threads(1)
    steps = 40 if given.quick else 160
    tables, data, curves = [], {}, {}

    validation = names("validation")[: FEW if given.quick else None]
    unaries = probabilities(validation, given.seed, quick=given.quick)
    sets = {
        "our unaries": [scene(k, unaries[k]) for k in progress(validation, "marginals")],
        "TextonBoost's unaries": [
            scene(k, textonboost(k)[::CELL, ::CELL]) for k in names("textonboost")
        ],
    }
    for name, pictures in sets.items():
        verdicts = crossed(pictures, 2 if name == "our unaries" else len(pictures))
        curves[f"MSRC-21, {name}"] = calibration(pictures, 0.0)
        for policy in POLICIES:
            counts = counted(pictures, policy)
            title = f"MSRC-21, {len(pictures)} images, {name}; {POLICY_NAMES[policy]} "
            table, found = shown(title + f"({counts.sum()} pairs)", verdicts, counts, policy)
            tables.append(table)
            data[f"MSRC-21, {name}, {policy}"] = found

    runs = []
    for seed in range(given.seed, given.seed + given.repeats):
        fit, asked = both_halves(seed, steps, STRENGTHS)
        curves[f"horses, seed {seed}, training half"] = calibration(fit, 0.0)
        curves[f"horses, seed {seed}, test half"] = calibration(asked, 0.0)
        runs.append(evaluate(tuple(fit), tuple(asked), decide_tensor))
    title = f"Horses, {len(asked)} test photographs, mean of {given.repeats} networks"
    counts = counted(asked, "there")
    table, data["horses"] = shown(title, averaged(runs), counts, "there")
    tables.append(table)

    fitted = ", ".join(f"{name} {a:.2f} and {b:+.2f}" for name, (a, b) in curves.items())
    report(
        __file__,
        "Segmentation: argmax, thresholds and decisions, field or no field",
        tables,
        choices={
            "measures": "IoU and Dice of each class of each image, void left out of the judgement "
            "but not of the decision; `decide` has the loss of the column's measure. "
            "± is a standard error with the image as the draw",
            "unaries": f"ours: the classifier of msrc21/ from {TRAINED_ON} training images and "
            "smaller in all, already calibrated by its own held-out folds; TextonBoost's as "
            "published; both at every second row and column",
            "field": "4 neighbours, Potts, contrast weights; marginals by projection; strength of "
            f"{', '.join(f'{s:g}' for s in STRENGTHS)}",
            "calibrated": "sigmoid(a logit p + b), one for all classes; a and b on all images of "
            f"a set, without the field: {fitted}",
            "presence": "a class is in an image with probability q, by a logistic regression on "
            "the logits of its mean and its largest probability; if it is, its pixels have p / q "
            "independently; `decide` for that law",
            "settings": "strength, threshold, calibration and presence of MSRC-21 on the other "
            "half of the images (TextonBoost's: on the other three), of the horses on the training "
            f"half by {FOLDS} folds; chosen for the measure and policy of the figure. `chosen` "
            "shows those of the first part or network",
            "horses": f"48 x 64 pixels, {steps} steps of cross-entropy at 3e-3 on 30 photographs; "
            "`argmax` is a threshold of 1/2",
            "seed": given.seed,
        },
        data={"tables": data, "calibrations": curves},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
