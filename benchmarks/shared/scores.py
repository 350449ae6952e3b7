"""Labels and scores of one large set."""

from __future__ import annotations

import numpy as np


def draw(kind: str, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels (30 % positive) and float32 scores.

    The kind "separated" leaves 0.5 % of violators.
    """
    rng = np.random.default_rng(seed)
    y = rng.random(p) < 0.3
    scores = rng.standard_normal(p)
    if kind == "separated":
        scores = np.where(y, 1.0, -1.0) * (3.6 + scores)
    return y, scores.astype(np.float32)
