"""Boosting ten classes: seconds and test error compared with scikit-learn's two boosters.

pendigits, the official split (7,494 rows of 16 features to train, 3,498 to test), 200 rounds each,
one thread, processor seconds. Ours are several settings of the same estimator, all scored on the
same test rows. None was chosen by validation, so the best of them does not estimate the result of a
search. The two of scikit-learn have their defaults, with as many rounds. A round of AdaBoost adds
one stump with a vote for every class, a round of the histogram booster ten trees of up to 31
leaves, and a round of ours one weak learner with a weight for every class, or ``columns_per_round``
of them. The data are read from ``SETWISE_DATA``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, as_seconds, report
from experiments.shared.data import svmlight

ROUNDS = 200
HEAD = ["model", "weak learners", "seconds", "training error", "test error", "relative gap"]


def contenders(rounds: int) -> dict[str, Callable[[], Any]]:
    """Return new models, by name."""

    def ours(**options: Any) -> Callable[[], Any]:
        return lambda: sw.StructBoostClassifier(
            **{"C": 100.0, "n_estimators": rounds, "random_state": 0} | options
        )

    return {
        "StructBoostClassifier(C=100)": ours(),
        "StructBoostClassifier(C=1000)": ours(C=1000.0),
        'StructBoostClassifier(C=3000, surrogate="logistic")': ours(C=3e3, surrogate="logistic"),
        'StructBoostClassifier("perceptron")': ours(estimator="perceptron"),
        'StructBoostClassifier("tree", columns_per_round=10)': ours(
            estimator="tree", options=sw.learning.BoostOptions(columns_per_round=10)
        ),
        "AdaBoostClassifier()": lambda: AdaBoostClassifier(n_estimators=rounds, random_state=0),
        "HistGradientBoostingClassifier()": lambda: HistGradientBoostingClassifier(
            max_iter=rounds, early_stopping=False, random_state=0
        ),
    }


def learners(model: Any) -> int:
    """Return the number of stumps, perceptrons or trees that a prediction evaluates."""
    if isinstance(model, sw.StructBoostClassifier):
        return int(np.count_nonzero(np.any(model.estimator_weights_, axis=-1)))
    if isinstance(model, HistGradientBoostingClassifier):
        return sum(map(len, model._predictors))
    return len(model.estimators_)


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    data = svmlight("pendigits.scale", "pendigits.scale.t")
    train, test = data.train, data.test
    rounds, repeats = ROUNDS, 2
    if args.quick:
        rounds, repeats = 20, 1
        train = train.take(np.arange(1000))
    X, y = (np.ascontiguousarray(part) for part in (train.X, train.y))
    table, rows = [HEAD], []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for name, new in contenders(rounds).items():
            seconds = []
            for _ in range(repeats):
                start = process_time()
                model = new().fit(X, y)
                seconds.append(process_time() - start)
            row = {
                "model": name,
                "learners": learners(model),
                "seconds": float(np.median(seconds)),
                "training_error": 1.0 - float(model.score(X, y)),
                "test_error": 1.0 - float(model.score(test.X, test.y)),
                "relative_gap": getattr(model, "gap_", None),
            }
            rows.append(row)
            gap = row["relative_gap"]
            table.append(
                [
                    name,
                    str(row["learners"]),
                    as_seconds(row["seconds"]),
                    f"{100 * row['training_error']:.1f} %",
                    f"{100 * row['test_error']:.1f} %",
                    "" if gap is None else f"{gap:.2f}",
                ]
            )
            print("  ".join(table[-1]), flush=True)
    report(
        "struct_boost",
        table,
        rows,
        measured=f"pendigits, {rounds} rounds, one thread, processor seconds, median of {repeats}",
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
