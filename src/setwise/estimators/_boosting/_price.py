"""C by the data: a path from the least that pays, judged on rows held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from setwise.estimators._boosting._early_stopping import Verdict
from setwise.learning import WeakLearnerSearch
from setwise.learning._boosting._problem import Risk

T = TypeVar("T")

# In parts of the least C for which a weak learner pays.
_RATIOS = (5.0, 15.0, 50.0, 150.0)
USUAL = 50.0  # where there are too few rows to hold some out, and where a path begins
_FIXED = 100.0  # where no weak learner pays, whatever C is


def least_price(risk: Risk, search: WeakLearnerSearch, *, grouped: bool = False) -> float:
    r"""Return :math:`C = 1 / \max_h \langle -R'(0), h \rangle`, below which no learner pays.

    ``grouped``: a learner has all segments, and the norm of what it gains in them counts.

    It grows with the number of classes, since a learner then speaks for fewer examples. Where the
    risk has one slope at 0, as with two classes, learners pay from there on; where it has many, R'
    is one of them, and they may begin to pay later.
    """
    offsets = risk.offsets
    _, slope = risk(np.zeros(offsets[-1]))
    column = search(-slope)[0]
    if grouped:
        edge = float(np.linalg.norm(slope.reshape(len(offsets) - 1, -1) @ column.response))
    else:
        own = slice(offsets[column.segment], offsets[column.segment + 1])
        edge = -float(slope[own] @ column.response)
    return 1.0 / edge if edge > 1e-9 else _FIXED / USUAL


class PricePath(Generic[T]):
    """The prices that were tried, and the best of them.

    From its first price it goes up as long as that is better, else down.

    Parameters
    ----------
    attempt : C -> (verdict, what else it left)
    more : () -> bool
        Whether there is time for another.
    before : PricePath, optional
        That of another surrogate. It is begun where that one was best, and left there if the score
        is no better.
    """

    def __init__(
        self,
        least: float,
        attempt: Callable[[float], tuple[Verdict, T]],
        more: Callable[[], bool],
        before: PricePath[T] | None = None,
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
        """The best price."""
        return _RATIOS[self.place] * self._least

    @property
    def best(self) -> float:
        """The best score."""
        return self.scores[self.C]

    def _try(self, place: int) -> bool:
        """Try the price at a place, and return whether it is better than those before."""
        C = _RATIOS[place] * self._least
        verdict, left = self._attempt(C)
        self.scores[C] = verdict.score
        now = verdict.score, -verdict.loss
        better = self._best is None or now > self._best
        if better:
            self._best, self.place, self.left = now, place, left
        return better
