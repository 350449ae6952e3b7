"""Log-supermodular paper, Figures 5c, 5d and 8a: how smoothing changes the optimisation.

    python experiments/log_supermodular/figures_smoothing.py [--quick]

The script runs Algorithm 1 (Frank-Wolfe) on the model 3-LAYER at several strengths of smoothing,
and draws results/figures_smoothing.png. It needs the cache of unaries and superpixels.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.log_supermodular._models import coarse, field_of
from experiments.shared.msrc import FEW, names, scene
from experiments.shared.report import Table, arguments, parallel, report, result

SMOOTHING = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ITERATIONS = (1, 2, 4, 8, 16, 32, 64, 128)
SHOWN = (8, 32, 128)  # the iterations of Figures 5c and 5d
MODEL, STEP = "3-LAYER", 4
SETTING = (0.9, 50.0)  # alpha and beta_2 in the middle of the paper's grid


def one_image(name: str, iterations: tuple[int, ...]) -> np.ndarray:
    """Return f(p), energy of the rounded labels, and gap (9): (smoothing, iterations, 3)."""
    field = field_of(coarse(scene(name), STEP), MODEL, SETTING, STEP)
    table = np.empty((len(SMOOTHING), len(iterations), 3))
    for row, smoothing in enumerate(SMOOTHING):
        for column, limit in enumerate(iterations):
            post = sw.marginals(
                field, "frank_wolfe", tol=0.0, max_iter=limit, temperature=smoothing, n_jobs=1
            )
            gradient = sw.inference.log_partition_gradient(field, post, n_jobs=1)
            extension = (field.unary * post.probabilities).sum()
            extension -= smoothing * gradient.weights.sum()
            table[row, column] = extension, field.energy(post.labels), smoothing * post.gap
    return table


def unit_range(values: np.ndarray) -> np.ndarray:
    """Rescale each image's values, shape (images, ...), to [0, 1]."""
    axes = tuple(range(1, values.ndim))
    least, most = values.min(axis=axes, keepdims=True), values.max(axis=axes, keepdims=True)
    return (values - least) / np.where(most > least, most - least, 1)


def draw_picture(extension: np.ndarray, energy: np.ndarray, gap: np.ndarray) -> None:
    """Draw Figures 5c, 5d and 8a side by side."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    for axis, values, words in (
        (axes[0], extension, "5c: Lovász extension, 0 to 1 an image"),
        (axes[1], energy, "5d: energy of the labelling, 0 to 1 an image"),
    ):
        for limit, color in zip(SHOWN, ("#56b4e9", "#0072b2", "#000000"), strict=True):
            column = ITERATIONS.index(limit)
            axis.semilogx(
                SMOOTHING, values[:, column], "o-", color=color, label=f"{limit} iterations"
            )
        axis.set_title(words)
        axis.set_xlabel("smoothing ε")
        axis.legend()
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.92, len(SMOOTHING)))
    for smoothing, curve, color in zip(SMOOTHING, gap, colors, strict=True):
        axes[2].loglog(ITERATIONS, curve, "o-", color=color, label=f"ε = {smoothing:g}")
    axes[2].set_title("8a: duality gap, largest of an image = 1")
    axes[2].set_xlabel("iterations of Frank-Wolfe")
    axes[2].legend(fontsize=8)
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(result(__file__, "figures_smoothing.png"), dpi=130)
    plt.close(figure)


def main() -> None:
    given = arguments("Log-supermodular paper, Figures 5c, 5d and 8a", repeats=4, quick_repeats=2)
    among = names("validation")[: FEW if given.quick else None]
    images = np.random.default_rng(given.seed).permutation(among)[: given.repeats]
    iterations = ITERATIONS[:4] if given.quick else ITERATIONS
    task = partial(one_image, iterations=iterations)
    found = np.array([f for _, f in parallel(task, images.tolist(), "images", given.jobs)])
    extension, energy = (unit_range(found[..., k]).mean(axis=0) for k in (0, 1))
    gap = (found[..., 2] / found[..., 2].max(axis=(1, 2), keepdims=True)).mean(axis=0)
    made = []
    for title, values in (
        ("Figure 5c: Lovász extension, from 0 to 1 in each image", extension),
        ("Figure 5d: energy of the labelling, from 0 to 1 in each image", energy),
        ("Figure 8a: duality gap, the largest of each image being 1", gap),
    ):
        table = Table(title, ["ε", *(f"{k} iterations" for k in iterations)])
        for smoothing, row in zip(SMOOTHING, values, strict=True):
            table.rows.append([f"{smoothing:g}", *(f"{x:.4f}" for x in row)])
        made.append(table)
    if not given.quick:
        draw_picture(extension, energy, gap)
    report(
        __file__,
        "Log-supermodular models, Figures 5c, 5d and 8a: smoothing",
        made,
        choices={
            "images": f"{len(images)} of the validation part, a quarter as wide and high "
            "(the paper: 93 whole images)",
            "seed": given.seed,
            "model": f"{MODEL}, alpha {SETTING[0]:g}, beta_2 {SETTING[1]:g} (the middle of the "
            "paper's grid; Table 1 chose less here), scaled to the size",
            "method": "frank_wolfe: steps 2 / (k + 2), k from 0",
        },
        notes=[] if given.quick else ["![smoothing](figures_smoothing.png)"],
        data={"images": images, "extension": extension, "energy": energy, "gap": gap},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
