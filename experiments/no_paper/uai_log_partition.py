"""Marginals and log Z on the models of the UAI 2014 competition whose log Z is known exactly.

The binary Segmentation models are submodular: projection and trees bound log Z from both sides. If
the treewidth is small enough, elimination computes log Z. Marginals are compared with the
competition's, which are printed with six digits.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.data import require
from experiments.shared.report import Table, arguments, progress, report

METHODS = ("projection", "trees", "mean_field", "belief_propagation", "elimination")
BOUNDS = ("projection", "trees", "elimination")
TOL = 1e-6
GOAL = 8.0  # nats between the bounds of trees at which they stop


def read_marginals(path: Path) -> np.ndarray:
    """Read a competition's marginals (N, 2) of variables with two labels.

    The file has the word MAR, the number of variables, and for each variable the number of its
    labels and their probabilities.
    """
    with gzip.open(path, "rt") as file:
        words = file.read().split()
    rows = np.array(words[2:], np.float64).reshape(int(words[1]), 3)
    return rows[:, 1:]


def main() -> None:
    args = arguments(__doc__, repeats=1)
    exact = json.loads(require("uai2014", "exact_values.json").read_text())
    names = [
        name
        for name, known in exact.items()
        if known["file"].startswith("marginal/") and known["binary_log_supermodular"]
    ]
    if args.quick:
        names = names[:2]
    bounds = Table(
        "ln Z",
        [
            *("model", "variables", "ln Z", "trees: lower", "upper", "width", "TV at most"),
            *("projection: width", "elimination: error", "ln max"),
        ],
    )
    errors = Table(
        "Mean absolute error of the marginals",
        ["model", *(name.replace("_", " ") for name in METHODS)],
    )
    data = []
    for name in progress(names, "models"):
        file = exact[name]["file"]
        field = sw.fields.read_uai(require("uai2014", f"{file}.gz"))
        truth = read_marginals(require("uai2014", f"{file}.MAR.gz"))
        official = float(require("uai2014", f"{file}.PR").read_text().split()[1]) * np.log(10)
        log_z = exact[name]["exact_lnZ"]
        # The competition printed six digits.
        assert np.isclose(official, log_z, rtol=1e-5), (name, official, log_z)
        posts = {method: sw.marginals(field, method, tol=TOL, n_jobs=1) for method in METHODS}
        inside = {
            m: bool(posts[m].log_partition_lower <= log_z <= posts[m].log_partition_upper)
            for m in BOUNDS
        }
        miss = {m: float(np.abs(p.probabilities - truth).mean()) for m, p in posts.items()}
        trees, exactly = posts["trees"], posts["elimination"].log_partition_upper
        data.append(
            {
                "model": name,
                "variables": field.n_variables,
                "ln_z": log_z,
                "ln_max": exact[name]["exact_ln_max"],
                "inside": inside,
                "errors": miss,
                "converged": {method: p.converged for method, p in posts.items()},
            }
            | {
                m: {
                    "lower": posts[m].log_partition_lower,
                    "upper": posts[m].log_partition_upper,
                    "width": posts[m].width,
                    "gap": posts[m].gap,
                    "total_variation": posts[m].total_variation,
                    "of": posts[m].of,
                }
                for m in BOUNDS
            }
        )
        bounds.rows.append(
            [
                name,
                str(field.n_variables),
                f"{log_z:.3f}",
                f"{trees.log_partition_lower:.3f}",
                f"{trees.log_partition_upper:.3f}",
                f"{trees.width:.2f}",
                f"{trees.total_variation:.2f}",
                f"{posts['projection'].width:.2f}",
                f"{abs(exactly - log_z):.0e}",
                f"{exact[name]['exact_ln_max']:.3f}",
            ]
        )
        errors.rows.append([name, *(f"{miss[method]:.4f}" for method in METHODS)])
    outdone = [row["model"] for row in data if row["ln_max"] > row["trees"]["lower"]]
    narrow = sum(row["trees"]["width"] < GOAL for row in data)
    unsettled = [
        f"{row['model']} ({method})"
        for row in data
        for method, converged in row["converged"].items()
        if not converged
    ]
    report(
        __file__,
        "UAI 2014: log Z and marginals",
        [bounds, errors],
        choices={
            "models": "the binary Segmentation models of the marginal task, all submodular",
            "ln Z": "computed exactly, and the competition's to its six digits",
            "marginals": "the competition's, six digits",
            "method": f"`marginals` with tol = {TOL:g}",
        },
        data=data,
        notes=[
            f"{sum(all(row['inside'].values()) for row in data)} of {len(data)} lie between the "
            f"bounds of {', '.join(BOUNDS)}.",
            f"Intervals of trees below {GOAL:g} nats: {narrow} of {len(data)}.",
            "TV: no event's probability under the model and under the distribution of the lower "
            "bound differ by more.",
            "ln max, minus the least energy, is a lower bound too. It is higher than the lower "
            f"bound for: {', '.join(outdone) or 'none'}.",
            "Did not converge: " + (", ".join(unsettled) or "none") + ".",
        ],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
