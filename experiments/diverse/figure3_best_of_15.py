"""Diverse sets, Figure 3: image, truth, MAP, and the best of 15 under each diversity.

    python experiments/diverse/figure3_best_of_15.py

The script reads the settings from the results of table2_categories.py and makes those lists again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.diverse._categories import categories
from experiments.diverse._greedy_lists import concatenated
from experiments.diverse._list_scores import Case, score_list
from experiments.diverse.table2_categories import METHODS, length_of, parts_of, title_of
from experiments.shared.msrc import FEW, legend, palette
from experiments.shared.pictures import Panel, draw_rows
from experiments.shared.report import Table, arguments, data_of, report, result

DRAWN = ("DivMBest", "HB", "LC, log1p", "LT, log1p", "HB ⊗ LC ⊗ LT")
LENGTH = 15
ROWS = 6


def best_of(case: Case, row: str, settings: list[list[Any]]) -> tuple[np.ndarray, float]:
    """Return the labelling (S,) of a row's list with the most correct pixels, and their share."""
    methods = [METHODS[part] for part in parts_of(row)[0]]
    chosen = [tuple(setting) for setting in settings]
    labelings = concatenated(case, methods, chosen, length_of(row, LENGTH))
    accuracies = score_list(case, labelings).accuracies
    return labelings[accuracies.argmax()], float(accuracies.max())


def main() -> None:
    given = arguments("Diverse sets, Figure 3", repeats=1)
    data = data_of(Path(__file__).with_name("table2_categories.py"))
    outcomes = {row: data["rows"][row][str(LENGTH)] for row in DRAWN}
    first = np.array(data["MAP"]["accuracies"])
    gains = np.max([outcomes[row]["accuracies"] for row in DRAWN], axis=0) - first
    gains = gains[: FEW if given.quick else None]
    picked = np.argsort(-gains, kind="stable")[: 1 if given.quick else ROWS].tolist()
    colors = palette()
    used: set[int] = set()

    def panel(labels: np.ndarray, caption: str) -> Panel:
        used.update(np.unique(labels).tolist())
        return colors[labels.astype(int)], caption

    table = Table(
        "Pixel accuracy in per cent of what is drawn", ["image", "MAP", *map(title_of, DRAWN)]
    )
    rows = []
    for k in picked:
        case = categories(data["images"][k])
        row = [(case.image, case.name), panel(case.truth, "")]
        start = METHODS["DivMBest"].make(case, 1, (0.0,))[0]
        half = data["half"][k]
        shown = [
            (start, float(score_list(case, start[None]).accuracies[0])),
            *(best_of(case, name, outcomes[name]["by_accuracy"][half]) for name in DRAWN),
        ]
        row += [panel(labels[case.regions], f"{100 * share:.1f} %") for labels, share in shown]
        rows.append(row)
        table.rows.append([case.name, *(f"{100 * share:.1f}" for _, share in shown)])
    if not given.quick:
        heads = ["image", "truth", "MAP", *map(title_of, DRAWN)]
        draw_rows(result(__file__, "figure3_best_of_15.png"), heads, rows, legend(used))
    report(
        __file__,
        "Diverse sets, Figure 3: the best of 15 labellings",
        [table],
        choices={
            "images": f"the {len(picked)} where the best of these lists gains most over MAP: not "
            "typical ones",
            "settings": "those of table2_categories.md, chosen by accuracy on the other half",
            "best": "of all 15, MAP among them (the paper leaves MAP out)",
        },
        notes=[] if given.quick else ["![best of 15](figure3_best_of_15.png)"],
        data={"images": [data["images"][k] for k in picked]},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
