"""The pictures of the report, each a figure of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from setwise.demo._alternatives import Alternatives
from setwise.demo._digits import SURROGATES, Outcome, Settings
from setwise.demo._findings import mean_and_error
from setwise.demo._photograph import Segmentation
from setwise.functions import Table
from setwise.losses import FaceTrack, SetLoss
from setwise.plots import (
    DecompositionDisplay,
    DiverseDisplay,
    MarginalsDisplay,
    SurrogateDisplay,
)
from setwise.surrogates import (
    DecomposedHinge,
    LovaszHinge,
    MarginRescaling,
    SlackRescaling,
    Surrogate,
)

# Okabe and Ito's colours, and a marker each: the pictures also read in grey.
_LOOKS: dict[str, dict[str, Any]] = {
    "lovasz": {"color": "#0072B2", "marker": "o"},
    "hinge": {"color": "#D55E00", "marker": "s"},
}


def digits(outcomes: list[Outcome], settings: Settings) -> Figure:
    """Left: the index against C. Right: the index of the chosen C on each test part."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
    _index_against_C(left, outcomes, settings)
    left.set_title("held out within the training part")

    columns = [
        np.array([one.jaccard for one in outcomes if one.surrogate == name]) for name in SURROGATES
    ]
    for pair in zip(*columns, strict=True):
        right.plot([0, 1], pair, color="#B5B5B5", linewidth=1.0, zorder=1)
    for x, (name, values) in enumerate(zip(SURROGATES, columns, strict=True)):
        look = _LOOKS[name]
        right.scatter(np.full(len(values), x), values, s=26, zorder=2, **look)
        mean, error = mean_and_error(values)
        right.errorbar(
            x + (0.16 if x else -0.16), mean, error, markersize=9, capsize=4, linewidth=2, **look
        )
    right.set_xticks([0, 1], list(SURROGATES.values()))
    right.set(xlim=(-0.45, 1.45), ylabel="Jaccard index, test part")
    right.set_title("with the C chosen on the left")
    return figure


def _index_against_C(ax: Any, outcomes: list[Outcome], settings: Settings) -> None:
    for name, label in SURROGATES.items():
        curves = np.stack([one.validation for one in outcomes if one.surrogate == name])
        mean, error = mean_and_error(curves)
        look = _LOOKS[name]
        ax.fill_between(
            settings.Cs, mean - error, mean + error, color=look["color"], alpha=0.2, linewidth=0
        )
        ax.plot(settings.Cs, mean, label=label, linewidth=2, **look)
    ax.set_xscale("log")
    ax.set(xlabel="$C$, weight of the surrogate", ylabel="Jaccard index (mean ± standard error)")
    ax.set_ylim(bottom=-0.02)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, loc="center right")


def surfaces() -> Figure:
    """Six surfaces over two elements: the paper's three losses, and its Figure 4."""
    increasing, falling, growing = (
        SetLoss(Table([0.0, 1.0, 1.0, both])) for both in (1.2, 0.4, 2.8)
    )
    panels: list[tuple[str, Surrogate]] = [
        ("Lovász hinge\nsubmodular, increasing: 0, 1, 1, 1.2", LovaszHinge(increasing)),
        ("Lovász hinge\nsubmodular, not increasing: 0, 1, 1, 0.4", LovaszHinge(falling)),
        ("the same with each s cut at 0\nnot convex", LovaszHinge(falling, case=1)),
        (
            "margin rescaling\nsupermodular: 0, 1, 1, 2.8",
            MarginRescaling(growing, scale="extension"),
        ),
        ("slack rescaling\nsupermodular: 0, 1, 1, 2.8", SlackRescaling(growing)),
        ("decomposed hinge\nsupermodular: 0, 1, 1, 2.8", DecomposedHinge(growing)),
    ]
    # Room at the sides for the labels in space, which the layout does not see.
    figure = Figure(figsize=(10.5, 6.6), layout=ConstrainedLayoutEngine(w_pad=0.2))
    axes = figure.subplots(2, 3, subplot_kw={"projection": "3d"})
    for ax, (title, surrogate) in zip(axes.flat, panels, strict=True):
        SurrogateDisplay.from_surrogate(surrogate, ax=ax)
        ax.set_title(title, fontsize=10, y=0.94)
    return figure


def decompositions() -> Figure:
    """The four losses of face tracks, ten frames a track."""
    figure = Figure(figsize=(9.6, 6.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for kind, ax in enumerate(axes.flat, start=1):
        DecompositionDisplay.from_loss(FaceTrack(kind), 10, ax=ax)
        ax.set_title(f"face-track loss {kind}", fontsize=10)
        ax.label_outer()
        if kind > 1:
            ax.get_legend().remove()
    return figure


def photograph(segmented: Segmentation) -> Figure:
    """The photograph, its labels and the entropy of their marginals."""
    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    display = MarginalsDisplay.from_result(
        segmented.post,
        image=segmented.image,
        labels=segmented.best.labels,
        regions=segmented.superpixels,
        colors=segmented.colors,
        ax=figure.subplots(1, 3),
    )
    for ax, title in zip(display.axes_, ("photograph", "labelling", "entropy"), strict=True):
        ax.set_title(title, fontsize=10)
    return figure


def alternatives(found: Alternatives) -> Figure:
    """The scribbles, six ways to cut out the object, and the entropy of the marginals."""
    figure = Figure(figsize=(11.0, 6.0), layout="constrained")
    *list_axes, last = figure.subplots(2, 4).flat
    drawn = found.image.copy()
    drawn[found.scribbles == 1], drawn[found.scribbles == 0] = (1.0, 0.5, 0.0), (0.0, 0.7, 1.0)
    dark = [(0.0, 0.0, 0.0, 0.75), (0.0, 0.0, 0.0, 0.0)]
    display = DiverseDisplay.from_result(
        found.six, image=drawn, colors=dark, alpha=1.0, ax=list_axes
    )
    display.axes_[0].set_title("two scribbles")
    MarginalsDisplay.from_result(found.post, ax=last, panels="entropy", n_regions=0, colorbar=False)
    last.set_title("entropy")
    for ax in figure.axes:
        ax.title.set_fontsize(10)
    return figure


def summary(outcomes: list[Outcome], settings: Settings) -> Figure:
    """Two panels that say it all: a surface, and what it does for the digits."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=(1.0, 1.1))
    surface: Any = figure.add_subplot(grid[0], projection="3d")
    SurrogateDisplay.from_surrogate(LovaszHinge("jaccard"), [1, -1], ax=surface)
    surface.set_title(
        "Lovász hinge of Jaccard over two elements;\ndots: the loss", fontsize=10, y=0.96
    )
    curves = figure.add_subplot(grid[1])
    _index_against_C(curves, outcomes, settings)
    curves.set_title("Is it an 8? One set of digits, judged by Jaccard", fontsize=10)
    return figure
