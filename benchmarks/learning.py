"""Cutting planes against NumPy with a generic solver and liblinear; threads and problem sizes.

Labels are signs of linear functions plus noise; 50 features, 20 labels, the sum of hinge losses
(the Lovász hinge of the Hamming loss), a penalised intercept, relative gap 1e-3. C n = 100, so that
the mean loss has the same weight at every size, unless a row says otherwise. Targets: 10 times
faster than the same method in NumPy with clarabel and a loop over the examples, primal values
within 1e-3; the objective of LinearSVC within 1e-3; 1.6 times faster with two threads; time and
memory linear in n.
"""

from __future__ import annotations

import sys
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.svm import LinearSVC

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared import one_slack_numpy
from benchmarks.shared.measure import (
    RESULTS,
    alternate,
    arguments,
    as_ratio,
    as_seconds,
    ratio,
    report,
    require_close,
    verdict,
)

FEATURES, LABELS, TOLERANCE = 50, 20, 1e-3
TOTAL_WEIGHT = 100.0
AGREEMENT = 1e-3
NUMPY_TARGET, THREADS_TARGET = 10.0, 1.6
LIBLINEAR_TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
BY_NUMPY, BY_THREADS = "one-slack in NumPy, clarabel", "two threads against one"
HEAD = ["question", "examples", "C", "setwise", "peer", "peer / setwise", "objective, relative"]


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (n, 50) and Y (n, 20) in {0, 1}."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((LABELS, FEATURES)) / np.sqrt(FEATURES)
    X = rng.standard_normal((n, FEATURES))
    Y = np.empty((n, LABELS), np.int8)
    for begin in range(0, n, 10**5):  # so that a million examples need no temporary copies
        rows = slice(begin, begin + 10**5)
        scores = X[rows] @ W.T
        Y[rows] = scores + rng.standard_normal(scores.shape) > 0
    return X, Y


def objective(X: np.ndarray, Y: np.ndarray, C: float, coef: np.ndarray, b: np.ndarray) -> float:
    """Return 1/2 |W|^2 + 1/2 |b|^2 + C times the sum of the hinge losses."""
    slack = 1 - np.where(Y, 1.0, -1.0) * (X @ coef.T + b)
    return float(0.5 * (np.sum(coef**2) + np.sum(b**2)) + C * np.maximum(slack, 0).sum())


def ours(X: np.ndarray, Y: np.ndarray, C: float, n_jobs: int = 1) -> sw.SetClassifier:
    """Fit all labels at once."""
    return sw.SetClassifier("hamming", "lovasz", C=C, tol=TOLERANCE, n_jobs=n_jobs).fit(X, Y)


