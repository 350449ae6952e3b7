r"""The contribution of counts to a bound: their parts of entropies, steps of costs, and dual.

The derivative of the bound with respect to :math:`\kappa_f` is the information of edges that the
trees lose, minus the total correlation of the count's variables. So :math:`\kappa_f` is multiplied
by the information of the count per variable, divided by the mean information of all parts of its
variables.
"""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.inference._marginals._counts._count_factors import Counted, CountLaws
from setwise.inference._marginals._trees._tree_shares import ROUNDS

# The initial share of a variable's entropy that its counts get if it has edges too. With a quarter
# of this share the search takes two to ten times as many passes, and the interval is wider.
FIRST = 0.3
# The largest share that all counts of a variable have together. The rest for the trees must be
# positive. For two counts of all variables, 0.9 widens the interval by up to 4 % and 0.999 by up to
# 24 %.
MOST = 0.98
# The least share of a count, because with a share of 0 the bound would not be smooth. A quarter or
# four times this share changes no interval of grids with counts.
LEAST = 1e-3
# The largest change of a logit by a Newton step. Without a limit, searches with strong functions of
# counts diverge. On two grids a search takes 5 and 11 passes; with a quarter of the limit it takes
# 11 and 19, and with four times the limit up to 18 on the second.
LONGEST = 4.0


class CountParts:
    """The parts of counts, and the rounds that move them."""

    def __init__(self, counted: Counted, n: int, has_edges: BoolArray) -> None:
        """``has_edges`` (N,) is a mask of the n variables that have edges to later ones."""
        self._counted = counted
        self.owner: IntArray = np.repeat(np.arange(len(counted.sizes)), counted.sizes)
        """(P,): the count of each member"""
        self._per_variable = np.bincount(counted.members, minlength=n)
        self.overlaps: IntArray = self._per_variable[counted.members]
        """The number of counts of each member's variable, (P,)."""
        share = np.where(has_edges, FIRST, MOST)[counted.members] / self.overlaps
        self.now: FloatArray = np.asarray(np.minimum.reduceat(share, counted.starts[:-1]))
        """(F,)"""
        self.before = self.now
        self.rounds = ROUNDS
        """The number of remaining rounds."""

    @property
    def rest(self) -> FloatArray:
        """The share of the entropy of each variable that the trees have, (N,)."""
        taken = np.bincount(
            self._counted.members, self.now[self.owner], minlength=len(self._per_variable)
        )
        return np.asarray(1.0 - taken)

    def move(self, totals: FloatArray, of_edges: FloatArray) -> float:
        """Raise the parts of counts with large totals (F,), compared with those of edges (N,).

        Both are in nats. Return the decrease that a linear model of the bound predicts.
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
        """Lower the parts of variables whose sum exceeds MOST after some were raised to LEAST."""
        counted = self._counted
        total = 1.0 - self.rest
        most = np.maximum.reduceat(total[counted.members], counted.starts[:-1])
        self.now = self.now / np.maximum(1.0, most / MOST)

    def take_back(self) -> None:
        """Restore the parts before the last move, and end the rounds."""
        self.now, self.rounds = self.before, 0


def newton_step(counted: Counted, parts: CountParts, laws: CountLaws, p: FloatArray) -> FloatArray:
    """Return the step of the costs (P,), for tree probabilities p (P,) that members count."""
    owner, kappa = parts.owner, parts.now
    q = laws.q
    gradient = p - q
    mean = counted.sums(q)
    along = np.maximum(laws.with_count - q * mean[owner], 0.0)  # the covariance with the count
    variance = np.maximum(counted.sums(along), 1e-300)
    own = np.maximum(q * (1.0 - q) - along**2 / variance[owner], 0.0)
    total = np.maximum(counted.sums(own), 1e-300)
    rest = parts.rest[counted.members]
    diagonal = parts.overlaps * p * (1.0 - p) / rest + own / kappa[owner] + 1e-12
    # (diagonal + along along' / (kappa variance) - own own' / (kappa total)) step = gradient
    first, second = along / diagonal, own / diagonal
    a11 = counted.sums(along * first) + kappa * variance
    a12 = counted.sums(along * second)
    a22 = counted.sums(own * second) - kappa * total
    b1, b2 = counted.sums(first * gradient), counted.sums(second * gradient)
    determinant = a11 * a22 - a12 * a12
    determinant = np.where(determinant < 0, determinant, -1e-300)
    x1 = (a22 * b1 - a12 * b2) / determinant
    x2 = (a11 * b2 - a12 * b1) / determinant
    step = gradient / diagonal - first * x1[owner] - second * x2[owner]
    most = LONGEST * np.minimum(rest, kappa[owner])
    return np.clip(np.nan_to_num(step), -most, most)


def total_correlations(
    counted: Counted, laws: CountLaws, kappa: FloatArray, heights: FloatArray, costs: FloatArray
) -> FloatArray:
    """Return the total correlation of each count's variables (F,), in nats."""
    expected = counted.sums(laws.counts * heights) + counted.sums(laws.q * costs)
    return counted.sums(_entropy(laws.q)) - (laws.logs + expected / kappa)


def dual_of_counts(
    counted: Counted,
    laws: CountLaws,
    kappa: FloatArray,
    heights: FloatArray,
    costs: FloatArray,
    mu: FloatArray,
) -> float:
    """Return the contribution to the dual of counts whose members have marginals mu (P,).

    If these differ from the marginals of the distributions, each member is changed independently,
    with the probability of the difference.
    """
    more, less = np.maximum(mu - laws.q, 0.0), np.maximum(laws.q - mu, 0.0)
    slopes = np.diff(heights)
    ends = np.cumsum(counted.sizes + 1)[:-1] - 1  # differences between two functions are not used
    slopes = np.delete(slopes, ends)
    starts = counted.starts[:-1]
    rise = np.maximum.reduceat(slopes, starts) * counted.sums(more)
    fall = -np.minimum.reduceat(slopes, starts) * counted.sums(less)
    energy = counted.sums(laws.counts * heights) + rise + fall
    energy += counted.sums(mu * costs)
    totals = total_correlations(counted, laws, kappa, heights, costs)
    entropy = kappa * (counted.sums(_entropy(mu)) - totals)
    return float((entropy - energy).sum())


def _entropy(q: FloatArray) -> FloatArray:
    """Return the entropies of binary choices with probabilities q, in nats."""
    total = np.zeros_like(q)
    for part in (q, 1.0 - q):
        logs = np.log(part, out=np.zeros_like(q), where=part > 0)
        total -= part * logs
    return total
