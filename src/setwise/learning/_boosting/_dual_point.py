"""A point of the dual problem, and the bound that it proves."""

from __future__ import annotations

from typing import NamedTuple

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS


class DualPoint(NamedTuple):
    r"""Multipliers of planes, as the weighted sums of the planes' slopes and offsets.

    For multipliers that satisfy the constraints on the slacks, and for all weak learners h,

    .. math:: 1^\top w + C R(f) \ge \text{height}
        + \sum_j w_j (1 - \langle \text{weights}, h_j \rangle) ,

    so that height / max(1, edge) is a lower bound if no learner has a larger edge, because the
    multipliers may be scaled. ``size`` is the magnitude of the terms of the edge. These terms may
    be as large as C and cancel.
    """

    weights: FloatArray
    height: float
    edge: float = 0.0
    size: float = 0.0

    @property
    def bound(self) -> float:
        """A lower bound of the objective over all weak learners and weights."""
        return self.height / max(1.0, self.edge)

    @property
    def rounding(self) -> float:
        """The error of the bound caused by the rounding of the edge.

        An edge is rounded in the sums over multipliers of planes, their slopes, and the responses.
        """
        return FEW_ROUNDINGS * EPS * self.size * self.bound if self.edge > 1.0 else 0.0
