"""Fitted ensembles with fewer trees on the sets of StructBoost's Table 2, beside other ways.

Results are cached, in a file per set, ensemble and split. Empty the folder ``thin`` of the cache
after a change of the library.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import setwise as sw
from setwise.estimators._thinning._pool import TreePool, tree_pool
from setwise.estimators._thinning._trees import trees_of

matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.cache import cache_folder
from experiments.shared.data import Sample
from experiments.shared.report import Table, arguments, parallel, report, result
from experiments.struct_boost._multiclass_sets import multiclass, split

SETS = (
    "glass",
    "svmguide2",
    "svmguide4",
    "vowel",
    "dna",
    "segment",
    "satimage",
    "usps",
    "pendigits",
    "mnist1000",
)
TREES, ROUNDS = 200, 30
ENSEMBLES = ("forest", "boosting", "LightGBM")
MOST_ROWS = 1000  # the largest number of validation rows for the rival by gradient steps
BUDGETS = (5, 10, 20, 40, 80)


def ensemble(kind: str, seed: int) -> object:
    if kind == "forest":
        return RandomForestClassifier(TREES, random_state=seed)
    if kind == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=ROUNDS, n_jobs=1, verbose=-1, random_state=seed)
    return HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, random_state=seed)


def pool_of(model: object, sample: Sample) -> TreePool:
    """Return the outputs of all trees on all rows, scaled."""
    trees = trees_of(model)
    n = len(sample.y)
    return tree_pool(trees, trees.rows(model, sample.X), n, np.arange(n))


def error_of(model: object, pool: TreePool, weights: np.ndarray, y: np.ndarray) -> float:
    """Return the error of the trees with these weights, plus the initial score of boosting."""
    padded = np.zeros(pool.n_ids)
    padded[: len(weights)] = weights * pool.scale
    scores = pool.scores(padded, len(model.classes_))
    scores += np.reshape(getattr(model, "_baseline_prediction", 0.0), (-1, 1))
    return 100.0 * float(np.mean(model.classes_[scores.argmax(axis=0)] != y))


def sparse_logistic(
    model: object, val: Sample, test: Sample, seed: int
) -> tuple[int, float, float]:
    """Return trees, test error and seconds of l1 logistic regression on all outputs.

    The features are the outputs of the trees, one probability per class and tree for a forest. A
    tree counts if any of its features has a weight. A third of the rows chooses C; then all rows
    are fitted.
    """
    start = time.process_time()
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(val.y))[:MOST_ROWS]
    features = [features_of(model, sample.X) for sample in (val, test)]
    owner = np.repeat(np.arange(features[0].shape[1] // width(model)), width(model))
    learn, held_out = rows[len(rows) // 3 :], rows[: len(rows) // 3]
    best, least = 1.0, np.inf
    for C in (0.03, 0.3, 3.0):
        fitted = logistic(C).fit(features[0][learn], val.y[learn])
        error = np.mean(fitted.predict(features[0][held_out]) != val.y[held_out])
        if error < least:
            best, least = C, error
    fitted = logistic(best).fit(features[0][rows], val.y[rows])
    kept = len(np.unique(owner[np.any(fitted.coef_ != 0, axis=0)]))
    error = 100.0 * float(np.mean(fitted.predict(features[1]) != test.y))
    return kept, error, time.process_time() - start


def logistic(C: float) -> LogisticRegression:
    return LogisticRegression(l1_ratio=1.0, C=C, solver="saga", max_iter=30, random_state=0)


def width(model: object) -> int:
    return len(model.classes_) if isinstance(model, RandomForestClassifier) else 1


def features_of(model: object, X: np.ndarray) -> np.ndarray:
    trees = trees_of(model)
    outputs = [
        o.reshape(-1, X.shape[0]).T if trees.shared else o[:, None]
        for o in trees.outputs(trees.rows(model, X))
    ]
    return np.concatenate(outputs, axis=1)


def run(job: tuple[str, str, int], seed: int) -> dict[str, object]:
    """Return the result of ``compute``, from the cache if it is there."""
    name, kind, repeat = job
    path = cache_folder() / "thin" / f"{name}-{seed + repeat}-{kind}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(compute(job, seed), default=float))
        part.rename(path)
    answer: dict[str, object] = json.loads(path.read_text())
    return answer


def compute(job: tuple[str, str, int], seed: int) -> dict[str, object]:
    """Return numbers of trees and test errors of one ensemble on one split."""
    name, kind, repeat = job
    train, val, test = split(multiclass(name), seed + repeat)
    answer: dict[str, object] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        model = ensemble(kind, seed + repeat).fit(train.X, train.y)
        answer["seconds to fit"] = time.process_time() - start
        start = time.process_time()
        few = sw.thin(model, val.X, val.y)
        answer["seconds"] = time.process_time() - start
        answer |= {"trees": few.n_trees_, "kept": few.n_kept, "gap": few.gap_, "C": few.C_}
        for part, sample in (("validation", val), ("test", test)):
            answer[f"{part} before"] = 100.0 * float(np.mean(model.predict(sample.X) != sample.y))
        answer["test"] = 100.0 * float(np.mean(few.predict(test.X) != test.y))
        path = few.path_
        answer["cross-validated"] = 100.0 * float(path["loss"].min())
        pool = pool_of(model, test)
        first = np.zeros(few.n_trees_)
        first[: few.n_kept] = 1.0
        answer["truncated"] = error_of(model, pool, first, test.y)
        rng = np.random.default_rng(seed + repeat)
        drawn = [rng.permutation(first) for _ in range(10)]
        answer["at random"] = float(np.mean([error_of(model, pool, w, test.y) for w in drawn]))
        kept, error, seconds = sparse_logistic(model, val, test, seed + repeat)
        answer |= {"l1 kept": kept, "l1": error, "l1 seconds": seconds}
        if kind == "forest":
            bags = sw.thin(model, train.X, train.y, few.C_, oob=True)
            answer |= {"oob kept": bags.n_kept}
            answer["oob"] = 100.0 * float(np.mean(bags.predict(test.X) != test.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the trees were trained on these rows
            known = sw.thin(model, train.X, train.y, few.C_)
        answer |= {"train kept": known.n_kept}
        answer["train"] = 100.0 * float(np.mean(known.predict(test.X) != test.y))
        if repeat == 0 and kind != "LightGBM" and name in ("segment", "satimage"):
            answer["budgets"] = [budget_row(model, few.C_, val, test, pool, b) for b in BUDGETS]
    return answer


def budget_row(
    model: object, C: float, val: Sample, test: Sample, pool: TreePool, most: int
) -> tuple[int, float, float]:
    few = sw.thin(model, val.X, val.y, C, max_trees=most)
    first = np.zeros(few.n_trees_)
    first[:most] = 1.0
    error = 100.0 * float(np.mean(few.predict(test.X) != test.y))
    return few.n_kept, error, error_of(model, pool, first, test.y)


def draw(answers: dict[tuple[str, str, int], dict]) -> None:
    """Draw test error against the number of trees."""
    shown = [job for job in answers if "budgets" in answers[job]]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.2 * len(shown), 3), layout="constrained")
    for axis, job in zip(axes, shown, strict=True):
        row = answers[job]
        kept, error, cut = zip(*row["budgets"], strict=True)
        axis.plot(kept, error, "o-", label="thinned")
        axis.plot(BUDGETS, cut, "s--", label="the first ones")
        axis.axhline(row["test before"], color="0.5", label=f"all {row['trees']}")
        axis.set(title=f"{job[0]}, {job[1]}", xlabel="trees", ylabel="test error (%)", xscale="log")
        axis.legend(fontsize=7, frameon=False)
    figure.savefig(result(__file__, "thin.png"), dpi=110)


def main() -> None:
    given = arguments(__doc__.splitlines()[0], repeats=1)
    names = SETS[:3] if given.quick else SETS
    kinds = ENSEMBLES if find_spec("lightgbm") else ENSEMBLES[:2]
    jobs = [(n, kind, r) for kind in kinds for n in names for r in range(given.repeats)]
    answers = dict(parallel(partial(run, seed=given.seed), jobs, "ensembles", given.jobs))
    tables = []
    for kind in kinds:
        head = ["set", "trees", "kept", "test before", "thinned", "first ones", "at random"]
        head += ["l1 logistic (trees)", "fit s", "thin s", "l1 s", "gap"]
        head += ["out of bag (trees)"] * (kind == "forest") + ["rows of fit (trees)"]
        table = Table(f"Test error (%), {kind}", head)
        for name in names:
            rows = [answers[job] for job in jobs if job[:2] == (name, kind)]

            def mean(key: str, rows: list = rows) -> float:
                return float(np.mean([row[key] for row in rows]))

            cells = [name, f"{mean('trees'):.0f}", f"{mean('kept'):.0f}"]
            cells += [f"{mean(key):.1f}" for key in ("test before", "test", "truncated")]
            cells += [f"{mean('at random'):.1f}", f"{mean('l1'):.1f} ({mean('l1 kept'):.0f})"]
            cells += [f"{mean(key):.1f}" for key in ("seconds to fit", "seconds", "l1 seconds")]
            cells += [f"{mean('gap'):.3f}"]
            for key in ("oob", "train") if kind == "forest" else ("train",):
                cells.append(f"{mean(key):.1f} ({mean(f'{key} kept'):.0f})")
            table.rows.append(cells)
        tables.append(table)
    if not given.quick:
        draw(answers)
    report(
        __file__,
        "Ensembles with fewer trees",
        tables,
        choices={
            "splits": f"50/25/25 at random, seeds from {given.seed}; {given.repeats} repeats: the "
            "half fits the ensemble, the validation quarter the weights, the last one tests",
            "forest": f"RandomForestClassifier({TREES})",
            "boosting": f"HistGradientBoostingClassifier(max_iter={ROUNDS}), a tree a class each",
            "LightGBM": f"LGBMClassifier(n_estimators={ROUNDS})"
            if "LightGBM" in kinds
            else "not importable, so it has no table",
            "thinned": "sw.thin(ensemble, X, y), C chosen by it",
            "first ones, at random": "as many trees as were kept: the first (in boosting whole "
            "rounds in their order), or drawn, mean of 10 draws; with the ensemble's own weights",
            "l1 logistic": "scikit-learn's saga on the outputs of all trees, at most "
            f"{MOST_ROWS} rows of the validation quarter and 30 passes; C of 0.03, 0.3, 3 by a "
            "third of them; a tree counts if any of its outputs has a weight",
            "out of bag, rows of fit": "sw.thin on the training half at the same C, with and "
            "without oob=True",
            "seconds": "of one processor, with those of the choice of C",
        },
        data={" ".join(map(str, job)): answer for job, answer in answers.items()},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
