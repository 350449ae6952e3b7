"""Where the price is high: the weights are held back, by a pull towards where they are going."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray

# Passes are about as many as C |x|^2 where examples are many beside the features, few otherwise.
_SHARE, _MANY = 0.1, 10.0
# More where the weights are nearly known, and always some.
_SHARE_NEAR, _LEAST_NEAR = 0.25, 1.0
_LEAST = 0.5


class Acceleration:
    r"""The dual of 1/2 |W|^2 + k/2 |W - V|^2 + C risk(W) instead, with V moved on after each stage.

    The pull k divides the price: with :math:`\gamma = 1 / (1 + k)` the weights are
    :math:`\gamma (W(b) + k V)`, a step moves them :math:`\gamma` times as far, and its curvature is
    :math:`\gamma |x|^2`. The stages follow Nesterov's sequence,

    .. math:: V = W_t + \beta_t (W_t - W_{t-1}),

    so that there are about :math:`\sqrt{1 + k}` of them where passes without a pull are 1 + k times
    as many. b is in its polymatroids all the while: the bound of the problem itself is there at
    any time. A stage ends where its gap is below :math:`k/2 |W - V|^2` of the one before.

    H. Lin, J. Mairal, Z. Harchaoui, Catalyst acceleration for first-order convex optimization,
    2018.
    """

    def __init__(
        self,
        price: float,
        examples: int,
        columns: int,
        W: FloatArray,
        *,
        least: float = 0.0,
        near: FloatArray | None = None,
    ) -> None:
        many = min(1.0, examples / (_MANY * max(columns, 1))) ** 2
        share = _SHARE if near is None else _SHARE_NEAR
        if near is not None and price > 0.0:
            least = max(least, _LEAST_NEAR)
        pull = max(share * many * price - 1.0, least)
        self.pull = pull if np.isfinite(pull) and pull > _LEAST else 0.0
        self.gain = 1.0 / (1.0 + self.pull)
        self.near = near is not None
        self._toward = self._last = W if near is None else near
        self._momentum = 1.0
        self.accuracy = 0.0

    def begin(self, W: FloatArray) -> FloatArray:
        """The weights of a stage, for those of b alone."""
        return self.gain * (W + self.pull * self._toward) if self.pull else W

    def undo(self, now: FloatArray) -> FloatArray:
        """The weights of b alone, for those of a stage."""
        return now / self.gain - self.pull * self._toward

    def end(self, W: FloatArray) -> FloatArray:
        """The weights that a stage ended with; the next one pulls further on."""
        if not self.pull:
            return W
        now = self.begin(W)
        apart = now - self._toward
        self.accuracy = 0.5 * self.pull * float(np.vdot(apart, apart))
        moved = now - self._last
        before = 1.0 if np.vdot(apart, moved) < 0 else self._momentum  # past the minimum: anew
        rest = self.gain - before * before
        self._momentum = 0.5 * (rest + np.sqrt(rest * rest + 4.0 * before * before))
        onward = before * (1.0 - before) / (before * before + self._momentum)
        self._toward, self._last = now + onward * moved, now
        return now
