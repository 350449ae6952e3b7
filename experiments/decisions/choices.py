"""The defaults of SetDecision, presence and calibration, on data that no other table reports.

    python experiments/decisions/choices.py [--quick]

There are six artificial multi-label sets. Some have counts of words (from scikit-learn), with noise
added. The others have labels that share a hidden cause, from frequent to rare, and many
uninformative features. Logistic regression is used as in scikit-learn (C = 1, which is
overconfident where there are many features), and with C chosen by cross-validation. A cell is the
mean of a rule minus that of the better of two rivals: one tuned threshold, and one tuned threshold
per label.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.decisions._decided_scores import (
    MEASURES,
    decided,
    one_threshold,
    score,
    thresholds_of_labels,
)
from experiments.decisions._multilabel_scores import Fold, fitted
from experiments.shared.data import standardized
from experiments.shared.report import Table, arguments, estimate, parallel, report

FOLDS, INNER = 4, 3
RULES = {
    f"{'presence' if presence else 'independent'}, {calibrate or 'not calibrated'}": {
        "presence": presence,
        "calibrate": calibrate,
    }
    for presence in (None, "fit")
    for calibrate in (None, "sigmoid", "isotonic")
}
MODELS = {"C = 1": [1.0], "C chosen": None}
Data = tuple[np.ndarray, np.ndarray]


def words(seed: int, n: int, d: int, p: int, labels: int, noise: float) -> Data:
    """Return documents with about ``labels`` labels each, and noise on their word counts."""
    X, Y = make_multilabel_classification(
        n, d, n_classes=p, n_labels=labels, random_state=seed, allow_unlabeled=seed % 2 == 0
    )
    rng = np.random.default_rng(seed)
    return X + noise * X.std(axis=0) * rng.standard_normal(X.shape), Y > 0


def hidden_cause(seed: int, n: int, d: int, p: int, rate: float) -> Data:
    """Return labels that depend on ten features each, and on a cause that no feature shows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = 2 * X[:, :10] @ rng.standard_normal((10, p)) / np.sqrt(10)
    scores += rng.standard_normal((n, 1)) + rng.logistic(size=(n, p))
    rates = np.minimum(0.9, rate * np.exp(rng.uniform(-1.0, 0.7, p)))
    return X, scores > [np.quantile(s, 1 - r) for s, r in zip(scores.T, rates, strict=True)]


SETS: dict[str, Callable[[], Data]] = {
    "words, few": lambda: words(0, 600, 20, 5, 2, 0.5),
    "words, many": lambda: words(1, 800, 200, 10, 3, 0.5),
    "words, noisy": lambda: words(2, 1500, 400, 14, 2, 1.0),
    "frequent labels": lambda: hidden_cause(3, 800, 50, 8, 0.25),
    "rare labels": lambda: hidden_cause(4, 1500, 300, 12, 0.1),
    "very rare labels": lambda: hidden_cause(5, 1000, 20, 6, 0.05),
}


def gains(task: tuple[str, str, bool]) -> dict[str, dict[str, list[float]]]:
    """Return the gains of each fold, per measure and rule."""
    name, model, quick = task
    X, Y = SETS[name]()
    found: dict[str, dict[str, list[float]]] = {}
    for train, test in [*KFold(FOLDS, shuffle=True, random_state=7).split(X)][: 1 if quick else 4]:
        X_train, X_test = standardized(X[train], X[test])
        usable = Y[train].any(axis=0) & ~Y[train].all(axis=0)
        inner = [*KFold(INNER, shuffle=True, random_state=7).split(X_train)]
        data = Fold(X_train, Y[train][:, usable], X_test, Y[test][:, usable], inner)
        scores = fitted(data, "logistic", quick, MODELS[model])
        p, asked, truth = scores.out_of_fold, scores.test, data.Y_train
        for loss, sets in MEASURES:
            row = found.setdefault(f"{loss} of {sets}", {})
            masks = {
                "one threshold": asked > one_threshold(p, truth, loss, sets),
                "a threshold a label": asked > thresholds_of_labels(p, truth, loss),
            }
            for rule, options in RULES.items():
                if sets == "rows" or options["presence"] is None:
                    masks[rule] = decided(p, truth, inner, asked, loss, sets, **options)
            for rule, mask in masks.items():
                row.setdefault(rule, []).append(score(data.Y_test, mask > 0, loss, sets))
    return found


def main() -> None:
    args = arguments(__doc__.splitlines()[0], repeats=1)
    names = list(SETS)[:1] if args.quick else list(SETS)
    found = {}
    tasks = [(name, model, args.quick) for model in MODELS for name in names]
    for (name, model, _), answer in parallel(gains, tasks, "data sets", args.jobs):
        found[f"{name}, {model}"] = answer
    tables = []
    for measure in (f"{loss} of {sets}" for loss, sets in MEASURES):
        rules = [rule for rule in RULES if rule in next(iter(found.values()))[measure]]
        table = Table(f"{measure}: minus the better tuned threshold", ["data", *rules])
        means = []
        for name, answer in found.items():
            row = answer[measure]
            rival = max(("one threshold", "a threshold a label"), key=lambda k: np.mean(row[k]))
            ahead = [estimate(np.subtract(row[rule], row[rival])) for rule in rules]
            means.append([gain.mean for gain in ahead])
            table.rows.append([name, *(gain.show() for gain in ahead)])
        table.rows.append(["mean", *(f"{m:+.4f}" for m in np.mean(means, axis=0))])
        tables.append(table)
    report(
        __file__,
        "Defaults of SetDecision, on artificial data",
        tables,
        choices={"folds": f"{FOLDS}, {INNER} inside, shuffled with seed 7"},
        data=found,
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
