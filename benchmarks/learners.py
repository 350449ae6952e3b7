"""Which learner: one slack, a slack for each example, or block-coordinate Frank-Wolfe?

The same problem (multi-label, Lovász hinge of Jaccard and of Hamming) to a relative gap of 1e-3,
from the same oracle; the three objectives must agree within their gaps.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
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
        for C in (0.01, 0.1):
            whole, one, d = problem(n, loss)
            learners = {
                "one_slack": lambda w=whole, d=d, C=C: sw.learning.one_slack(w, d, C, tol=TOL),
                "n_slack": lambda o=one, d=d, C=C: sw.learning.n_slack(o, n, d, C, tol=TOL),
                "block_frank_wolfe": lambda o=one, d=d, C=C: sw.learning.block_frank_wolfe(
                    o, n, d, C, tol=TOL, rng=0
                ),
            }
            fits = {name: learner() for name, learner in learners.items()}
            for name, fit in fits.items():
                require_close(name, fit.value, fits["one_slack"].value, 2 * TOL)
            seconds = alternate(learners, repeats=repeats)
            ratios = {name: ratio(seconds[name], seconds["one_slack"]) for name in learners}
            cells = [
                f"{as_seconds(np.median(seconds[name]))}, {fit.n_iter} rounds"
                for name, fit in fits.items()
            ]
            slower = [as_ratio(ratios[name]) for name in ("n_slack", "block_frank_wolfe")]
            table.append([loss, f"{C:g}", *cells, *slower])
            data.append({"loss": loss, "C": C, "ratios": ratios})
            print(*table[-1], sep=", ", flush=True)
    notes = [
        f"{n} examples, {LABELS} labels, {FEATURES} features, relative gap {TOL:g}. one_slack is "
        "the default: it asks for all examples in one call, where the other two ask one by one."
    ]
    report("learners", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
