"""What the pictures share: matplotlib when it is there, and colours that all can tell apart."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from setwise._imports import load
from setwise.functions._arguments import FloatArray

# Okabe and Ito's palette: told apart with any of the common colour vision deficiencies, and by
# most people in grey.
VERMILLION = "#D55E00"
BLUE = "#0072B2"
GREEN = "#009E73"
INK = "#222222"
FAINT = "#9A9A9A"
OKABE_ITO = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", VERMILLION, "#F0E442", INK)


def import_pyplot() -> ModuleType:
    """``matplotlib.pyplot``, imported only when something is drawn."""
    try:
        load("matplotlib.pyplot")  # whole, also where Ctrl-C comes
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib, which pip install 'setwise[plot]' brings"
        ) from error
    return pyplot


def label_colors(colors: Any, n_labels: int) -> FloatArray:
    """(L, 4): a colour for each label, those given or ones that differ."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba_array

    if colors is None:
        if n_labels <= len(OKABE_ITO):
            colors = OKABE_ITO[:n_labels]
        elif n_labels <= 20:
            colors = colormaps["tab20"](np.arange(n_labels))
        else:
            colors = colormaps["turbo"](np.linspace(0.0, 1.0, n_labels))
    palette: FloatArray = to_rgba_array(colors)
    if len(palette) != n_labels:
        raise ValueError(
            f"colors must hold {n_labels} colours, one for each label, got {len(palette)}"
        )
    return palette
