"""Good calls on images."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from example_registry import EXAMPLES, Example, array, listed

from setwise import fields, images

FOLDER = Path(tempfile.mkdtemp())
IMAGE = array([10.0, 12.0, 11.0, 200.0], [12.0, 10.0, 190.0, 205.0], [9.0, 14.0, 195.0, 198.0])
SCRIBBLES = array([0, -1, -1, -1], [-1, -1, -1, 1], [-1, -1, -1, -1])
CHANCES = np.stack([IMAGE / 256, 1 - IMAGE / 256], axis=-1)
SETTINGS = {
    "beta": 1e-3,
    "location": 0.5,
    "connectivity": 4,
    "region_weight": 0.5,
    "spacing": array(2.0, 1.0),
}
COMMON: dict[str, Any] = {
    "image": IMAGE,
    "scribbles": SCRIBBLES,
    "n_labels": 2,
    "colors": "mixture",
    "smoothness": 0.5,
    "regions": [array([0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1])],
    "channel_axis": None,
    "options": images.FieldOptions(**SETTINGS),
}


def energies(field: fields.Field) -> Any:
    labels = np.array([[0] * 12, [1] * 12, [0, 0, 0, 1] * 3])
    return field.unary, field.energy(labels)


EXAMPLES["setwise.images.FieldOptions"] = Example(
    lambda **settings: images.field_from_image(
        IMAGE, SCRIBBLES, regions=4, options=images.FieldOptions(**settings)
    ),
    SETTINGS,
    energies,
)
listed(
    "images.field_from_image",
    energies,
    **COMMON,
    boxes=array([0, 0, 3, 4], [1, 1, 3, 3]),
    probabilities=None,
)
images.write(FOLDER / "labels.png", SCRIBBLES + 1)
listed(
    "images.read",
    lambda picture: (picture.pixels, picture.channel_axis),
    path=str(FOLDER / "labels.png"),
)
listed(
    "images.write",
    lambda _: images.read(FOLDER / "written.npy").pixels,
    path=str(FOLDER / "written.npy"),
    values=SCRIBBLES + 1,
    like=images.read(FOLDER / "labels.png"),
    channels=False,
)
listed(
    "images.segment",
    lambda found: (found.labels, found.value, found.alternatives.labelings),
    **COMMON,
    boxes=None,
    probabilities=CHANCES,
    time_limit=3600.0,
    n_jobs=1,
)
