"""Where cutting planes ask next."""

from __future__ import annotations

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._bundle import Bundle
from setwise.learning._cutting_planes._search import Search

# From 0.5 to 0.8 the rounds hardly change; at 0, the model's optimum, they are several times as
# many.
_LEVEL, _LEEWAY = 0.7, 0.1
# An answer that misses the model by so small a share of what it promised shows the model as right.
_RIGHT = 0.1
# The most is what the largest prices need, where 1/2 |w|^2 is next to nothing beside the risk.
_START, _FACTOR, _LEAST, _MOST = 1.5, 2.7, 1e-6, 1e18


# The share of the way back to the best weights. At the model's vertex itself many scores lie on a
# kink of the risk, and which subgradient comes back would be the choice of rounding, hence of the
# order of the rows.
_ASIDE = 1e-6


class Level:
    r"""A question near the best weights, as near as a level of the model says.

    The planes are a poor model far from what has been seen. So the next question is not the model's
    optimum but

    .. math:: \arg\min_w \tfrac12 |w|^2 + C \max_k (b_k + \langle a_k, w \rangle)
        + \tfrac{u}{2} |w - w_{best}|^2 .

    The pull u makes the model's objective there lie about 0.7 of the way from the bound to the best
    value: it grows by a constant factor after a question below that level and shrinks after one
    above it, or where the answer shows that the model was right.
    """

    def __init__(self) -> None:
        self._pull = _START
        self._promised: float | None = None

    def learn(self, objective: float, value: float) -> None:
        """Hold the objective at the question against what the model promised there.

        ``value`` is the best objective before it.
        """
        if self._promised is None:
            return
        if objective - self._promised <= _RIGHT * (value - self._promised):
            self._pull = max(self._pull / _FACTOR, _LEAST)

    def ask(self, bundle: Bundle, search: Search, *, freely: bool) -> FloatArray:
        """The next question; the model's optimum if freely."""
        w, self._promised = bundle.near(search.C, search.best, 0.0 if freely else self._pull)
        if not freely:
            share = (self._promised - search.bound) / (search.value - search.bound)
            if share < _LEVEL - _LEEWAY:
                self._pull = min(self._pull * _FACTOR, _MOST)
            elif share > _LEVEL + _LEEWAY:
                self._pull = max(self._pull / _FACTOR, _LEAST)
            w += _ASIDE * (search.best - w)
        return w
