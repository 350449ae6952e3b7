"""The Weizmann horses: 60 photographs, each with the outline of its horse."""

from __future__ import annotations

import numpy as np
from PIL import Image

from experiments.shared.data import require

SET = "weizmann_horses"


def names() -> list[str]:
    """The 60 photographs, in order."""
    return sorted(path.stem for path in require(SET, "rgb").glob("*.jpg"))


def photograph(name: str) -> np.ndarray:
    """Red, green and blue, shape (h, w, 3), uint8."""
    return np.array(Image.open(require(SET, "rgb", f"{name}.jpg")).convert("RGB"))


def mask(name: str) -> np.ndarray:
    """Where the horse is, shape (h, w), bool."""
    return np.array(Image.open(require(SET, "mask", f"{name}.png")).convert("L")) > 0
