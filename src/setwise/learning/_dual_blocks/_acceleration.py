"""Nesterov acceleration for large C: a proximal term pulls the weights to extrapolated ones."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray

# The pull is _SHARE times C |x|^2, because without a pull the number of passes is about C |x|^2 if
# there are many examples per feature. It is smaller below _MANY examples per feature, where few
# passes suffice.
_SHARE, _MANY = 0.1, 10.0
# The same share, and the least pull, if a fit with a similar C is the start.
_SHARE_NEAR, _LEAST_NEAR = 0.25, 1.0


class Acceleration:
    r"""Stages with the objective 1/2 |W|^2 + k/2 |W - V|^2 + C risk(W), each with its own V.

    The pull k divides C by 1 + k: with :math:`\gamma = 1 / (1 + k)` the weights are
    :math:`\gamma (W(b) + k V)`, a step changes them :math:`\gamma` times as much, and its curvature
    is :math:`\gamma |x|^2`. The stages follow Nesterov's sequence,

    .. math:: V = W_t + \beta_t (W_t - W_{t-1}),

    so that there are about :math:`\sqrt{1 + k}` stages. Without a pull, 1 + k times as many passes
    as in one stage would be needed. b always stays in its polymatroids, and therefore gives a
    bound of the original problem at any time. A stage ends when its gap is below
    :math:`k/2 |W - V|^2` of the stage before.

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
        self.pull = pull if np.isfinite(pull) and pull > 0.0 else 0.0
        self.gain = 1.0 / (1.0 + self.pull)
        self.near = near is not None
        self._toward = self._last = W if near is None else near
        self._momentum = 1.0
        self.accuracy = 0.0

    def begin(self, W: FloatArray) -> FloatArray:
        """Return the weights of a stage, given the weights of b."""
        return self.gain * (W + self.pull * self._toward) if self.pull else W

    def undo(self, now: FloatArray) -> FloatArray:
        """Return the weights of b, given the weights of a stage."""
        return now / self.gain - self.pull * self._toward

    def end(self, W: FloatArray) -> FloatArray:
        """Return the final weights of a stage, and extrapolate the V of the next stage."""
        if not self.pull:
            return W
        now = self.begin(W)
        apart = now - self._toward
        self.accuracy = 0.5 * self.pull * float(np.vdot(apart, apart))
        moved = now - self._last
        # Restart the momentum after overshooting.
        before = 1.0 if np.vdot(apart, moved) < 0 else self._momentum
        rest = self.gain - before * before
        self._momentum = 0.5 * (rest + np.sqrt(rest * rest + 4.0 * before * before))
        onward = before * (1.0 - before) / (before * before + self._momentum)
        self._toward, self._last = now + onward * moved, now
        return now
