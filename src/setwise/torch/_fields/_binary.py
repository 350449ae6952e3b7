r"""Two labels: the exact derivative of the marginals of the least upper bound.

The logits :math:`x = \log p_0 - \log p_1` of the minimiser are constant on blocks B, connected by
edges and regions, and on each the mean of what its pixels pay for label 1:

.. math:: x_B = \frac{1}{|B|} \Bigl[ \sum_{i \in B} (\theta_{i0} - \theta_{i1})
   + \sum_{e: B \to \text{higher}} w_e - \sum_{e: B \to \text{lower}} w_e
   + \sum_S w_S \bigl( H_S(k + b) - H_S(k) \bigr) \Bigr],

k pixels of S in lower blocks and b in B, H the price of a region by how many take label 1. So the
derivative in a logit is a mean over its block, in a weight the difference of two of them: O(N + E),
and exact where no two neighbouring blocks are level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from setwise._foundation._arguments import FloatArray, IntArray

LEVEL = 1e-10  # logits that differ by less, relative to the largest, are equal


class Slopes(NamedTuple):
    """Derivatives of a function of the marginals of one image."""

    logits: FloatArray
    """(N, 2)"""
    edges: FloatArray
    """(E,)"""
    layers: list[FloatArray]
    """(R,) of each layer"""


def binary_slopes(
    p: FloatArray,
    slopes: FloatArray,
    edges: IntArray,
    layers: list[tuple[IntArray, float, int]],
) -> Slopes:
    """From the derivative (N, 2) in the marginals p (N, 2) to those in logits and weights.

    ``layers`` has regions (N,), alpha, and the number of regions R of each.
    """
    tiny = np.finfo(np.float64).tiny
    x = np.log(np.maximum(p[:, 0], tiny)) - np.log(np.maximum(p[:, 1], tiny))
    along = (slopes[:, 0] - slopes[:, 1]) * p[:, 0] * p[:, 1]  # in x
    orders = [_by_region_and_height(regions, x) for regions, _, _ in layers]
    chains = [_chain(order, layer[0]) for order, layer in zip(orders, layers, strict=True)]
    block = _blocks(x, edges, chains)
    means = (np.bincount(block, along) / np.bincount(block))[block]
    rising = np.sign(x[edges[:, 1]] - x[edges[:, 0]])
    apart = block[edges[:, 0]] != block[edges[:, 1]]
    with np.errstate(invalid="ignore"):  # slopes that overflowed go on as NaN
        of_edges = np.where(apart, rising * (means[edges[:, 0]] - means[edges[:, 1]]), 0.0)
    of_layers = [
        _region_slopes(means, order, regions, alpha, n_regions)
        for order, (regions, alpha, n_regions) in zip(orders, layers, strict=True)
    ]
    return Slopes(np.stack([means, -means], axis=1), of_edges, of_layers)


def _by_region_and_height(regions: IntArray, x: FloatArray) -> IntArray:
    """The pixels of regions, region after region, lowest first."""
    inside = np.flatnonzero(regions >= 0)
    return inside[np.lexsort((x[inside], regions[inside]))]


def _chain(order: IntArray, regions: IntArray) -> IntArray:
    """(M, 2): pixels that follow each other in one region."""
    pairs = np.stack([order[:-1], order[1:]], axis=1)
    return np.asarray(pairs[regions[pairs[:, 0]] == regions[pairs[:, 1]]])


def _blocks(x: FloatArray, edges: IntArray, chains: list[IntArray]) -> IntArray:
    """(N,): the number of each pixel's block: level ends of edges, level pixels of a region."""
    limit = LEVEL * max(1.0, float(np.abs(x).max(initial=0.0)))
    ends = np.concatenate([edges, *chains])
    joined = ends[np.abs(x[ends[:, 0]] - x[ends[:, 1]]) <= limit]
    graph = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(len(x), len(x)))
    _, block = connected_components(graph, directed=False)
    return np.asarray(block)


def _region_slopes(
    means: FloatArray, order: IntArray, regions: IntArray, alpha: float, n_regions: int
) -> FloatArray:
    """(R,): the sum over a region's pixels of the mean of their block times their gain."""
    own = regions[order]
    sizes = np.bincount(own, minlength=n_regions)
    starts = np.cumsum(sizes) - sizes
    size, rank = sizes[own].astype(np.float64), np.arange(len(own)) - starts[own]
    # of n with label 1: (s - n)^a + n^a - s^a; within a block only the sum of gains counts
    left = size - rank
    gains = (left - 1) ** alpha - left**alpha + (rank + 1.0) ** alpha - rank**alpha
    return np.bincount(own, means[order] * gains, minlength=n_regions).astype(np.float64)
