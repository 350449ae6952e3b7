"""The Weizmann horses: 60 photographs, each with the outline of its horse."""

from __future__ import annotations

import numpy as np
from PIL import Image

from experiments.shared.data import require

SET = "weizmann_horses"


def names() -> list[str]:
    """Return the names of the 60 photographs, in order."""
    return sorted(path.stem for path in require(SET, "rgb").glob("*.jpg"))


def photograph(name: str) -> np.ndarray:
    """Return red, green and blue of a photograph, shape (h, w, 3), uint8."""
    return np.array(Image.open(require(SET, "rgb", f"{name}.jpg")).convert("RGB"))


def mask(name: str) -> np.ndarray:
    """Return the mask of the horse, shape (h, w), bool."""
    return np.array(Image.open(require(SET, "mask", f"{name}.png")).convert("L")) > 0
