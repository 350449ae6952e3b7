"""Good calls on images."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_registry import array, listed

from setwise import fields

IMAGE = array([10.0, 12.0, 11.0, 200.0], [12.0, 10.0, 190.0, 205.0], [9.0, 14.0, 195.0, 198.0])
SCRIBBLES = array([0, -1, -1, -1], [-1, -1, -1, 1], [-1, -1, -1, -1])
CHANCES = np.stack([IMAGE / 256, 1 - IMAGE / 256], axis=-1)
COMMON: dict[str, Any] = {
    "image": IMAGE,
    "scribbles": SCRIBBLES,
    "n_labels": 2,
    "colors": "mixture",
    "smoothness": 0.5,
    "beta": 1e-3,
    "location": 0.5,
    "connectivity": 4,
    "regions": [array([0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1])],
    "region_weight": 0.5,
    "channel_axis": None,
}


def energies(field: fields.Field) -> Any:
    labels = np.array([[0] * 12, [1] * 12, [0, 0, 0, 1] * 3])
    return field.unary, field.energy(labels)


listed(
    "images.field_from_image",
    energies,
    **COMMON,
    boxes=array([0, 0, 3, 4], [1, 1, 3, 3]),
    probabilities=None,
)
listed(
    "images.segment",
    lambda found: (found.labels, found.value, found.alternatives.labelings),
    **COMMON,
    boxes=None,
    probabilities=CHANCES,
    n_alternatives=2,
    temperature=1.5,
    tol=1e-6,
    time_limit=3600.0,
    n_jobs=1,
)
