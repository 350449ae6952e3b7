"""The choice of C on held-out rows, along a path from the smallest useful C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from setwise.estimators._boosting._early_stopping import Evaluation
from setwise.learning._boosting._problem import Risk, WeakLearnerSearch

T = TypeVar("T")

# The values of C on the path, relative to the least C with a nonzero weight, spaced by factors of
# about 3, and the one that a path tries first, and that is used if there are too few rows to hold
# some out. The guide documents them.
_RATIOS = (5.0, 15.0, 50.0, 150.0)
USUAL = _RATIOS[2]
# The least tolerance of the fits that choose C. It is coarse on purpose: they only have to order
# values of C that differ by a factor of 3.
PATH_TOLERANCE = 0.1
# The largest share of a time limit that the choice of C may take: as much as the fit at that C.
PATH_TIME = 0.5


def least_c(risk: Risk, search: WeakLearnerSearch, *, grouped: bool = False) -> float:
    r"""Return :math:`C = 1 / \max_h \langle -R'(0), h \rangle`, below which all weights are 0.

    With ``grouped``, a learner has a weight in every segment, and the norm of its gains replaces
    its gain.

    It grows with the number of classes, since a learner then concerns fewer examples. If the risk
    has one subgradient at 0, as with two classes, weights are positive above this C. If it has
    several, R' is one of them, and weights may become positive only at a larger C.
    """
    offsets = risk.offsets
    _, slope = risk(np.zeros(offsets[-1]))
    column = search(-slope)[0]
    if grouped:
        edge = float(np.linalg.norm(slope.reshape(len(offsets) - 1, -1) @ column.response))
    else:
        own = slice(offsets[column.segment], offsets[column.segment + 1])
        edge = -float(slope[own] @ column.response)
    # No weak learner lowers the risk, so any number will do.
    return 1.0 / edge if edge > 1e-9 else 1.0


class PathOfC(Generic[T]):
    """The values of C that were tried, and the best of them.

    From its first value the path goes up while the score improves. If the first step up does not
    improve it, the path goes down.

    Parameters
    ----------
    attempt : C -> (evaluation, other results of the fit)
    more : () -> bool
        Whether there is time for another value.
    before : PathOfC, optional
        The path of another surrogate. The new path begins at its best value, and ends there if the
        score is not better.
    """

    def __init__(
        self,
        least: float,
        attempt: Callable[[float], tuple[Evaluation, T]],
        more: Callable[[], bool],
        before: PathOfC[T] | None = None,
    ) -> None:
        self.scores: dict[float, float] = {}
        self._best: tuple[float, float] | None = None
        self._least, self._attempt = least, attempt
        start = _RATIOS.index(USUAL) if before is None else before.place
        self._try(start)
        if before is not None and self.best <= before.best:
            return
        for step in (1, -1):
            place = start + step
            while 0 <= place < len(_RATIOS) and more() and self._try(place):
                place += step
            if self.place != start:
                return

    @property
    def C(self) -> float:
        """The best C."""
        return _RATIOS[self.place] * self._least

    @property
    def best(self) -> float:
        """The best score."""
        return self.scores[self.C]

    def _try(self, place: int) -> bool:
        """Try the value at an index of the path, and return whether it is the best so far."""
        C = _RATIOS[place] * self._least
        evaluation, left = self._attempt(C)
        self.scores[C] = evaluation.score
        now = evaluation.score, -evaluation.loss
        better = self._best is None or now > self._best
        if better:
            self._best, self.place, self.left = now, place, left
        return better
