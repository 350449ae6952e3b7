"""What lies near a stroke is more often meant by it."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import distance_transform_edt

from setwise._foundation._arguments import FloatArray, IntArray

# Blocks of pixels along the longest side: distances vary so little that one a block will do.
_BLOCKS = 160


def location_costs(marks: IntArray, shape: tuple[int, ...], n_labels: int) -> FloatArray:
    r"""Costs (N, L) between 0 and 1, :math:`d_l / \sum_k d_k`, with d the distances to strokes.

    The distance from a pixel's block to the nearest one with a stroke of the label, plus one. A
    label without strokes has no part in it: it costs 0 everywhere. So do all if one alone is drawn.
    """
    image = marks.reshape(shape)
    step = -(-max(shape) // _BLOCKS)
    blocks = tuple(-(-side // step) for side in shape)
    drawn = np.flatnonzero(np.bincount(marks[marks >= 0], minlength=n_labels))
    costs = np.zeros((*blocks, n_labels))
    if len(drawn) > 1:
        for label in drawn:
            away = np.ones(blocks, np.bool_)
            away[tuple(place // step for place in np.nonzero(image == label))] = False
            costs[..., label] = 1.0 + distance_transform_edt(away)
        costs /= costs.sum(axis=-1, keepdims=True)
    for axis, side in enumerate(shape):
        costs = np.take(costs, np.arange(side) // step, axis=axis)
    return costs.reshape(-1, n_labels)
