"""The dual with a block of planes per example, and steps that improve one block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._learner import Learner

# (i, w) -> the risk of example i and a subgradient with respect to w.
ExampleOracle = Callable[[int, FloatArray], tuple[float, FloatArray]]


class Block:
    r"""The planes of one example, risk_i(w) >= b_k + <a_k, w>, with weights alpha on the simplex.

    The block adds :math:`w_i = -C \sum_k \alpha_k a_k` to the weights and :math:`C \langle b,
    \alpha \rangle` to the dual. It begins with the plane 0, since risks are nonnegative.
    """

    def __init__(self, dimension: int) -> None:
        self.slopes = np.zeros((1, dimension))
        self.offsets = np.zeros(1)
        self.alpha = np.ones(1)

    def add(self, slope: FloatArray, offset: float) -> None:
        """Add a plane with weight 0."""
        self.slopes = np.vstack([self.slopes, slope])
        self.offsets = np.append(self.offsets, offset)
        self.alpha = np.append(self.alpha, 0.0)

    def slack(self, w: FloatArray) -> float:
        """Return the value of the highest plane at w."""
        return float((self.offsets + self.slopes @ w).max())

    def improve(self, w: FloatArray, C: float) -> float:
        """Move weight from the lowest plane in use to the highest, as far as the dual increases.

        This updates w in place. Returns the difference of the two planes, which is 0 at the
        optimum.
        """
        heights = self.offsets + self.slopes @ w
        high = int(heights.argmax())
        used = np.flatnonzero(self.alpha > 0)
        low = int(used[heights[used].argmin()])
        apart = float(heights[high] - heights[low])
        if high == low or apart <= 0:
            return 0.0
        direction = self.slopes[high] - self.slopes[low]
        curvature = C * float(direction @ direction)
        most = float(self.alpha[low])
        step = most if curvature <= 0 else min(most, apart / curvature)
        self.alpha[high] += step
        self.alpha[low] = 0.0 if step == most else most - step
        w -= C * step * direction
        return apart

    def drop_idle(self) -> None:
        """Drop the planes without weight, except the plane 0."""
        kept = self.alpha > 0
        kept[0] = True
        self.slopes, self.offsets = self.slopes[kept], self.offsets[kept]
        self.alpha = self.alpha[kept]


def evaluate(
    oracle: ExampleOracle, n: int, w: FloatArray, learner: Learner
) -> tuple[float, list[tuple[float, FloatArray]]]:
    """Return the total risk at w and the plane of each example, and offer w to the learner."""
    planes = [learner.ask(oracle, w, i) for i in range(n)]
    risk = float(sum(value for value, _ in planes))
    learner.offer(w, risk)
    return risk, planes
