"""Edges between the pixels of an image, weaker where its colours change."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields import contrast_weights, grid_edges
from setwise.fields._edges import grid_of
from setwise.images._pixels import Pixels


def contrast_edges(
    pixels: Pixels, connectivity: int | ArrayLike | None = None, beta: float | None = None
) -> tuple[IntArray, FloatArray]:
    r"""Return edges (E, 2) of a grid and weights :math:`\exp(-\beta |I_i - I_j|^2) / |i - j|`.

    Weights are divided by the distance of the pixels, so that a border of a given length costs
    about the same in all directions. The smallest spacing is the unit of length. ``beta`` is by
    default one over twice the mean square of the changes. Weights are multiples of
    :math:`2^{-32}`, so that sums of them and of rounded costs are exact.
    """
    edges = grid_edges(pixels.shape, connectivity)
    image = pixels.values.reshape(*pixels.shape, -1)
    weights = contrast_weights(image, edges, beta, channels=True)
    grid = grid_of(edges)
    assert grid is not None
    spacing = np.array(pixels.spacing or (1.0,) * len(pixels.shape))
    spacing /= spacing.min()
    start = 0
    for step in grid.steps:
        length = float(np.linalg.norm(step * spacing))
        sides = zip(step, pixels.shape, strict=True)
        end = start + int(np.prod([max(side - abs(along), 0) for along, side in sides]))
        if length != 1.0:
            weights[start:end] /= length
        start = end
    np.ldexp(weights, 32, out=weights)
    np.rint(weights, out=weights)
    np.ldexp(weights, -32, out=weights)
    return edges, weights
