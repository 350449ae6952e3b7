"""The learners compared: one slack, one slack per example, block-coordinate Frank-Wolfe.

All solve the same problem (multi-label, Lovász hinge of Jaccard and of Hamming) to a relative gap
of 1e-3 with the same oracle; the three objectives must agree within their gaps. Compare the seconds
if the oracle is fast, and the number of its calls per example if it is slow.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.block_frank_wolfe import block_frank_wolfe
from benchmarks.shared.measure import (
    alternate,
    arguments,
    as_ratio,
    as_seconds,
    ratio,
    report,
    require_close,
)
from benchmarks.shared.multilabel import FEATURES, LABELS, problem

TOL = 1e-3


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    n, repeats = (50, 2) if args.quick else (200, 5)
    head = ["loss", "C", "one_slack", "n_slack", "block_frank_wolfe"]
    head += ["n_slack / one_slack", "block_frank_wolfe / one_slack"]
    table, data = [head], []
    for loss in ("jaccard", "hamming"):
        for C in (0.01, 0.1, 1.0):
            whole, one, d = problem(n, loss)
            learners = {
                "one_slack": lambda w=whole, d=d, C=C: sw.learning.one_slack(w, d, C, tol=TOL),
                "n_slack": lambda o=one, d=d, C=C: sw.learning.n_slack(o, n, d, C, tol=TOL),
                "block_frank_wolfe": lambda o=one, d=d, C=C: block_frank_wolfe(o, n, d, C, tol=TOL),
            }
            fits = {name: learner() for name, learner in learners.items()}
            for name, fit in fits.items():
                require_close(name, fit.value, fits["one_slack"].value, 2 * TOL)
            seconds = alternate(learners, repeats=repeats)
            ratios = {name: ratio(seconds[name], seconds["one_slack"]) for name in learners}
            per_round = {"one_slack": 1, "n_slack": 1, "block_frank_wolfe": 6}
            calls = {name: per_round[name] * fit.n_iter for name, fit in fits.items()}
            cells = [
                f"{as_seconds(np.median(seconds[name]))}, {calls[name]} calls" for name in fits
            ]
            slower = [as_ratio(ratios[name]) for name in ("n_slack", "block_frank_wolfe")]
            table.append([loss, f"{C:g}", *cells, *slower])
            data.append({"loss": loss, "C": C, "ratios": ratios, "calls": calls})
            print(*table[-1], sep=", ", flush=True)
    notes = [
        f"{n} examples, {LABELS} labels, {FEATURES} features, relative gap {TOL:g}. one_slack is "
        "the default: it asks for all examples in one call, where the other two ask one by one. "
        "Calls are those of the oracle, per example."
    ]
    report("learners", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
