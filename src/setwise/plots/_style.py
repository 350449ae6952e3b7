"""The common parts of displays: the import of matplotlib, and colours."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray, refuse_masked
from setwise._foundation._imports import load

# Okabe and Ito's palette, which can be distinguished with all common colour vision deficiencies,
# and mostly in grey.
VERMILLION = "#D55E00"
BLUE = "#0072B2"
GREEN = "#009E73"
INK = "#222222"
FAINT = "#9A9A9A"
OKABE_ITO = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", VERMILLION, "#F0E442", INK)


def import_pyplot() -> ModuleType:
    """Import ``matplotlib.pyplot`` on demand."""
    try:
        load("matplotlib.pyplot")  # ``load`` completes the import even at Ctrl-C
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib, which pip install 'setwise[plot]' brings"
        ) from error
    return pyplot


def as_axes(ax: Any, number: int | None = None) -> NDArray[Any]:
    """Return Matplotlib's axes, one or several, as an array of objects."""
    refuse_masked(ax, "ax")
    try:
        axes = np.atleast_1d(np.asarray(ax, dtype=object))
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"ax must be matplotlib axes, got {type(ax).__name__}") from error
    strangers = [
        one for one in axes.flat if not (hasattr(one, "imshow") and hasattr(one, "figure"))
    ]
    if strangers or axes.size == 0:
        what = type(strangers[0]).__name__ if strangers else "none"
        raise TypeError(f"ax must be matplotlib axes, got {what}")
    if number is not None and axes.size != number:
        raise ValueError(f"ax must be {number} axes, got {axes.size}")
    return axes


def as_style(style: object, name: str) -> dict[str, Any]:
    """Return keywords for matplotlib; None means no keywords."""
    if style is None:
        return {}
    if not isinstance(style, Mapping):
        raise TypeError(f"{name} must be a mapping, got {type(style).__name__}")
    return dict(style)


def label_colors(colors: Any, n_labels: int) -> FloatArray:
    """Return a colour for each label, (L, 4): the given ones, or distinct ones."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba_array

    if colors is None:
        if n_labels <= len(OKABE_ITO):
            colors = OKABE_ITO[:n_labels]
        elif n_labels <= 20:
            colors = colormaps["tab20"](np.arange(n_labels))
        else:
            colors = colormaps["turbo"](np.linspace(0.0, 1.0, n_labels))
    refuse_masked(colors, "colors")
    try:
        palette: FloatArray = np.asarray(to_rgba_array(colors), np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(
            f"colors must be what matplotlib takes for colours, got: {error}"
        ) from error
    if not np.isfinite(palette).all():
        raise ValueError("colors must be finite, got NaN or infinity")
    if len(palette) != n_labels:
        raise ValueError(
            f"colors must hold {n_labels} colours, one for each label, got {len(palette)}"
        )
    return palette
