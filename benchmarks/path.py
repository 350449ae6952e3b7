"""The cost of a path of C if every fit starts from the planes of the previous one.

The rounds of ``one_slack`` over eight values of C in two decades, warm and cold, are compared with
the hardest fit alone. Rounds are counted instead of seconds: a round is one call of the oracle. The
last column is a lower limit for any path: every fit starts from the planes of the previous one and
from its own minimiser, so that all rounds are spent on the proof.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import setwise as sw
from setwise.learning import one_slack
from setwise.learning._cutting_planes._fit import Planes

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, report

HEAD = [
    "surrogate",
    "C",
    "path",
    "rounds, warm",
    "rounds, cold",
    "hardest fit alone",
    "warm / hardest",
    "proofs alone",
]


def risk(surrogate: sw.surrogates.Surrogate, n: int, d: int, p: int) -> tuple[Callable, int]:
    """Return the risk of p labels, noisy linear functions of d features, and its dimension."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    truth = X @ rng.normal(size=(d, p)) + 3 * rng.normal(size=(n, p)) > 0

    def oracle(w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = surrogate.value_and_gradient(truth, X @ w.reshape(p, d).T)
        return float(values.sum()), (slopes.T @ X).ravel()

    return oracle, p * d


def proofs(oracle: Callable, dimension: int, path: np.ndarray) -> list[int]:
    """Return the rounds of each fit that starts at its own minimiser."""
    planes, rounds = Planes(np.empty((0, dimension)), np.empty(0)), []
    for C in path:
        minimizer = one_slack(oracle, dimension, C, tol=1e-4)
        fit = one_slack(oracle, dimension, C, init=replace(minimizer, planes=planes))
        planes = fit.planes
        rounds.append(fit.n_iter)
    return rounds


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    large, small = (1000, 50, 20), (200, 15, 6)
    if args.quick:
        large = (200, 20, 6)
    problems = [
        ("Lovász hinge, Hamming", sw.surrogates.LovaszHinge("hamming"), large, 0.01),
        ("Lovász hinge, Jaccard", sw.surrogates.LovaszHinge("jaccard"), large, 0.01),
        ("margin rescaling, Jaccard", sw.surrogates.MarginRescaling("jaccard"), small, 0.1),
    ]
    table, data = [HEAD], []
    for name, surrogate, size, least in problems:
        oracle, dimension = risk(surrogate, *size)
        grid = np.geomspace(least, 100 * least, 8)
        cold = [one_slack(oracle, dimension, C).n_iter for C in grid]
        for order, path in (("rising", grid), ("falling", grid[::-1])):
            fit, warm = None, []
            for C in path:
                fit = one_slack(oracle, dimension, C, init=fit)
                warm.append(fit.n_iter)
            proof = proofs(oracle, dimension, path)
            row = [name, f"{grid[0]:g} to {grid[-1]:g}", order]
            row += [str(sum(warm)), str(sum(cold)), str(max(cold))]
            row += [f"{sum(warm) / max(cold):.2f}", str(sum(proof))]
            table.append(row)
            data.append(
                {"surrogate": name, "path": order, "warm": warm, "cold": cold, "proofs": proof}
            )
    report("path", table, data, measured="Counts, not times", quick=args.quick)


if __name__ == "__main__":
    main()
