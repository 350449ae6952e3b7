"""Figures made of rows of pictures with captions, as in the papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

Panel = tuple[np.ndarray, str]
"""An image (h, w, 3) and its caption."""


def dimmed(image: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the image, darkened where the label is not 1."""
    return (image * np.where(labels == 1, 1.0, 0.2)[..., None]).astype(np.uint8)


def scribbled(image: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Return the image with its scribbles: orange on the object, blue on the background."""
    drawn = image.copy()
    drawn[marks == 1], drawn[marks == 0] = (255, 120, 0), (0, 160, 255)
    return drawn


def draw_rows(
    path: Path,
    heads: Sequence[str],
    rows: Sequence[Sequence[Panel]],
    legend: Sequence[tuple[np.ndarray, str]] = (),
) -> None:
    """Draw one row of panels per case, a head above each column and a legend of colours below."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    size = (2.1 * len(heads), 1.65 * len(rows) + (0.9 if legend else 0.3))
    figure, axes = plt.subplots(
        len(rows), len(heads), figsize=size, squeeze=False, layout="constrained"
    )
    for cells, row in zip(axes, rows, strict=True):
        for axis, (picture, caption) in zip(cells, row, strict=True):
            axis.imshow(picture, interpolation="nearest")
            axis.set_xlabel(caption, fontsize=10, labelpad=2)
            axis.set_xticks([])
            axis.set_yticks([])
            axis.spines[:].set_visible(False)
    for axis, head in zip(axes[0], heads, strict=True):
        axis.set_title(head, fontsize=10)
    if legend:
        patches = [Patch(color=color, label=words) for color, words in legend]
        figure.legend(handles=patches, loc="outside lower center", ncols=min(len(patches), 11))
    figure.savefig(path, dpi=100)
    plt.close(figure)
