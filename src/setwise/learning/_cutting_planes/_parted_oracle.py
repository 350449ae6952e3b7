"""Several planes per round: the planes of the parts of a sum, which can be recombined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._bundle import Bundle
from setwise.learning._cutting_planes._learner import Learner
from setwise.learning._tree_sum import tree_sum

Plane = tuple[float, FloatArray]
Highest = Callable[[FloatArray], tuple[FloatArray, float, float]]

# The number of latest planes that are kept per part. It bounds memory and is not tuned.
_KEPT = 40
# A combination is added if it raises the model at its optimum by more than this share of the gap,
# and at most _MOST combinations are added per round. Then the oracle is called again. Not
# tuned: both bound the work between two calls.
_WORTH, _MOST = 0.02, 30


class PartedOracle:
    r"""An oracle for a risk that is a sum of parts, :math:`R = \sum_b R_b`.

    Each part has one plane per round, :math:`R_b(w) \ge \beta_{bk} + \langle a_{bk}, w \rangle`,
    and any choice :math:`k_b` of one plane per part gives a plane below R. So k rounds of B parts
    give :math:`k^B` planes, and the highest of them at any w is easy to find. This is the model
    with a variable per part, at the cost of the model with one variable.

    Parameters
    ----------
    ask : callable
        A function w -> list of (risk, subgradient) of the parts, always of the same number and
        order. The answer of the oracle is their sum along the tree.
    """

    def __init__(self, ask: Callable[[FloatArray], Sequence[Plane]]) -> None:
        self._ask = ask
        self._slopes: list[FloatArray] = []  # per part, one row per plane
        self._offsets: list[FloatArray] = []

    def __call__(self, w: FloatArray) -> Plane:
        """Return the sum of the parts, and store their planes."""
        parts = self._ask(w)
        if not self._slopes:
            self._slopes = [np.empty((0, len(w))) for _ in parts]
            self._offsets = [np.empty(0) for _ in parts]
        for b, (risk, slope) in enumerate(parts):
            self._slopes[b] = np.vstack([self._slopes[b], slope.reshape(1, -1)])[-_KEPT:]
            self._offsets[b] = np.append(self._offsets[b], risk - slope.ravel() @ w)[-_KEPT:]
        risk, slope = tree_sum(parts)
        return float(risk), slope.ravel()

    def _highest(self, w: FloatArray) -> tuple[FloatArray, float, float]:
        """Return the highest combination at w as its slope, offset and size of terms."""
        slope, offset, size = np.zeros(len(w)), 0.0, 0.0
        for slopes, offsets in zip(self._slopes, self._offsets, strict=True):
            best = int((offsets + slopes @ w).argmax())
            slope += slopes[best]
            offset += float(offsets[best])
            size += abs(float(offsets[best]))
        return slope, offset, size


def recombine(highest: Highest, bundle: Bundle, learner: Learner) -> None:
    """Add combinations of planes of parts to the model, until none raises it enough."""
    for _ in range(_MOST):
        w, promised = bundle.near(learner.C, learner.best, 0.0)
        slope, offset, size = highest(w)
        along = slope * w
        height = 0.5 * float(w @ w) + learner.C * (offset + float(along.sum()))
        if height - promised <= _WORTH * (learner.value - promised):
            return
        bundle.add(slope[None, :], np.array([offset]), np.array([size + np.abs(along).sum()]))
