"""The structured hinge of boxes: how wrong the best-scored box of each frame may be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray, IntArray


class BoxRisk:
    r"""Mean over frames of the margin-rescaled hinge of the Pascal loss, Section 3.5.

    .. math:: R(f) = \frac1m \sum_i \max_{y \in Y_i} \Delta(y_i, y) + f_i(y) - f_i(y_i)

    with :math:`\Delta` one minus the overlap and :math:`Y_i` the boxes sampled in frame i, of which
    the first is the true one :math:`y_i`. One segment of scores, a row a box. O(boxes).

    Parameters
    ----------
    losses : (boxes,) floats
        0 for the true box of each frame.
    starts : (frames + 1,) integers
        Where the boxes of a frame begin.
    """

    def __init__(self, losses: FloatArray, starts: IntArray) -> None:
        self._losses = losses
        self._starts = starts
        self.offsets = np.array([0, len(losses)], dtype=np.int64)

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """The risk, and 1/m (row of the worst box - row of the true box), summed over frames."""
        worst, values = self._worst(scores)
        true, frames = self._starts[:-1], len(values)
        slope = np.zeros_like(scores)
        slope[worst] += 1.0 / frames  # a frame's rows are its own: no row is met twice
        slope[true] -= 1.0 / frames
        return float(np.mean(values)), slope

    def each(self, scores: FloatArray) -> tuple[FloatArray, csr_array]:
        """The frames' risks and their subgradients, a row each."""
        worst, values = self._worst(scores)
        frames = len(values)
        indices = np.stack([worst, self._starts[:-1]], axis=1).ravel()
        rows = csr_array(
            (np.tile([1.0, -1.0], frames), indices, 2 * np.arange(frames + 1)),
            shape=(frames, len(scores)),
        )
        rows.sum_duplicates()
        return values, rows

    def _worst(self, scores: FloatArray) -> tuple[IntArray, FloatArray]:
        """For each frame the row of the most violated box, and the frame's risk."""
        augmented = self._losses + scores
        frames = pairwise(self._starts)
        worst = np.array([start + np.argmax(augmented[start:stop]) for start, stop in frames])
        return worst, augmented[worst] - scores[self._starts[:-1]]