def liblinear(X: np.ndarray, Y: np.ndarray, C: float, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Fit one LinearSVC per label; return coefficients (p, d) and intercepts (p,)."""
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # only the objective that it reached matters
        for y in Y.T:
            svc = LinearSVC(loss="hinge", dual=True, C=C, tol=tol, max_iter=20_000, random_state=0)
            models.append(svc.fit(X, y))
    return np.vstack([m.coef_ for m in models]), np.concatenate([m.intercept_ for m in models])


def compare(
    contenders: dict[str, Callable[[], object]], difference: float, repeats: int
) -> dict[str, object]:
    """Return the times of "setwise" and "peer", whose answers have already been compared."""
    seconds = alternate(contenders, repeats=repeats)
    return {
        "setwise": float(np.median(seconds["setwise"])),
        "peer": float(np.median(seconds["peer"])),
        "fastest setwise": float(seconds["setwise"].min()),
        "fastest peer": float(seconds["peer"].min()),
        "peer / setwise": ratio(seconds["peer"], seconds["setwise"]),
        "difference": difference,
    }


def against_numpy(n: int, repeats: int, classical: bool) -> dict[str, object]:
    """Compare with the same method, or the classical one, in NumPy."""
    X, Y = draw(n)
    C = TOTAL_WEIGHT / n
    signs, with_ones = np.where(Y, 1.0, -1.0), np.column_stack([X, np.ones(n)])
    model = ours(X, Y, C)
    _, theirs, rounds = one_slack_numpy.fit(with_ones, signs, C, TOLERANCE, classical=classical)
    value = objective(X, Y, C, model.coef_, model.intercept_)
    difference = require_close("primal values", value, theirs, AGREEMENT)
    contenders = {
        "setwise": partial(ours, X, Y, C),
        "peer": partial(one_slack_numpy.fit, with_ones, signs, C, TOLERANCE, classical=classical),
    }
    row = compare(contenders, difference, repeats)
    return row | {"n": n, "C": C, "rounds": {"setwise": model.n_iter_, "peer": rounds}}


def against_liblinear(n: int, C: float, repeats: int) -> dict[str, object]:
    """Compare with LinearSVC at its loosest tolerance within 1e-3 of the best known objective."""
    X, Y = draw(n)
    model = ours(X, Y, C)
    value = objective(X, Y, C, model.coef_, model.intercept_)
    for tol in LIBLINEAR_TOLERANCES:
        theirs = objective(X, Y, C, *liblinear(X, Y, C, tol))
        if theirs <= (1 + AGREEMENT) * value:
            break
    difference = require_close("objective of LinearSVC", value, theirs, AGREEMENT)
    contenders = {
        "setwise": partial(ours, X, Y, C),
        "peer": partial(liblinear, X, Y, C, tol),
    }
    row = compare(contenders, difference, repeats)
    return row | {"n": n, "C": C, "rounds": {"setwise": model.n_iter_}, "liblinear tol": tol}


def of_threads(n: int, repeats: int) -> dict[str, object]:
    """Compare two threads ("setwise") with one ("peer"), whose answers are bitwise identical."""
    X, Y = draw(n)
    C = TOTAL_WEIGHT / n
    contenders = {"setwise": partial(ours, X, Y, C, 2), "peer": partial(ours, X, Y, C, 1)}
    two, one = (contender() for contender in contenders.values())
    if not np.array_equal(two.coef_, one.coef_):
        raise SystemExit("the answer depends on the number of threads")
    row = compare(contenders, 0.0, repeats)
    start, used = perf_counter(), process_time()
    contenders["setwise"]()
    processors = (process_time() - used) / (perf_counter() - start)
    return row | {"n": n, "C": C, "rounds": {"setwise": one.n_iter_}, "processors": processors}


def growth(sizes: list[int]) -> list[dict[str, float]]:
    """Return the seconds of a fit and its peak memory beyond the input, for each size."""
    rows = []
    for n in sizes:
        X, Y = draw(n)
        fit = partial(ours, X, Y, TOTAL_WEIGHT / n)
        seconds = []
        for _ in range(5 if n < 10**6 else 2):
            start = perf_counter()
            rounds = fit().n_iter_
            seconds.append(perf_counter() - start)
        tracemalloc.start()
        fit()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append(
            {
                "n": n,
                "seconds": min(seconds),
                "rounds": rounds,
                "input_bytes": X.nbytes + Y.nbytes,
                "peak_bytes": peak,
            }
        )
        print(f"growth: n = {n:,}, {min(seconds):.3g} s, {peak / 2**20:.0f} MiB", flush=True)
    return rows


def exponent(rows: list[dict[str, float]], what: str) -> float:
    """Return the slope of log time or memory against log n over the three largest sizes."""
    n, y = (np.log([row[key] for row in rows[-3:]]) for key in ("n", what))
    return float(np.polyfit(n, y, 1)[0])


def plot(rows: list[dict[str, float]]) -> None:
    """Plot time and memory against n, with lines of slope 1 through the largest."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n, seconds, rounds, peak, inputs = (
        np.array([row[key] for row in rows], float)
        for key in ("n", "seconds", "rounds", "peak_bytes", "input_bytes")
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    curves = [
        (left, seconds, "o-", "C0", "fit, one thread"),
        (left, seconds / rounds, "s-", "C2", "one round"),
        (right, inputs / 2**20, "s-", "C1", "X and Y themselves"),
        (right, peak / 2**20, "o-", "C0", "taken by the fit, at most"),
    ]
    for axes, y, style, color, label in curves:
        axes.loglog(n, y, style, color=color, label=label)
        axes.loglog(n, y[-1] * n / n[-1], ":", color=color, alpha=0.7)
    left.plot([], [], ":", color="0.4", label="linear")
    left.set(xlabel="examples", ylabel="seconds", title="time")
    right.set(xlabel="examples", ylabel="MiB", title="memory")
    for axes in (left, right):
        axes.grid(which="major", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.suptitle(f"Hinge losses of {LABELS} labels, {FEATURES} features, relative gap 1e-3")
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "learning_growth.png", dpi=150, metadata={"Software": None})


def cells(row: dict) -> list[str]:
    """Return a row of the table."""
    return [
        row["question"],
        f"{row['n']:,}",
        f"{row['C']:g}",
        f"{as_seconds(row['setwise'])}, {row['rounds']['setwise']} rounds",
        as_seconds(row["peer"]),
        as_ratio(row["peer / setwise"]),
        f"{row['difference']:.0e}" if row["difference"] else "the same",
    ]


def main() -> None:
    args = arguments(__doc__)
    few = args.quick
    by_liblinear = "LinearSVC, a fit for each label"
    questions = [
        (BY_NUMPY, partial(against_numpy, 1000, 2 if few else 9, False)),
        (by_liblinear, partial(against_liblinear, 10**4, TOTAL_WEIGHT / 10**4, 3)),
        (BY_THREADS, partial(of_threads, 10**4 if few else 10**5, 3 if few else 15)),
    ]
    if not few:
        questions[1:1] = [(f"{BY_NUMPY}, full steps", partial(against_numpy, 1000, 3, True))]
        questions[3:3] = [
            (by_liblinear, partial(against_liblinear, 10**4, 1.0, 3)),
            (by_liblinear, partial(against_liblinear, 10**5, TOTAL_WEIGHT / 10**5, 3)),
        ]
    rows = []
    for name, question in questions:
        rows.append({"question": name} | question())
        print(f"{name}: {as_ratio(rows[-1]['peer / setwise'])}", flush=True)
    sizes = [10**3, 10**4, 10**5] if few else [10**3, 10**4, 10**5, 3 * 10**5, 10**6]
    grown = growth(sizes)
    faster, threads = (rows[k]["peer / setwise"]["median"] for k in (0, -1))
    notes = [
        f"NumPy and clarabel: {verdict(faster, NUMPY_TARGET)}",
        f"two threads: {verdict(threads, THREADS_TARGET)}; by the fastest of each "
        f"{rows[-1]['fastest peer'] / rows[-1]['fastest setwise']:.2f}. In a last run they got "
        f"{rows[-1]['processors']:.2f} processors; near 1, other work had the rest, and the "
        "ratio says little",
        f"growth from {sizes[-3]:,} to {sizes[-1]:,} examples: time as n to the power "
        f"{exponent(grown, 'seconds'):.2f}, memory beyond the input as n to the power "
        f"{exponent(grown, 'peak_bytes'):.2f}; {as_seconds(grown[-1]['seconds'])} and "
        f"{grown[-1]['peak_bytes'] / 2**20:.0f} MiB at the end (results/learning_growth.png)",
        "LinearSVC runs with the loosest tolerance that comes within 1e-3 of our objective, one "
        "fit a label; in the row of threads, setwise is two threads and the peer is one.",
    ]
    table = [HEAD, *map(cells, rows)]
    data = {"rows": rows, "growth": grown}
    report("learning", table, data, notes=notes, quick=args.quick)
    if not args.quick:
        plot(grown)


if __name__ == "__main__":
    main()
