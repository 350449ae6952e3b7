"""MAP on the models of the UAI 2014 competition, compared with maxima that are known exactly.

The binary Segmentation models are submodular, so a minimum cut is exact. Models with 21 labels are
solved by expansion moves with the bound of messages, the mixed-sign grids by odd-cycle inequalities
where messages leave a gap.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.data import require
from experiments.shared.report import Table, arguments, progress, report


def main() -> None:
    args = arguments(__doc__, repeats=1)
    exact = json.loads(require("uai2014", "exact_values.json").read_text())
    names = list(exact)
    if args.quick:
        names = [name for name in names if name.startswith("Segmentation")][:4]
    head = ["model", "variables", "labels", "method", "ln max", "known", "gap", "relative", "exact"]
    table = Table("The most probable labelling", head)
    data = []
    for name in progress(names, "models"):
        known = exact[name]["exact_ln_max"]
        field = sw.fields.read_uai(require("uai2014", exact[name]["file"] + ".gz"))
        start = perf_counter()
        best = sw.solve_map(field)
        seconds = perf_counter() - start
        agrees = known is None or np.isclose(-best.value, known, rtol=1e-9, atol=1e-9)
        row = {
            "model": name,
            "variables": field.n_variables,
            "labels": field.n_labels,
            "method": best.method,
            "ln_max": -best.value,
            "known": known,
            "bound": -best.bound,
            "gap": best.gap,
            "relative_gap": best.relative_gap,
            "exact": best.exact,
            "agrees": bool(agrees),
            "seconds": seconds,
        }
        data.append(row)
        table.rows.append(
            [
                name,
                str(field.n_variables),
                str(field.n_labels),
                best.method,
                f"{-best.value:.6f}",
                "–" if known is None else f"{known:.6f}",
                f"{best.gap:.2g}",
                f"{best.relative_gap:.1e}",
                "yes" if best.exact else "no",
            ]
        )
    binary = [row for row in data if row["method"] == "cut"]
    agreeing = sum(row["agrees"] for row in binary)
    known = [row for row in data if row["known"] is not None]
    report(
        __file__,
        "UAI 2014: MAP",
        [table],
        choices={
            "models": "every model with an entry in exact_values.json",
            "method": "`solve_map` with its defaults",
        },
        data=data,
        notes=[
            f"{agreeing} of the {len(binary)} models solved by a cut have the known maximum, with "
            f"a gap of at most {max(row['gap'] for row in binary):.0e}.",
            f"Of the other {len(data) - len(binary)} models "
            f"{sum(row['exact'] for row in data) - sum(row['exact'] for row in binary)} are proved "
            f"best; the largest relative gap is {max(row['relative_gap'] for row in data):.1e}.",
            f"Of {len(known)} maxima that are known {sum(r['agrees'] for r in known)} were found"
            + "".join(f"; not that of {row['model']}" for row in known if not row["agrees"])
            + ".",
            "ln max is minus the energy; the gap is how much a better labelling could add to it.",
        ],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
