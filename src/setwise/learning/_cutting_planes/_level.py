"""The next point at which cutting planes evaluate the risk."""

from __future__ import annotations

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._bundle import Bundle
from setwise.learning._cutting_planes._learner import Learner

# The target level of the model's objective between bound (0) and best value (1). The number of
# rounds hardly changes for levels from 0.5 to 0.8; at level 0, the model's optimum, it is several
# times larger.
_LEVEL = 0.7
# A level this close to the target leaves the pull as it is, and a model whose error is at most this
# share of the predicted gain is accurate. On hinge problems with C from 1 to 1e8 a quarter of it
# leaves the number of rounds within a tenth; three to four times as much takes up to two thirds
# more.
_LEEWAY = 0.1
# The factor by which the pull changes. On the same problems 1.3 and 10 take up to a quarter and
# three fifths more rounds.
_FACTOR = 2.7
# The largest pull, and the reciprocal of the least. Large C need large pulls, because 1/2 |w|^2 is
# then negligible compared with the risk: from C = 1e12 on a limit of 1e6 takes a quarter more
# rounds, and for C up to 1e4 the same.
_MOST = 1e18
# Each point is moved back towards the best weights by this share. At the vertex of the model many
# scores lie on a kink of the risk, where rounding errors, and thus the order of the rows, would
# decide which subgradient is returned. A quarter of it changes no round, four times as much a few.
_ASIDE = 1e-6


class Level:
    r"""A level bundle method, which chooses points near the best weights.

    The planes are a poor model far from the points seen so far. So the next point is not the
    optimum of the model but

    .. math:: \arg\min_w \tfrac12 |w|^2 + C \max_k (b_k + \langle a_k, w \rangle)
        + \tfrac{u}{2} |w - w_{best}|^2 .

    The pull u is chosen such that the model's objective there lies about 0.7 of the way from the
    bound to the best value. It grows by a constant factor after a point below that level. It
    shrinks after a point above that level, or if the model was accurate.
    """

    def __init__(self) -> None:
        self._pull = 1.0  # at 1, the proximal term has the same weight as 1/2 |w|^2
        self._promised: float | None = None

    def learn(self, objective: float, value: float) -> None:
        """Compare the objective at the last point with the prediction of the model.

        ``value`` is the best objective before that point.
        """
        if self._promised is None:
            return
        if objective - self._promised <= _LEEWAY * (value - self._promised):
            self._pull = max(self._pull / _FACTOR, 1.0 / _MOST)

    def ask(self, bundle: Bundle, learner: Learner, *, freely: bool) -> FloatArray:
        """Return the next point, which is the optimum of the model if ``freely``."""
        w, self._promised = bundle.near(learner.C, learner.best, 0.0 if freely else self._pull)
        if not freely:
            share = (self._promised - learner.bound) / (learner.value - learner.bound)
            if share < _LEVEL - _LEEWAY:
                self._pull = min(self._pull * _FACTOR, _MOST)
            elif share > _LEVEL + _LEEWAY:
                self._pull = max(self._pull / _FACTOR, 1.0 / _MOST)
            w += _ASIDE * (learner.best - w)
        return w
