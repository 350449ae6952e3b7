"""Lovász hinge paper, Table 1, with an intercept, and on data nearer to the printed figures.

    python experiments/lovasz_hinge/table1_other_data.py [--quick]

The data are those of the published generator, and of one whose figures for 0-1 are near the printed
ones: five early points, a share of 0.57 of the bags that change, and noise of 0.85. These numbers
were chosen by hand for this purpose; the paper does not state them. The intercept is the weight of
a third feature, which is regularised like the others.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.lovasz_hinge._linear_models import BagRisk, path
from experiments.lovasz_hinge.table1_early_detection import (
    DELTA_1,
    GRID,
    METHODS,
    PAPER,
    TEST,
    TOLERANCE,
    TRAIN,
    VALIDATION,
    ZERO_ONE,
    bags,
    mean_losses,
)
from experiments.shared.report import Table, arguments, beside, estimate, parallel, report

ROUNDS = 200
GENERATORS = {
    "published": {},
    "other": {"n_early": 5, "share": 0.57, "noise": 0.85},
}
CASES = [("published", True), ("other", False), ("other", True)]
TRAINED = ("L", "0-1", "M exact")


def with_ones(X: np.ndarray) -> np.ndarray:
    return np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)


def one_repeat(repeat: int, seed: int, scale: float) -> dict[str, dict[str, float]]:
    """Train on one draw of each generator. Return test losses and the chosen C."""
    results = {}
    for generator, intercept in CASES:
        rng = np.random.default_rng([seed, repeat])
        draws = [
            bags(int(n * scale), rng, **GENERATORS[generator]) for n in (TRAIN, VALIDATION, TEST)
        ]
        train, validation, test = [(with_ones(X) if intercept else X, Y) for X, Y in draws]
        for name in TRAINED:
            surrogate, criterion = METHODS[name]
            fits = path(BagRisk(surrogate, *train), GRID, TOLERANCE, ROUNDS)
            best = int(np.argmin([mean_losses(*validation, fit.w)[criterion] for fit in fits]))
            at_test = mean_losses(*test, fits[best].w)
            results[f"{generator}, {intercept}, {name}"] = {
                "delta_1": at_test[DELTA_1],
                "zero_one": at_test[ZERO_ONE],
                "C": GRID[best],
            }
    return results


def main() -> None:
    given = arguments("Lovász hinge paper, Table 1, other data", repeats=5)
    scale = 0.2 if given.quick else 1.0
    task = partial(one_repeat, seed=given.seed, scale=scale)
    answers = [a for _, a in parallel(task, range(given.repeats), "repeats", given.jobs)]
    table = Table(
        "Test losses, mean ± standard error",
        ["generator", "intercept", "trained with", "Δ1, paper", "Δ1", "0-1, paper", "0-1", "C"],
    )
    data = {}
    for generator, intercept in CASES:
        for name in TRAINED:
            key = f"{generator}, {intercept}, {name}"
            runs = [answer[key] for answer in answers]
            delta, zero_one = (estimate(r[k] for r in runs) for k in ("delta_1", "zero_one"))
            paper = PAPER.get(name, (None, None))
            C = sorted(r["C"] for r in runs)[len(runs) // 2]
            cells = [*beside(paper[0], delta, 4), *beside(paper[1], zero_one, 2)]
            table.rows.append([generator, "yes" if intercept else "no", name, *cells, f"{C:g}"])
            data[key] = {"runs": runs, "delta_1": delta, "zero_one": zero_one, "paper": paper}
    choices = {
        "published": "that of table1_early_detection.py",
        "other": "the same with five early points, a share of 0.57 of the bags that change, and "
        "noise of deviation 0.85; chosen by hand so that 0-1 is near the printed figures",
        "intercept": "a third feature of ones, regularised like the others",
        "C": f"of {', '.join(f'{C:g}' for C in GRID)}, by the training loss on other bags",
        "solver": f"one-slack cutting planes to a relative gap of {TOLERANCE:g} or {ROUNDS} rounds",
        "repeats": given.repeats,
        "seed": given.seed,
    }
    report(
        __file__,
        "Lovász hinge, Table 1: an intercept, and other data",
        [table],
        choices=choices,
        data=data,
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
