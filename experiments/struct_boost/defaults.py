"""StructBoost out of the box: test errors and times of defaults beside scikit-learn's."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.report import Table, arguments, parallel, report
from experiments.struct_boost._multiclass_sets import multiclass, split
from experiments.struct_boost.table2_multiclass import LARGE, PAPER

MODELS = {
    "StructBoostClassifier()": sw.StructBoostClassifier,
    "HistGradientBoosting, stumps": partial(HistGradientBoostingClassifier, max_leaf_nodes=2),
    "HistGradientBoosting": HistGradientBoostingClassifier,
}


def run(job: tuple[str, int], seed: int) -> dict[str, tuple[float, float]]:
    """Test error in per cent and processor seconds of each model; three quarters to train."""
    name, repeat = job
    train, validation, test = split(multiclass(name), seed + repeat)
    X, y = np.vstack([train.X, validation.X]), np.concatenate([train.y, validation.y])
    answer = {}
    for label, make in MODELS.items():
        start = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of the gap at n_estimators
            model = make().fit(X, y)
        seconds = process_time() - start
        answer[label] = 100.0 * float(np.mean(model.predict(test.X) != test.y)), seconds
    return answer


def main() -> None:
    given = arguments(__doc__.splitlines()[0], repeats=5)
    names = ["glass", "svmguide2", "svmguide4"] if given.quick else list(PAPER)
    jobs = [
        (name, repeat) for name in names for repeat in range(1 if name in LARGE else given.repeats)
    ]
    answers = dict(parallel(partial(run, seed=given.seed), jobs, "splits", given.jobs))
    head = ["set", *(f"{label}, {what}" for label in MODELS for what in ("error", "seconds"))]
    table = Table("Test error (%) and processor seconds of a fit, defaults", head)
    figures = {}
    for name in names:
        rows = [answers[job] for job in jobs if job[0] == name]
        means = {label: np.mean([row[label] for row in rows], axis=0) for label in MODELS}
        cells = [f"{value:.3g}" for label in MODELS for value in means[label]]
        table.rows.append([name, *cells])
        figures[name] = {label: [row[label][0] for row in rows] for label in MODELS}
    report(
        __file__,
        "StructBoost out of the box",
        [table],
        choices={
            "splits": f"75/25 at random, seeds from {given.seed}; {given.repeats} repeats, 1 for "
            f"{', '.join(sorted(LARGE))}",
            "settings": "the defaults of each; none of these sets was looked at to choose ours",
            "stumps": "scikit-learn's with max_leaf_nodes=2: 100 rounds of a stump for each class",
        },
        data=figures,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
