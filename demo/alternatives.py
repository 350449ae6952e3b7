"""Three strokes on a photograph: six possible masks, and where the model is uncertain."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from skimage import data, draw, transform

from setwise import diverse, marginals
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.images import field_from_image
from setwise.inference import DiverseResult, MarginalsResult

SIDE, QUICK_SIDE = 192, 48
N_ITEMS = 6
# Each entry has a label and the points of a stroke, as (row, column) relative to the side. One
# stroke is on the astronaut, one on either side of her.
STROKES: tuple[tuple[int, tuple[tuple[float, float], ...]], ...] = (
    (1, ((0.2, 0.41), (0.45, 0.45), (0.88, 0.35))),
    (0, ((0.16, 0.11), (0.59, 0.06))),
    (0, ((0.1, 0.7), (0.5, 0.9))),
)
TEMPERATURE = 1.0
TOL = 1e-2


@dataclass(frozen=True)
class Alternatives:
    """The photograph, the scribbles, and the results of inference."""

    image: FloatArray
    """(H, W, 3), between 0 and 1."""
    scribbles: IntArray
    """(H, W): 1 on the object, 0 beside it, -1 for unmarked pixels."""
    six: DiverseResult
    post: MarginalsResult

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.image.shape[0], self.image.shape[1]


def cut_out(side: int) -> Alternatives:
    """Cut scikit-image's astronaut out of her photograph, at ``side`` by ``side`` pixels."""
    image = transform.resize(data.astronaut(), (side, side), anti_aliasing=True)
    scribbles = draw_scribbles(side)
    field = field_from_image(image, scribbles)
    return Alternatives(
        image,
        scribbles,
        diverse(field, N_ITEMS),
        marginals(field, tol=TOL, temperature=TEMPERATURE),
    )


def draw_scribbles(side: int) -> IntArray:
    """Draw the strokes as labels, three pixels wide; -1 where there is none."""
    scribbles = np.full((side, side), -1)
    for label, points in STROKES:
        corners = (np.array(points) * side).astype(int)
        for begin, end in itertools.pairwise(corners):
            rows, columns = draw.line(*begin, *end)
            for shift in (-1, 0, 1):
                scribbles[rows, columns + shift] = label
    return scribbles
