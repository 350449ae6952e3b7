"""A point of the dual, and the bound that it proves."""

from __future__ import annotations

from typing import NamedTuple

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS

# Sums behind an edge: the planes' multipliers, their slopes, and the responses.
_SUMS = 4


class DualPoint(NamedTuple):
    r"""Multipliers of planes, summed up: what they make of the scores, and of the offsets.

    For multipliers that keep to the constraints on the slacks and for all weak learners h

    .. math:: 1^\top w + C R(f) \ge \text{height}
        + \sum_j w_j (1 - \langle \text{weights}, h_j \rangle) ,

    so that height / max(1, edge) is a lower bound if no learner has more than that edge: the
    multipliers may be scaled. ``size`` is the magnitude of the terms that the edge was summed from:
    where the risk pulls both ways they are as large as C, and cancel.
    """

    weights: FloatArray
    height: float
    edge: float = 0.0
    size: float = 0.0

    @property
    def bound(self) -> float:
        """What no weak learners and weights can fall below."""
        return self.height / max(1.0, self.edge)

    @property
    def rounding(self) -> float:
        """By how much the bound may be too low for the rounding of the edge alone."""
        return _SUMS * EPS * self.size * self.bound if self.edge > 1.0 else 0.0
