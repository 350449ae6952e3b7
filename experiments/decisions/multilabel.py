"""Six multi-label sets and six measures: thresholds and decisions compared.

    python experiments/decisions/multilabel.py [--quick]

There are five folds. C, thresholds, presence and calibration are chosen by scores out of fold
inside each training part. The measures are Jaccard and F1 of rows (each row is a set of labels), of
labels (macro) and of all cells (micro). Rivals are a threshold of 1/2, one tuned threshold, and one
tuned threshold per label, each on the same scores as the decisions beside them. Scores are cached.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.decisions._decided_scores import (
    MEASURES,
    decided,
    one_threshold,
    score,
    thresholds_of_labels,
)
from experiments.decisions._multilabel_scores import (
    CS,
    FOLDS,
    INNER,
    KINDS,
    MOST_FEATURES,
    MOST_LABELS,
    PROBABILITIES,
    SET_CS,
    SLOW,
    Fold,
    scores_of,
)
from experiments.decisions._multilabel_sets import LEAST
from experiments.shared.report import Table, arguments, estimate, parallel, report

NAMES = ["emotions", "scene", "yeast", "medical", "enron", "corel5k"]
# SetDecision with its defaults, and with other values of its parameters.
DECISIONS = {
    "SetDecision": {},
    "sigmoid": {"calibrate": "sigmoid"},
    "isotonic": {"calibrate": "isotonic"},
    "not calibrated": {"calibrate": None},
    "nor presence": {"calibrate": None, "presence": None},
}
RIVALS = ["1/2", "one threshold", "a threshold a label"]


def one_fold(task: tuple[str, int, int, bool]) -> dict[str, dict[str, object]]:
    """Return the scores of every model and rule by every measure on one fold."""
    name, fold, seed, quick = task
    data = Fold.of(name, fold, seed, quick)
    answers: dict[str, dict[str, object]] = {}
    for kind in KINDS:
        scores = scores_of(name, fold, kind, seed, quick)
        if scores is None:
            continue
        p, test, truth = scores.out_of_fold, scores.test, data.Y_train
        tried = DECISIONS
        if kind not in PROBABILITIES:  # scores are no probabilities before they are calibrated
            tried = {key: v for key, v in DECISIONS.items() if v.get("calibrate", "auto")}
        for loss, sets in MEASURES:
            rules = {
                "1/2": test > 0.5,
                "one threshold": test > one_threshold(p, truth, loss, sets),
                "a threshold a label": test > thresholds_of_labels(p, truth, loss),
            }
            for rule, options in tried.items():
                rules[rule] = decided(p, truth, data.inner, test, loss, sets, **options)
            for rule, predicted in rules.items():
                row = answers.setdefault(
                    f"{kind}: {rule}", {"seconds": scores.seconds, "C": scores.C}
                )
                row[f"{loss} of {sets}"] = score(data.Y_test, predicted > 0, loss, sets)
    return answers


def main() -> None:
    args = arguments(__doc__.splitlines()[0], repeats=1)
    names = NAMES[:1] if args.quick else NAMES
    tasks = [
        (n, fold, args.seed, args.quick)
        for n in names
        for fold in range(1 if args.quick else FOLDS)
    ]
    found: dict[str, list[dict]] = {name: [] for name in names}
    for (name, *_), answers in parallel(one_fold, tasks, "folds", args.jobs):
        found[name].append(answers)
    measures = [f"{loss} of {sets}" for loss, sets in MEASURES]
    tables = [of_logistic(found, measure) for measure in measures]
    tables += [gains(found, measures), of_all(found, measures)]
    report(
        __file__,
        "Decisions and thresholds on multi-label data",
        tables,
        choices={
            "folds": f"{FOLDS}, {INNER} inside, shuffled with seed {args.seed}",
            "C": f"{CS} by log loss out of fold; set classifiers {SET_CS} by Jaccard of rows",
            "thresholds": "97 from 0.02 to 0.98 and 1/2, by the measure out of fold",
            "SetDecision": "its defaults, which were chosen on other data (choices.py)",
            "labels": f"present in at least 20 rows; others: {LEAST}",
            "chain": f"up to {MOST_LABELS} labels",
            "boosting": f"and up to {MOST_FEATURES} features, 40 rounds, no tuning",
            "left out, minutes a fold": f"{SLOW}",
            "seconds": "of a training part, on a machine that did other work: inner fits for "
            "every C, and the last fit",
        },
        data=found,
        notes=[behind(found, measures)],
        quick=args.quick,
    )


def of_logistic(found: dict[str, list[dict]], measure: str) -> Table:
    """Return a table of every rule on the probabilities of logistic regression, by data set."""
    rules = [*RIVALS, *DECISIONS]
    table = Table(f"Logistic regression, {measure}", ["data", *rules, "SetDecision − best rival"])
    for name, folds in found.items():
        cells = [estimate(f[f"logistic: {rule}"][measure] for f in folds) for rule in rules]
        best = max(RIVALS, key=lambda rule: cells[rules.index(rule)].mean)
        gain = gain_of(folds, "logistic: SetDecision", f"logistic: {best}", measure)
        table.rows.append([name, *(c.show() for c in cells), gain.show()])
    return table


def gain_of(folds: list[dict], ours: str, rival: str, measure: str):
    """Return the difference between two rows, paired over the folds."""
    return estimate(f[ours][measure] - f[rival][measure] for f in folds)


def gains(found: dict[str, list[dict]], measures: list[str]) -> Table:
    """Return a table of means over the data sets of SetDecision minus each rival, by model."""
    table = Table(
        "SetDecision minus the tuned rival that is best on the data set: mean over the data sets",
        ["model", *measures],
    )
    for kind in KINDS:
        row = []
        for measure in measures:
            ahead = []
            for folds in found.values():
                if f"{kind}: SetDecision" not in folds[0]:
                    continue
                tuned = [
                    gain_of(folds, f"{kind}: SetDecision", f"{kind}: {rule}", measure).mean
                    for rule in RIVALS[1:]
                ]
                ahead.append(min(tuned))
            row.append(f"{np.mean(ahead):+.3f}" if ahead else "–")
        table.rows.append([kind, *row])
    return table


def of_all(found: dict[str, list[dict]], measures: list[str]) -> Table:
    """Return a table of every model and rule."""
    table = Table(
        "Every model and rule: mean over the data sets that it was run on",
        ["model: rule", "sets", *measures, "seconds"],
    )
    for key in sorted({key for folds in found.values() for f in folds for key in f}):
        rows = [[f[key] for f in folds if key in f] for folds in found.values()]
        rows = [folds for folds in rows if folds]
        means = [np.mean([np.mean([f[m] for f in folds]) for folds in rows]) for m in measures]
        seconds = np.mean([np.mean([f["seconds"] for f in folds]) for folds in rows])
        table.rows.append([key, str(len(rows)), *(f"{m:.3f}" for m in means), f"{seconds:.1f}"])
    return table


def behind(found: dict[str, list[dict]], measures: list[str]) -> str:
    """Return a note on rivals on the same probabilities that are ahead by over a standard error."""
    lost = []
    for kind in sorted(PROBABILITIES):
        for measure in measures:
            for name, folds in found.items():
                if f"{kind}: SetDecision" not in folds[0]:
                    continue
                for rule in RIVALS:
                    gain = gain_of(folds, f"{kind}: SetDecision", f"{kind}: {rule}", measure)
                    if gain.mean < -(gain.error or 0.0):
                        shown = f"{-gain.mean:.3f} ± {gain.error or 0.0:.3f}"
                        lost.append(f"{kind}, {name}, {measure}: {rule} by {shown}")
    head = "SetDecision behind a rival on the same probabilities by more than a standard error: "
    return head + ("; ".join(lost) if lost else "nowhere")


if __name__ == "__main__":
    main()
