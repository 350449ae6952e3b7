"""The figures of the report, one function per figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from demo.alternatives import Alternatives
from demo.photograph import Segmentation
from demo.piles import METHODS, Piles
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

# Okabe and Ito's colours. Each has its own marker, so that the figures can be read in grey too.
_LOOKS: dict[str, dict[str, Any]] = {
    "half": {"color": "#999999", "marker": "v"},
    "tuned": {"color": "#E69F00", "marker": "^"},
    "hinge": {"color": "#D55E00", "marker": "s"},
    "lovasz": {"color": "#0072B2", "marker": "o"},
    "decision": {"color": "#009E73", "marker": "D"},
}


def piles(results: list[Piles]) -> Figure:
    """Draw four piles with their predictions, and the index of each method on each seed."""
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.0, 1.3))
    left, right = parts
    first = results[0]
    for row, ax in enumerate(left.subplots(2, 2).flat):
        ax.imshow(first.X[row].reshape(8, 8), cmap="gray_r")
        predicted = {name: first.answers[name][row] for name in ("half", "decision")}
        ax.set_title(
            f"truth: {_digits(first.Y[row])}\n1/2: {_digits(predicted['half'])}"
            f"   decided: {_digits(predicted['decision'])}",
            fontsize=9,
        )
        ax.set_axis_off()
    ax = right.subplots()
    names = list(METHODS)[::-1]
    for y, name in enumerate(names):
        scores = [one.scores[name] for one in results]
        ax.scatter(scores, np.full(len(scores), y), s=34, alpha=0.75, **_LOOKS[name])
        ax.plot(np.mean(scores), y, "k|", markersize=22, markeredgewidth=2)
        ax.annotate(
            f"{np.mean(scores):.3f}", (np.mean(scores), y), xytext=(0, 14),
            textcoords="offset points", ha="center", fontsize=9,
        )  # fmt: skip
    ax.set_yticks(range(len(names)), [METHODS[name] for name in names])
    ax.set(ylim=(-0.5, len(names) - 0.3), xlabel="Jaccard index of a row, mean over test piles")
    ax.grid(axis="x", alpha=0.25)
    return figure


def _digits(row: Any) -> str:
    return " ".join(map(str, np.flatnonzero(row))) or "nothing"


def decision(results: list[Piles]) -> Figure:
    """Draw the probabilities of one pile, all below 1/2 if possible, and the set of each rule."""
    first = results[0]
    missed = ~first.answers["half"].any(axis=1) & (first.answers["decision"] == first.Y).all(axis=1)
    row = int(np.argmax(missed & (first.Y.sum(axis=1) > 1))) if missed.any() else 0
    figure = Figure(figsize=(9.6, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(0.35, 1.0))
    left.imshow(first.X[row].reshape(8, 8), cmap="gray_r")
    left.set_title(f"the pile: {_digits(first.Y[row])}", fontsize=10)
    left.set_axis_off()
    chosen = first.answers["decision"][row]
    colors = np.where(chosen, _LOOKS["decision"]["color"], _LOOKS["half"]["color"])
    right.bar(range(10), first.probabilities[row], color=list(colors))
    right.axhline(0.5, color="k", linewidth=1, linestyle="--")
    right.set_xticks(range(10))
    right.set(ylim=(0, 1), ylabel="probability", xlabel="digit")
    right.set_title(
        f"threshold 1/2: {_digits(first.answers['half'][row])};  least expected loss:"
        f" {_digits(chosen)}",
        fontsize=10,
    )
    return figure


def surfaces() -> Figure:
    """Draw six surfaces over two elements: three losses and Figure 4 of the Lovász hinge paper."""
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
    # The layout does not measure three-dimensional labels, so this adds space at the sides.
    figure = Figure(figsize=(10.5, 6.6), layout=ConstrainedLayoutEngine(w_pad=0.2))
    axes = figure.subplots(2, 3, subplot_kw={"projection": "3d"})
    for ax, (title, surrogate) in zip(axes.flat, panels, strict=True):
        SurrogateDisplay.from_surrogate(surrogate, ax=ax)
        ax.set_title(title, fontsize=10, y=0.94)
    return figure


def decompositions() -> Figure:
    """Draw the four losses of face tracks of ten frames."""
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
    """Draw the photograph, its labels and the entropy of their marginals."""
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
    """Draw the strokes, six ways to cut out the object, and the entropy of the marginals."""
    figure = Figure(figsize=(11.0, 6.2), layout="constrained")
    *list_axes, last = figure.subplots(2, 4).flat
    drawn = found.image.copy()
    drawn[found.scribbles == 1], drawn[found.scribbles == 0] = (0.95, 0.55, 0.0), (0.0, 0.5, 0.9)
    faded = [(1.0, 1.0, 1.0, 0.8), (1.0, 1.0, 1.0, 0.0)]
    display = DiverseDisplay.from_result(
        found.six, image=drawn, colors=faded, alpha=1.0, ax=list_axes
    )
    display.axes_[0].set_title("three strokes")
    MarginalsDisplay.from_result(found.post, ax=last, panels="entropy", n_regions=0, colorbar=False)
    last.set_title("entropy")
    for ax in figure.axes:
        ax.title.set_fontsize(10)
    return figure
