"""Log-supermodular paper, Figures 5a, 5b, 8b, 8c (ROC curves) and 6, 7 (segmentations).

    python experiments/marginals_figures_msrc.py

Draws two pictures to experiments/results/ from the results of marginals_table1_msrc.py and from
the labellings and entropies that it left in the cache.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from _models import MODELS
from _msrc import BANDWIDTHS, LABELS, classes, scene
from _posterior import posterior
from _report import RESULTS, Table, arguments, report
from _roc import RATES

COLOURS = {
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
ROWS = 3  # images that the model makes better, and as many that it makes worse


def draw_curves(measures: dict[str, Any]) -> None:
    """One panel a trimap: the mean ROC curve of each model, with its area."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
    for axis, (k, bandwidth) in zip(axes.flat, enumerate(BANDWIDTHS), strict=True):
        for name, (colour, style) in COLOURS.items():
            area, curve = measures[name]["area"][k], measures[name]["curves"][k]
            axis.plot(RATES, curve, style, color=colour, label=f"{name}  {area:.3f}", linewidth=1.6)
        axis.set(xlim=(0, 0.6), ylim=(0.4, 1.005), xlabel="false positive rate")
        axis.set_ylabel("true positive rate")
        axis.set_title(f"Figure {FIGURES[bandwidth]}: trimap of bandwidth {bandwidth}")
        axis.grid(alpha=0.3)
        axis.legend(title="model, area", loc="lower right", fontsize=9)
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "marginals_roc_msrc.png", dpi=110)
    plt.close(figure)


def palette() -> np.ndarray:
    """A colour for each label, and grey for void, shape (22, 3), in [0, 1]."""
    import matplotlib.pyplot as plt

    colours = plt.get_cmap("tab20")(np.arange(20))[:, :3]
    return np.vstack([colours, [[0.1, 0.1, 0.1]], [[0.93, 0.93, 0.93]]])


def draw_segmentations(rows: list[tuple[str, dict[str, tuple[float, ...]]]]) -> None:
    """One row an image: truth, labellings with their accuracy, entropies (dark: unsure)."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    colours, titles = palette(), classes()
    heads = ["image", "truth", "UNARY", "PAIR", MODEL]
    unsure = ["UNARY", "PAIR", "BP PAIR", MODEL]
    width = len(heads) + len(unsure)
    size = (2.05 * width, 1.5 * len(rows) + 0.9)
    figure, axes = plt.subplots(len(rows), width, figsize=size, layout="constrained")
    used: set[int] = set()
    for cells, (image, settings) in zip(axes, rows, strict=True):
        view = scene(image)
        posts = {name: posterior(image, "trained", name, settings[name]) for name in COLOURS}
        maps = [posts[name].labels.astype(int) for name in heads[2:]]
        cells[0].imshow(view.image)
        for axis, labels in zip(
            cells[1 : len(heads)], [view.truth.astype(int), *maps], strict=True
        ):
            axis.imshow(colours[labels].reshape(*view.shape, 3), interpolation="nearest")
            used |= set(np.unique(labels).tolist())
        for axis, name in zip(cells[2 : len(heads)], heads[2:], strict=True):
            axis.set_xlabel(f"{100 * posts[name].accuracy:.1f} %", fontsize=10, labelpad=2)
        for axis, name in zip(cells[len(heads) :], unsure, strict=True):
            entropy = posts[name].entropy.astype(np.float32).reshape(view.shape)
            axis.imshow(entropy, cmap="gray_r", vmin=0, vmax=np.log(LABELS))
        for axis in cells:
            axis.set_xticks([])
            axis.set_yticks([])
    for axis, title in zip(axes[0], heads + [f"entropy, {name}" for name in unsure], strict=True):
        axis.set_title(title, fontsize=10)
    shown = sorted(label for label in used if label >= 0)
    patches = [Patch(color=colours[label], label=titles[label]) for label in shown]
    patches.append(Patch(color=colours[-1], label="void"))
    figure.legend(handles=patches, loc="outside lower center", ncols=min(len(patches), 12))
    figure.savefig(RESULTS / "marginals_segmentations_msrc.png", dpi=100)
    plt.close(figure)


def extremes(gains: np.ndarray, number: int) -> list[int]:
    """The images with the largest gains, best first, and those with the least, worst last."""
    order = np.argsort(-gains, kind="stable")
    return [*order[:number].tolist(), *order[-number:].tolist()]


def main() -> None:
    given = arguments("Log-supermodular paper, Figures 5, 6, 7 and 8", repeats=1)
    path = RESULTS / "marginals_table1_msrc.json"
    if not path.exists():
        sys.exit(f"missing {path.name}: run experiments/marginals_table1_msrc.py first")
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
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
        "marginals_figures_msrc",
        "Log-supermodular models, Figures 5a, 5b, 8b, 8c, 6 and 7",
        [table],
        choices={
            "curves": "one label against all others over the pooled pixels of a trimap, mean of "
            "the curves over the labels; settings as in marginals_table1_msrc.md",
            "images": f"the {ROWS} where {MODEL} gains most over UNARY and the {ROWS} where it "
            "loses most: neither kind is typical",
            "entropy": "white is 0, black is log 21",
        },
        notes=[]
        if given.quick
        else ["![ROC](marginals_roc_msrc.png)", "![maps](marginals_segmentations_msrc.png)"],
        data={"images": [images[k] for k in picked]},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
