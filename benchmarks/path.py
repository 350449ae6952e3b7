"""How much does a path of C cost when every fit starts from the planes of the one before?

Rounds of ``one_slack`` over eight values of C in two decades, warm and cold, against the hardest
fit alone. Rounds are counted, not seconds: a round is one call of the oracle.
"""

from __future__ import annotations

import numpy as np
from _measure import arguments, report

import setwise as sw


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    n, d, p = (200, 20, 6) if args.quick else (1000, 50, 20)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    truth = X @ rng.normal(size=(d, p)) + 3 * rng.normal(size=(n, p)) > 0
    table = [["loss", "path", "rounds, warm", "rounds, cold", "hardest fit alone"]]
    data = []
    for loss in ("hamming", "jaccard"):
        surrogate = sw.surrogates.LovaszHinge(loss)

        def oracle(w, surrogate=surrogate):
            values, slopes = surrogate.value_and_gradient(truth, X @ w.reshape(p, d).T)
            return values.sum(), (slopes.T @ X).ravel()

        grid = np.geomspace(1e-2, 1.0, 8)
        cold = [sw.learning.one_slack(oracle, p * d, C).n_iter for C in grid]
        for name, path in (("rising C", grid), ("falling C", grid[::-1])):
            fit, warm = None, 0
            for C in path:
                fit = sw.learning.one_slack(oracle, p * d, C, warm_start=fit)
                warm += fit.n_iter
            table.append([loss, name, str(warm), str(sum(cold)), str(max(cold))])
            data.append({"loss": loss, "path": name, "warm": warm, "cold": cold})
    report("path", table, data, quick=args.quick)


if __name__ == "__main__":
    main()
