"""Log-supermodular paper, Figures 5a, 5b, 8b, 8c (ROC curves) and 6, 7 (segmentations).

    python experiments/log_supermodular/figures_roc_and_maps.py

The script draws two pictures from the results of table1_marginals.py, and from the labellings and
entropies that it stored in the cache.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.log_supermodular._models import MODELS
from experiments.log_supermodular._posterior import posterior
from experiments.log_supermodular._roc import RATES
from experiments.shared.msrc import BANDWIDTHS, LABELS, legend, palette, scene
from experiments.shared.pictures import Panel, draw_rows
from experiments.shared.report import Table, arguments, data_of, report, result

COLORS = {
    "UNARY": ("#000000", ":"),
    "PAIR": ("#e69f00", "-"),
    "BP PAIR": ("#d55e00", "--"),
    "MF PAIR": ("#cc79a7", "--"),
    "2-LAYER": ("#56b4e9", "-"),
    "2-LAYER-PAIR": ("#0072b2", "-"),
    "3-LAYER": ("#009e73", "-"),
}
FIGURES = {0: "5a", 5: "8b", 10: "5b", 20: "8c"}
MODEL = "3-LAYER"
ROWS = 3  # the number of images that the model improves most, and of those it harms most


def draw_curves(measures: dict[str, Any]) -> None:
    """Draw one panel per trimap: the mean ROC curve of each model, with its area."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
    for axis, (k, bandwidth) in zip(axes.flat, enumerate(BANDWIDTHS), strict=True):
        for name, (color, style) in COLORS.items():
            area, curve = measures[name]["area"][k], measures[name]["curves"][k]
            axis.plot(RATES, curve, style, color=color, label=f"{name}  {area:.3f}", linewidth=1.6)
        axis.set(xlim=(0, 0.6), ylim=(0.4, 1.005), xlabel="false positive rate")
        axis.set_ylabel("true positive rate")
        axis.set_title(f"Figure {FIGURES[bandwidth]}: trimap of bandwidth {bandwidth}")
        axis.grid(alpha=0.3)
        axis.legend(title="model, area", loc="lower right", fontsize=9)
    figure.savefig(result(__file__, "figures_roc.png"), dpi=110)
    plt.close(figure)


def draw_segmentations(chosen: list[tuple[str, dict[str, tuple[float, ...]]]]) -> None:
    """Draw one row per image: truth, labellings with accuracy, entropies (dark: uncertain)."""
    colors = palette()
    labeled, unsure = ["UNARY", "PAIR", MODEL], ["UNARY", "PAIR", "BP PAIR", MODEL]
    used: set[int] = set()
    rows: list[list[Panel]] = []

    def panel(labels: np.ndarray, shape: tuple[int, int], caption: str = "") -> Panel:
        used.update(np.unique(labels).tolist())
        return colors[labels.astype(int)].reshape(*shape, 3), caption

    for image, settings in chosen:
        view = scene(image)
        posts = {name: posterior(image, "trained", name, settings[name]) for name in COLORS}
        row = [(view.image, ""), panel(view.truth, view.shape)]
        for name in labeled:
            caption = f"{100 * posts[name].accuracy:.1f} %"
            row.append(panel(posts[name].labels, view.shape, caption))
        for name in unsure:
            sure = 1 - posts[name].entropy.astype(np.float32) / np.log(LABELS)
            grey = np.clip(sure, 0, 1).reshape(*view.shape, 1)
            row.append((np.repeat(grey, 3, axis=2), ""))
        rows.append(row)
    heads = ["image", "truth", *labeled, *(f"entropy, {name}" for name in unsure)]
    draw_rows(result(__file__, "figures_maps.png"), heads, rows, legend(used))


def extremes(gains: np.ndarray, number: int) -> list[int]:
    """Return the images with the largest gains, best first, and the least gains, worst last."""
    order = np.argsort(-gains, kind="stable")
    return [*order[:number].tolist(), *order[-number:].tolist()]


def main() -> None:
    given = arguments("Log-supermodular paper, Figures 5, 6, 7 and 8", repeats=1)
    data = data_of(Path(__file__).with_name("table1_marginals.py"))
    measures, images = data["validation"], list(data["settings"])
    accuracies = {name: np.array(measures[name]["accuracies"]) for name in MODELS}
    picked = extremes(accuracies[MODEL] - accuracies["UNARY"], ROWS)
    table = Table("Pixel accuracy in per cent of the images drawn", ["image", *MODELS])
    for k in picked:
        table.rows.append([images[k], *(f"{accuracies[name][k]:.1f}" for name in MODELS)])
    if not given.quick:
        draw_curves(measures)
        settings = data["settings"]
        draw_segmentations(
            [(images[k], {n: tuple(s) for n, s in settings[images[k]].items()}) for k in picked]
        )
    report(
        __file__,
        "Log-supermodular models, Figures 5a, 5b, 8b, 8c, 6 and 7",
        [table],
        choices={
            "curves": "one label against all others over the pooled pixels of a trimap, mean of "
            "the curves over the labels; settings as in table1_marginals.md",
            "images": f"the {ROWS} where {MODEL} gains most over UNARY and the {ROWS} where it "
            "loses most: neither kind is typical",
            "entropy": "white is 0, black is log 21",
        },
        notes=[] if given.quick else ["![ROC](figures_roc.png)", "![maps](figures_maps.png)"],
        data={"images": [images[k] for k in picked]},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
