"""Draw the picture of the guide's page on guarantees, from the example of the gallery.

    python docs/figures/conformal.py

Writes docs/images/conformal_masks.png.
"""

from __future__ import annotations

import contextlib
import runpy
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        runpy.run_path(str(ROOT / "examples" / "plot_conformal.py"))
    plt.gcf().savefig(ROOT / "docs" / "images" / "conformal_masks.png", dpi=100)
