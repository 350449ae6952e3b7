"""200 stumps for several classes: seconds and test error compared with scikit-learn's stumps.

Ours have a weight for every class. Times are processor seconds of one thread, end to end from
arrays. The peer is the histogram booster with two leaves per tree, 200 rounds, and a tree for every
class in each. Both are tuned alike: C from (10, 100, 1000) and the learning rate from (0.1, 0.3, 1)
by the error on a quarter of the training rows; the seconds are those of the last fit, on all rows.
With C="auto", the default, the seconds include the fits that choose C. ``waves`` are Breiman's
waveforms with 19 columns of noise, ``digits`` scikit-learn's with noise, drawn with replacement,
``clusters`` from ``make_classification``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, as_seconds, report

ROUNDS, TEST = 200, 5000
HEAD = ["data", "model", "seconds", "test error", "relative gap", "times the rival's"]


def waves(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw (n, 40) features of 3 classes: mixtures of two of three triangles, with noise."""
    hats = np.maximum(6 - np.abs(np.arange(21) - np.array([[6], [14], [10]])), 0)
    y, share = rng.integers(0, 3, n), rng.random((n, 1))
    X = share * hats[[0, 0, 1]][y] + (1 - share) * hats[[1, 2, 2]][y]
    return np.column_stack([X, np.zeros((n, 19))]) + rng.standard_normal((n, 40)), y


def digits(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw (n, 64) features of 10 classes."""
    X, y = load_digits(return_X_y=True)
    rows = rng.integers(0, len(y), n)
    return X[rows] + rng.normal(0, 2, (n, 64)), y[rows]


def clusters(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw (n, 20) features of 5 classes."""
    return make_classification(
        n,
        20,
        n_informative=10,
        n_redundant=5,
        n_classes=5,
        n_clusters_per_class=1,
        class_sep=1.5,
        random_state=int(rng.integers(2**31)),
    )


DATA = {"waves": (waves, 3500), "digits": (digits, 10_000), "clusters": (clusters, 100_000)}


def ours(C: float) -> Any:
    return sw.StructBoostClassifier(C=C, n_estimators=ROUNDS)


def theirs(rate: float) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=ROUNDS,
        max_leaf_nodes=2,
        learning_rate=rate,
        early_stopping=False,
        random_state=0,
    )


def tuned(new: Callable[[float], Any], grid: tuple[float, ...], X: Any, y: Any) -> float:
    """Return the setting with the fewest mistakes on the last quarter of the rows."""
    cut = 3 * len(y) // 4
    scores = [new(value).fit(X[:cut], y[:cut]).score(X[cut:], y[cut:]) for value in grid]
    return grid[int(np.argmax(scores))]


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    table, rows = [HEAD], []
    rates, prices = (0.1, 0.3, 1.0), (10.0, 100.0, 1000.0)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for name, (draw, n) in DATA.items():
            if args.quick:
                n //= 10
            X, y = draw(n + TEST, np.random.default_rng(0))
            train, test = (X[:n], y[:n]), (X[n:], y[n:])
            rate = tuned(theirs, rates, *train)
            chosen = tuned(ours, prices, *train)
            contenders = {f"HistGradientBoosting, stumps, learning_rate={rate:g}": theirs(rate)}
            for C in sorted({100.0, 1000.0, chosen}):
                mark = " (chosen)" if chosen == C else ""
                contenders[f"StructBoostClassifier(C={C:g}){mark}"] = ours(C)
            for kind in ("stump", "step"):
                contenders[f'StructBoostClassifier("{kind}", C="auto")'] = sw.StructBoostClassifier(
                    kind
                )
            rival = None
            for title, model in contenders.items():
                start = process_time()
                model.fit(*train)
                seconds = process_time() - start
                rival = rival or seconds
                gap = getattr(model, "gap_", None)
                error = 1.0 - float(model.score(*test))
                data = f"{name}, {n} x {X.shape[1]}, {len(np.unique(y))} classes"
                rows.append(
                    {"data": data, "model": title, "seconds": seconds, "error": error, "gap": gap}
                )
                table.append(
                    [
                        data,
                        title,
                        as_seconds(seconds),
                        f"{100 * error:.1f} %",
                        "" if gap is None else f"{gap:.3f}",
                        f"{seconds / rival:.2f}",
                    ]
                )
                print("  ".join(table[-1]), flush=True)
    report(
        "struct_boost_speed",
        table,
        rows,
        measured=f"{ROUNDS} rounds, one thread, processor seconds",
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
