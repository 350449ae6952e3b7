"""StructBoost's Table 3: AdaBoost.MH, the paper's rival, on the splits of table3_taxonomy."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.data import standardized
from experiments.shared.report import Table, arguments, estimate, parallel, report
from experiments.struct_boost._adaboost_mh import AdaBoostMH
from experiments.struct_boost._multiclass_sets import hierarchical
from experiments.struct_boost.table3_taxonomy import FEW, TRAIN, _heights, drawn

ROUNDS = 500


def run(job: tuple[str, int], n: int, seed: int) -> tuple[float, float]:
    """Return 1/0 loss and tree loss on the official test part."""
    name, repeat = job
    dataset, parents = hierarchical(name)
    train, _ = drawn(dataset.train, n, seed + repeat)
    X, X_test = standardized(train.X, dataset.test.X)
    predicted = AdaBoostMH(ROUNDS * n // TRAIN).fit(X, train.y).predict(X_test)
    height = _heights(parents, len(dataset.labels))
    y = dataset.test.y
    return float(np.mean(predicted != y)), float(np.mean(height[y, predicted]))


def main() -> None:
    given = arguments(__doc__.splitlines()[0], repeats=2)
    names = ["ImCLEF07D"] if given.quick else ["ImCLEF07A", "ImCLEF07D"]
    jobs = [(name, repeat) for name in names for repeat in range(given.repeats)]
    one = partial(run, n=FEW if given.quick else TRAIN, seed=given.seed)
    answers = dict(parallel(one, jobs, "splits", given.jobs))
    table = Table("X-ray images, AdaBoost.MH", ["set", "1/0 loss", "tree loss"])
    data = {}
    for name in names:
        rows = [answers[job] for job in jobs if job[0] == name]
        data[name] = [estimate(row[k] for row in rows) for k in (0, 1)]
        table.rows.append([name, *(e.show() for e in data[name])])
    report(
        __file__,
        "StructBoost, Table 3: AdaBoost.MH",
        [table],
        choices={
            "splits": "those of table3_taxonomy.py",
            "AdaBoost.MH": f"{ROUNDS} confidence-rated stumps, thresholds among 255 quantiles",
            "repeats": given.repeats,
            "seed": given.seed,
        },
        data=data,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
