"""The best step along a direction in which the objective is convex."""

from __future__ import annotations

from typing import Protocol

from setwise._foundation._arguments import FloatArray


class Slopes(Protocol):
    """What a line search asks for: derivatives along the direction."""

    def slope(self, direction: FloatArray, step: float) -> float:
        """The derivative at ``step``."""


def least_along(objective: Slopes, direction: FloatArray, most: float) -> float:
    """The step in [0, most] at which the slope, which rises, is 0; at an end if it is nowhere.

    Secants and bisections in turn, until the slope is 1e-6 of the one at 0, 60 evaluations at most.
    """
    low, high = 0.0, most
    at_low, at_high = objective.slope(direction, low), objective.slope(direction, high)
    if at_low >= 0.0:
        return 0.0
    if at_high <= 0.0:
        return most
    small = 1e-6 * -at_low
    for evaluation in range(60):
        fraction = at_low / (at_low - at_high) if evaluation % 2 == 0 else 0.5
        step = low + fraction * (high - low)
        slope = objective.slope(direction, step)
        if abs(slope) <= small:
            return step
        if slope < 0.0:
            low, at_low = step, slope
        else:
            high, at_high = step, slope
    return low
