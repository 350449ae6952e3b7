"""The part of counts in the dual of their bound: energies and total correlations."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.inference._marginals._counts._count_factors import Counted, CountLaws


def total_correlations(
    counted: Counted, laws: CountLaws, kappa: FloatArray, heights: FloatArray, costs: FloatArray
) -> FloatArray:
    """(F,): of each count's variables, in nats."""
    paid = counted.sums(laws.counts * heights) + counted.sums(laws.q * costs)
    return counted.sums(_entropy(laws.q)) - (laws.logs + paid / kappa)


def dual_of_counts(
    counted: Counted,
    laws: CountLaws,
    kappa: FloatArray,
    heights: FloatArray,
    costs: FloatArray,
    mu: FloatArray,
) -> float:
    """What counts whose members have marginals mu (P,) add to the dual.

    Where they differ from those of the laws each member is changed by itself, as often as they do.
    """
    more, less = np.maximum(mu - laws.q, 0.0), np.maximum(laws.q - mu, 0.0)
    slopes = np.diff(heights)
    ends = np.cumsum(counted.sizes + 1)[:-1] - 1  # between factors
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
    """Of choices of probabilities q, in nats."""
    total = np.zeros_like(q)
    for part in (q, 1.0 - q):
        logs = np.log(part, out=np.zeros_like(q), where=part > 0)
        total -= part * logs
    return total
