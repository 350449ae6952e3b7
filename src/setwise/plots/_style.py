"""What the pictures share: matplotlib when it is there, and colours that all can tell apart."""

from __future__ import annotations

from types import ModuleType

# Okabe and Ito's palette: told apart with any of the common colour vision deficiencies, and by
# most people in grey.
VERMILLION = "#D55E00"
BLUE = "#0072B2"
GREEN = "#009E73"
INK = "#222222"
FAINT = "#9A9A9A"


def import_pyplot() -> ModuleType:
    """``matplotlib.pyplot``, imported only when something is drawn."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib, which pip install 'setwise[plot]' brings"
        ) from error
    return pyplot
