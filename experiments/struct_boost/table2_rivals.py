"""StructBoost's Table 2: the rivals with the paper's own settings.

AdaBoost.MH is the paper's boosting. The linear SSVM and one against rest have the paper's grid of
C, 10 to 1000, read as C / m, and features scaled to [-1, 1] by the training part. The splits are
those of table2_multiclass.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.cache import cache_folder, keep
from experiments.shared.report import Table, arguments, parallel, report
from experiments.struct_boost._adaboost_mh import AdaBoostMH
from experiments.struct_boost._multiclass_sets import multiclass, split
from experiments.struct_boost.table2_multiclass import OF_PAPER, PAPER, ROUNDS, error, spread

METHODS = ("AdaBoost.MH", "linear SSVM", "one against rest")
BESIDE = {
    "AdaBoost.MH": "AdaBoost",
    "linear SSVM": "linear SSVM",
    "one against rest": "one against rest",
}
GRID = np.geomspace(10, 1000, 6).tolist()


def scaled(train: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
    """Return the arrays with the features of the first in [-1, 1]; constant ones are 0."""
    low, high = train.min(axis=0), train.max(axis=0)
    half = np.where(high > low, (high - low) / 2, 1.0)
    return [(X - (low + high) / 2) / half for X in (train, *others)]


def candidates(method: str, m: int) -> dict[float, Any]:
    if method == "AdaBoost.MH":
        return {1.0: AdaBoostMH(ROUNDS)}
    kind = {"linear SSVM": "crammer_singer", "one against rest": "ovr"}[method]
    return {C: LinearSVC(C=C / m, multi_class=kind, loss="hinge", random_state=0) for C in GRID}


def run(job: tuple[str, int, str], seed: int) -> Mapping[str, np.ndarray]:
    """Return the test error of a method on one split, from the cache if it is there."""
    name, repeat, method = job
    path = (
        cache_folder() / "table2_rivals" / f"{name}-{seed + repeat}-{method.replace(' ', '_')}.npz"
    )
    if not path.exists():
        train, validation, test = split(multiclass(name), seed + repeat)
        arrays = scaled(train.X, validation.X, test.X)
        parts = [type(s)(X, s.y) for s, X in zip((train, validation, test), arrays, strict=True)]
        least, answer = np.inf, {}
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for setting, model in candidates(method, len(train)).items():
                model.fit(parts[0].X, parts[0].y)
                missed = error(model, parts[1])
                if missed < least:
                    least, answer = missed, {"error": error(model, parts[2]), "setting": setting}
        keep(path, **answer)
    with np.load(path) as arrays:
        return dict(arrays)


def main() -> None:
    given = arguments("StructBoost, Table 2, the rivals", repeats=5)
    names = ["vowel"] if given.quick else list(PAPER)
    jobs = [(n, r, method) for n in names for method in METHODS for r in range(given.repeats)]
    answers = dict(parallel(partial(run, seed=given.seed), jobs, "fits", given.jobs))
    table = Table(
        "Test error in %, mean ± deviation",
        ["set", *(f"{m}{w}" for m in METHODS for w in ("", ", paper"))],
    )
    data = {}
    for name in names:
        cells = []
        for method in METHODS:
            errors = np.array(
                [float(answers[name, r, method]["error"]) for r in range(given.repeats)]
            )
            printed = PAPER[name][OF_PAPER.index(BESIDE[method])]
            cells += [spread(errors), f"{printed[0]} ± {printed[1]}"]
            data[f"{name}, {method}"] = errors.tolist()
        table.rows.append([name, *cells])
    choices = {
        "AdaBoost.MH": f"{ROUNDS} confidence-rated stumps, thresholds among 255 quantiles",
        "C": "10 to 1000 in six steps, divided by the number of examples, by the validation part",
        "features": "scaled to [-1, 1] by the training part",
        "splits": "those of table2_multiclass.py",
        "repeats": given.repeats,
        "seed": given.seed,
    }
    report(
        __file__,
        "StructBoost, Table 2: the rivals with the paper's settings",
        [table],
        choices=choices,
        data=data,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
