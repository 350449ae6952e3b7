"""Which method for which measure: six multi-label sets, six measures, thresholds and decisions.

    python experiments/decisions/multilabel.py [--quick]

Five folds; C, thresholds and calibration are chosen on scores out of fold inside each training
part. The measures are Jaccard and F1 of rows (a set of labels each), of labels (macro) and of all
cells (micro). Rivals: a threshold of 1/2, one tuned threshold, a tuned threshold for each label,
each on the same scores as the decisions beside them.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from threadpoolctl import threadpool_limits

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.decisions._decided_scores import (
    MEASURES,
    decided,
    one_threshold,
    score,
    thresholds_of_labels,
)
from experiments.decisions._multilabel_sets import LEAST, sample
from experiments.shared.data import standardized
from experiments.shared.report import Table, arguments, estimate, parallel, report

NAMES = ["emotions", "scene", "yeast", "medical", "enron", "corel5k"]
FOLDS, INNER = 5, 3
CS = [0.01, 0.1, 1.0]
SET_CS = [0.001, 0.01, 0.1]
MOST_LABELS, MOST_FEATURES = 14, 100
NOT_CALIBRATED = {"logistic", "chain", "boosting"}


def models(p: int, d: int) -> dict[str, tuple[object, list[float]]]:
    """Each with its parameter C, if it has one, and the values to choose from."""

    def logistic(C: float, **options: object) -> LogisticRegression:
        return LogisticRegression(C=C, max_iter=300, **options)

    found = {
        "logistic": (lambda C: MultiOutputClassifier(logistic(C)), CS),
        "logistic, balanced": (
            lambda C: MultiOutputClassifier(logistic(C, class_weight="balanced")),
            CS,
        ),
        "hinge": (partial(sw.SetClassifier, "hamming", "hinge", tol=1e-2), SET_CS),
        "Lovász hinge": (partial(sw.SetClassifier, "jaccard", "lovasz", tol=1e-2), SET_CS),
        "B_D of Dice": (partial(sw.SetClassifier, "dice", "decomposed", tol=1e-2), SET_CS),
    }
    if p <= MOST_LABELS:
        found["chain"] = (lambda C: ClassifierChain(logistic(C), random_state=0), CS)
    if p <= MOST_LABELS and d <= MOST_FEATURES:
        boosting = HistGradientBoostingClassifier(max_iter=40, random_state=0)
        found["boosting"] = (lambda C: MultiOutputClassifier(boosting), [1.0])
    return found


def chances(model: object, X: np.ndarray) -> np.ndarray:
    """Probabilities, or a monotone map of scores to (0, 1)."""
    if isinstance(model, sw.SetClassifier):
        return expit(model.decision_function(X))
    told = model.predict_proba(X)
    if not isinstance(told, list):
        return np.asarray(told)
    columns = zip(told, model.classes_, strict=True)
    return np.stack([t[:, -1] * (len(c) > 1 or c[0] == 1) for t, c in columns], axis=1)


def one_fold(task: tuple[str, int, int, bool]) -> dict[str, dict[str, object]]:
    """Scores of every model and rule by every measure on one fold."""
    warnings.simplefilter("ignore")
    threadpool_limits(1)  # the folds have the cores
    name, fold, seed, quick = task
    X, Y = sample(name)
    train, test = [*KFold(FOLDS, shuffle=True, random_state=seed).split(X)][fold]
    if quick:
        train, test = train[:300], test[:100]
    X_train, X_test = standardized(X[train], X[test])
    Y_train, Y_test = Y[train], Y[test]
    usable = Y_train.any(axis=0) & ~Y_train.all(axis=0)
    Y_train, Y_test = Y_train[:, usable], Y_test[:, usable]
    inner = [*KFold(INNER, shuffle=True, random_state=seed).split(X_train)]
    answers: dict[str, dict[str, object]] = {}
    for kind, (make, Cs) in models(Y_train.shape[1], X.shape[1]).items():
        start = time.perf_counter()
        best = None
        for C in Cs[:2] if quick else Cs:
            p = np.zeros(Y_train.shape)
            for a, b in inner:
                model = make(C).fit(X_train[a], Y_train[a].astype(int))
                p[b] = chances(model, X_train[b])
            if kind in NOT_CALIBRATED or kind == "logistic, balanced":
                merit = -log_loss(Y_train.ravel(), p.ravel(), labels=[False, True])
            else:
                merit = score(Y_train, p > 0.5, "jaccard", "rows")
            if best is None or merit > best[0]:
                best = merit, C, p
        _, C, p = best
        fitted = make(C).fit(X_train, Y_train.astype(int))
        p_test = chances(fitted, X_test)
        seconds = time.perf_counter() - start
        for loss, sets in MEASURES:
            cut = one_threshold(p, Y_train, loss, sets)
            rules = {
                "1/2": p_test > 0.5,
                "one threshold": p_test > cut,
                "a threshold a label": p_test > thresholds_of_labels(p, Y_train, loss),
                "SetDecision, calibrated": decided(
                    p, Y_train, inner, p_test, loss, sets, "sigmoid"
                ),
            }
            if kind in NOT_CALIBRATED:
                rules["SetDecision"] = decided(p, Y_train, inner, p_test, loss, sets, None)
            for rule, predicted in rules.items():
                row = answers.setdefault(f"{kind}: {rule}", {"seconds": seconds, "C": C})
                row[f"{loss} of {sets}"] = score(Y_test, predicted > 0, loss, sets)
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
    tables = []
    rivals = ["logistic: 1/2", "logistic: one threshold", "logistic: a threshold a label"]
    ours = ["logistic: SetDecision", "logistic: SetDecision, calibrated"]
    for measure in measures:
        table = Table(
            f"Logistic regression, {measure}", ["data", *rivals[:3], *ours, "ours − best rival"]
        )
        for name, folds in found.items():
            cells = [estimate(f[key][measure] for f in folds) for key in (*rivals, *ours)]
            best = max(range(3), key=lambda k: cells[k].mean)
            gains = [f[ours[0]][measure] - f[rivals[best]][measure] for f in folds]
            table.rows.append([name, *(c.show() for c in cells), estimate(gains).show()])
        tables.append(table)
    keys = sorted({key for folds in found.values() for f in folds for key in f})
    whole = Table(
        "Every model and rule: mean over the data sets that it was run on",
        ["model: rule", "sets", *measures, "seconds"],
    )
    for key in keys:
        rows = [[f[key] for f in folds if key in f] for folds in found.values()]
        rows = [folds for folds in rows if folds]
        means = [np.mean([np.mean([f[m] for f in folds]) for folds in rows]) for m in measures]
        seconds = np.mean([np.mean([f["seconds"] for f in folds]) for folds in rows])
        whole.rows.append([key, str(len(rows)), *(f"{m:.3f}" for m in means), f"{seconds:.1f}"])
    tables.append(whole)
    lost = []
    for measure in measures:
        for name, folds in found.items():
            for rival in rivals:
                gains = [f[ours[0]][measure] - f[rival][measure] for f in folds]
                change = estimate(gains)
                if change.mean < -(change.error or 0.0):
                    lost.append(f"{name}, {measure}: {rival} by {-change.mean:.3f}")
    notes = [
        "SetDecision behind a rival on the same probabilities by more than a standard error: "
        + ("; ".join(lost) if lost else "nowhere")
    ]
    report(
        __file__,
        "Decisions and thresholds on multi-label data",
        tables,
        choices={
            "folds": f"{FOLDS}, {INNER} inside, shuffled with seed {args.seed}",
            "C": f"{CS} by log loss out of fold; set classifiers {SET_CS} by Jaccard of rows",
            "thresholds": "97 from 0.02 to 0.98 and 1/2, by the measure out of fold",
            "labels": f"present in at least 20 rows; others: {LEAST}",
            "chain": f"up to {MOST_LABELS} labels",
            "boosting": f"and up to {MOST_FEATURES} features, 40 rounds, no tuning",
            "seconds": "of a training part: inner fits for every C, and the last fit",
        },
        data=found,
        notes=notes,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
