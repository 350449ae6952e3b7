"""Several planes a round: parts of a sum have planes of their own, which can be combined anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._bundle import Bundle
from setwise.learning._cutting_planes._search import Search
from setwise.learning._tree_sum import tree_sum

Plane = tuple[float, FloatArray]
Highest = Callable[[FloatArray], tuple[FloatArray, float, float]]

_KEPT = 40  # planes of each part
# A combination that raises the model's optimum by less, as a share of the gap, is not worth a
# place in the bundle; and after so many of them the oracle knows more.
_WORTH, _MOST = 0.02, 30


class PartedOracle:
    r"""w -> the risk and a subgradient, from those of its parts, :math:`R = \sum_b R_b`.

    Each part has a plane a round, :math:`R_b(w) \ge \beta_{bk} + \langle a_{bk}, w \rangle`, and
    any choice :math:`k_b` of one plane a part gives a plane below R. So k rounds of B parts have
    :math:`k^B` planes, of which the one that is highest at any w is soon found: that is the model
    with a variable for each part, at the price of the model with one.

    Parameters
    ----------
    ask : callable
        w -> the planes of the parts, (risk, subgradient) each, always as many and in one order. The
        answer is their sum along the tree.
    """

    def __init__(self, ask: Callable[[FloatArray], Sequence[Plane]]) -> None:
        self._ask = ask
        self._slopes: list[FloatArray] = []  # a row a plane, for each part
        self._offsets: list[FloatArray] = []

    def __call__(self, w: FloatArray) -> Plane:
        """The sum of the parts, whose planes are kept."""
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
        """The combination that is highest at w: slope, offset, and the size of what it sums."""
        slope, offset, size = np.zeros(len(w)), 0.0, 0.0
        for slopes, offsets in zip(self._slopes, self._offsets, strict=True):
            best = int((offsets + slopes @ w).argmax())
            slope += slopes[best]
            offset += float(offsets[best])
            size += abs(float(offsets[best]))
        return slope, offset, size


def recombine(highest: Highest, bundle: Bundle, search: Search) -> None:
    """Raise the model by combinations of the planes of parts, until none says more than it does."""
    for _ in range(_MOST):
        w, promised = bundle.near(search.C, search.best, 0.0)
        slope, offset, size = highest(w)
        along = slope * w
        height = 0.5 * float(w @ w) + search.C * (offset + float(along.sum()))
        if height - promised <= _WORTH * (search.value - promised):
            return
        bundle.add(slope[None, :], np.array([offset]), np.array([size + np.abs(along).sum()]))
