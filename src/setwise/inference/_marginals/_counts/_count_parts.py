r"""Which parts of its variables' entropies each count has, and how they come to have better ones.

The derivative of the bound with respect to :math:`\kappa_f` is that of the edges' information which
the trees lose minus the total correlation of the count's variables: :math:`\kappa_f` grows by the
ratio of what the count says, a variable, to what all parts of its variables say.
"""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.inference._marginals._counts._count_factors import Counted

FIRST = 0.3  # of a variable among edges, shared by its counts
MOST = 0.98  # of a variable, in all
LEAST = 1e-3
ROUNDS = 8


class CountParts:
    """The parts of counts, and the rounds that move them."""

    def __init__(self, counted: Counted, n: int, has_edges: BoolArray) -> None:
        """``has_edges`` (N,): which of n variables have edges to later ones."""
        self._counted = counted
        self.owner: IntArray = np.repeat(np.arange(len(counted.sizes)), counted.sizes)
        """(P,): the count of each member"""
        self._per_variable = np.bincount(counted.members, minlength=n)
        self.overlaps: IntArray = self._per_variable[counted.members]
        """(P,): of how many counts the member's variable is"""
        share = np.where(has_edges, FIRST, MOST)[counted.members] / self.overlaps
        self.now: FloatArray = np.asarray(np.minimum.reduceat(share, counted.starts[:-1]))
        """(F,)"""
        self.before = self.now
        self.rounds = ROUNDS
        """How many are to come."""

    @property
    def rest(self) -> FloatArray:
        """(N,): what is the trees'."""
        taken = np.bincount(
            self._counted.members, self.now[self.owner], minlength=len(self._per_variable)
        )
        return np.asarray(1.0 - taken)

    def move(self, totals: FloatArray, of_edges: FloatArray) -> float:
        """More to counts of large totals (F,) beside what edges (N,) say; the fall, were it linear.

        Both in nats.
        """
        self.rounds -= 1
        self.before = self.now
        counted, sizes = self._counted, self._counted.sizes
        each = np.maximum(totals, 0.0) / sizes
        weighed = np.bincount(
            counted.members, (self.now * each)[self.owner], minlength=len(of_edges)
        )
        at_variable = weighed + self.rest * of_edges
        mean = counted.sums(at_variable[counted.members]) / sizes
        ratio = np.divide(each, mean, out=np.ones_like(each), where=mean > 1e-12)
        wanted = self.now * np.clip(ratio, 0.25, 4.0)
        total = np.bincount(counted.members, wanted[self.owner], minlength=len(of_edges))
        most = np.maximum.reduceat(total[counted.members], counted.starts[:-1])
        self.now = np.clip(wanted / np.maximum(1.0, most / MOST), LEAST, MOST)
        self._cap()
        change = self.now - self.before
        lost = counted.sums(of_edges[counted.members])
        return float(np.abs(change * (totals - lost)).sum())

    def _cap(self) -> None:
        """What LEAST raised beyond the most."""
        counted = self._counted
        total = 1.0 - self.rest
        most = np.maximum.reduceat(total[counted.members], counted.starts[:-1])
        self.now = self.now / np.maximum(1.0, most / MOST)

    def take_back(self) -> None:
        """The parts before the last move, for good."""
        self.now, self.rounds = self.before, 0
