"""Few positives and a noisy signal: cases where the minimum of a surrogate predicts nothing.

    python experiments/no_paper/rare_positives.py [--quick]

The data are synthetic. One sample is one set with one Jaccard index; 5 % are positive, by a linear
score plus noise. With increasing noise the minimum of the Lovász hinge approaches W = 0, until it
is W = 0 for every C, because 0 is then a subgradient of the risk there. Logistic regression with a
threshold is the control.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.report import Table, arguments, estimate, parallel, report

TRAIN, TEST, FEATURES, SHARE = 2000, 20000, 10, 0.05
NOISE = [0.0, 0.2, 0.4, 0.5, 0.65, 1.0]
ROUNDS, TOLERANCE = 1000, 1e-3

# Each row has its own values of C: the hinge is a sum over elements, the others are one set's loss.
LARGE, SMALL = [1.0, 10.0, 100.0, 1000.0], [0.001, 0.01, 0.1]
METHODS = {
    "Lovász hinge": ({}, LARGE),
    "Lovász hinge, balanced": ({"class_weight": "balanced"}, LARGE),
    "slack rescaling": ({"surrogate": "slack"}, LARGE),
    "hinge": ({"surrogate": "hinge"}, SMALL),
    "hinge, balanced": ({"surrogate": "hinge", "class_weight": "balanced"}, SMALL),
}
CONTROL = "logistic regression"


def sample(n: int, noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, d), and which have the highest 5 % of x w + noise z, with |w| = 1."""
    X = rng.standard_normal((n, FEATURES))
    signal = X.sum(axis=1) / np.sqrt(FEATURES) + noise * rng.standard_normal(n)
    return X, signal > norm.ppf(1.0 - SHARE) * np.hypot(1.0, noise)


def jaccard(y: np.ndarray, predicted: np.ndarray) -> float:
    return 1.0 - sw.losses.Jaccard()(y, predicted)


def best_threshold(scores: np.ndarray, y: np.ndarray) -> float:
    """Return the cut with the best Jaccard index, halfway between two scores or below all."""
    order = np.argsort(-scores)
    ranked, found = scores[order], np.cumsum(y[order])
    index = found / (y.sum() + np.arange(1, len(y) + 1) - found)
    below = np.append(ranked[1:], -np.inf)
    k = int(np.argmax(np.where(below < ranked, index, -1.0)))  # equal scores are not separated
    return float(0.5 * (ranked[k] + below[k]))


def evaluate(model: object, validation: tuple, test: tuple) -> dict[str, float]:
    """Return a model's Jaccard index as it is, and with the threshold tuned on validation data."""
    X, y = test
    scores = model.decision_function(X)  # type: ignore[attr-defined]
    cut = best_threshold(model.decision_function(validation[0]), validation[1])  # type: ignore[attr-defined]
    return {"as it is": jaccard(y, scores > 0), "threshold": jaccard(y, scores > cut)}


def one_repeat(repeat: int, seed: int, scale: float) -> dict[str, dict[str, dict[str, float]]]:
    """Run every method at every noise, with C chosen on the validation sample."""
    warnings.simplefilter("ignore", UserWarning)  # an empty prediction is expected here
    results: dict[str, dict[str, dict[str, float]]] = {}
    for noise in NOISE:
        rng = np.random.default_rng([seed, repeat, int(100 * noise)])
        sizes = (int(TRAIN * scale), int(TRAIN * scale), TEST)
        train, validation, test = (sample(n, noise, rng) for n in sizes)
        found = results[f"{noise:g}"] = {}
        found[CONTROL] = evaluate(LogisticRegression().fit(*train), validation, test)
        for name, (options, grid) in METHODS.items():
            models = [
                sw.SetClassifier("jaccard", C=C, tol=TOLERANCE, max_iter=ROUNDS, **options).fit(
                    *train
                )
                for C in grid
            ]
            best = models[int(np.argmax([model.score(*validation) for model in models]))]
            found[name] = {
                **evaluate(best, validation, test),
                "norm": float(np.hypot(np.linalg.norm(best.coef_), best.intercept_[0])),
                "zero": float(not any(model.coef_.any() for model in models)),
                "gap": max(model.gap_ for model in models),
            }
    return results


def main() -> None:
    given = arguments(__doc__, repeats=10)
    scale = 0.25 if given.quick else 1.0
    task = partial(one_repeat, seed=given.seed, scale=scale)
    answers = [a for _, a in parallel(task, range(given.repeats), "repeats", given.jobs)]
    names = [*METHODS, CONTROL]
    tables, data = [], {}
    for how in ("as it is", "threshold"):
        title = f"Jaccard index at test, {how}"
        tables.append(Table(title, ["trained with", *(f"noise {noise:g}" for noise in NOISE)]))
        for name in names:
            cells = [estimate(a[f"{noise:g}"][name][how] for a in answers) for noise in NOISE]
            tables[-1].rows.append([name, *(cell.show() for cell in cells)])
            data[f"{name}, {how}"] = dict(zip(map(str, NOISE), cells, strict=True))
    zero = Table("Draws whose minimum is W = 0, for every C", ["trained with", *tables[0].head[1:]])
    for name in METHODS:
        counts = [sum(a[f"{noise:g}"][name]["zero"] for a in answers) for noise in NOISE]
        zero.rows.append([name, *(f"{count:.0f} of {len(answers)}" for count in counts)])
        data[f"{name}, zero"] = dict(zip(map(str, NOISE), counts, strict=True))
    gap = max(a[f"{noise:g}"][name]["gap"] for a in answers for noise in NOISE for name in METHODS)
    report(
        __file__,
        "Few positives and a noisy signal",
        [*tables, zero],
        choices={
            "data": f"{FEATURES} standard normal features, positive where x w + noise z is among "
            f"its highest {SHARE:.0%}, |w| = 1, z standard normal; {int(TRAIN * scale)} samples to "
            f"train, as many to choose C and the threshold, {TEST} to test",
            "repeats": f"{given.repeats}, each a new draw, mean ± standard error",
            "seed": given.seed,
            "C": f"of {LARGE}, for the hinge of {SMALL}, by the index on the validation sample",
            "threshold": "the cut of the scores with the best index on the validation sample",
            "logistic regression": "scikit-learn's, with its defaults",
            "solver": f"SetClassifier to a relative gap of {TOLERANCE:g} or {ROUNDS} rounds; the "
            f"largest gap was {gap:.1e}",
        },
        data=data,
        notes=[
            "W = 0 is the minimum for one C if and only if it is for every C: then 0 is a "
            "subgradient of the risk at W = 0."
        ],
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
