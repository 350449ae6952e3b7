r"""The exact derivative of the marginals of the least upper bound, for two labels.

The logits :math:`x = \log p_0 - \log p_1` of the minimiser are constant on blocks B, which edges
and regions connect. On each block they are the mean over its pixels of the cost of label 1,
relative to label 0:

.. math:: x_B = \frac{1}{|B|} \Bigl[ \sum_{i \in B} (\theta_{i0} - \theta_{i1})
   + \sum_{e: B \to \text{higher}} w_e - \sum_{e: B \to \text{lower}} w_e
   + \sum_S w_S \bigl( H_S(k + b) - H_S(k) \bigr) \Bigr],

where k pixels of S are in lower blocks and b in B, and H is the price of a region as a function of
the number of its pixels with label 1. So the derivative in a logit is a mean over its block, and
the derivative in a weight is the difference of two such means. The cost is O(N + E). The derivative
is exact if no two neighbouring blocks have equal logits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from setwise._foundation._arguments import FloatArray, IntArray

# Logits count as equal if their difference, relative to the largest logit, is at most this. It is
# far above rounding errors in double precision, and far below the differences of logits in single
# precision.
LEVEL = 1e-10


class BinarySlopes(NamedTuple):
    """The derivatives of a function of the marginals of one image."""

    logits: FloatArray
    """(N, 2)"""
    edges: FloatArray
    """(E,)"""
    layers: list[FloatArray]
    """One array (R,) per layer"""


def binary_slopes(
    p: FloatArray,
    slopes: FloatArray,
    edges: IntArray,
    layers: list[tuple[IntArray, float, int]],
) -> BinarySlopes:
    """Return derivatives in logits and weights, given those (N, 2) in the marginals p (N, 2).

    ``layers`` holds the regions (N,), alpha and the number of regions R of each layer.
    """
    tiny = np.finfo(np.float64).tiny
    x = np.log(np.maximum(p[:, 0], tiny)) - np.log(np.maximum(p[:, 1], tiny))
    along = (slopes[:, 0] - slopes[:, 1]) * p[:, 0] * p[:, 1]  # the derivative with respect to x
    orders = [_by_region_and_height(regions, x) for regions, _, _ in layers]
    chains = [_chain(order, layer[0]) for order, layer in zip(orders, layers, strict=True)]
    block = _blocks(x, edges, chains)
    means = (np.bincount(block, along) / np.bincount(block))[block]
    rising = np.sign(x[edges[:, 1]] - x[edges[:, 0]])
    apart = block[edges[:, 0]] != block[edges[:, 1]]
    with np.errstate(invalid="ignore"):  # slopes that overflowed become NaN
        of_edges = np.where(apart, rising * (means[edges[:, 0]] - means[edges[:, 1]]), 0.0)
    of_layers = [
        _region_slopes(means, order, regions, alpha, n_regions)
        for order, (regions, alpha, n_regions) in zip(orders, layers, strict=True)
    ]
    return BinarySlopes(np.stack([means, -means], axis=1), of_edges, of_layers)


def _by_region_and_height(regions: IntArray, x: FloatArray) -> IntArray:
    """Return the pixels of the regions, region after region, by ascending logit."""
    inside = np.flatnonzero(regions >= 0)
    return inside[np.lexsort((x[inside], regions[inside]))]


def _chain(order: IntArray, regions: IntArray) -> IntArray:
    """Return pairs (M, 2) of pixels that follow each other in one region."""
    pairs = np.stack([order[:-1], order[1:]], axis=1)
    return np.asarray(pairs[regions[pairs[:, 0]] == regions[pairs[:, 1]]])


def _blocks(x: FloatArray, edges: IntArray, chains: list[IntArray]) -> IntArray:
    """Return the block (N,) of each pixel. Ends of an edge with equal logits share a block.

    The pixels of a region with equal logits share a block too.
    """
    limit = LEVEL * max(1.0, float(np.abs(x).max(initial=0.0)))
    ends = np.concatenate([edges, *chains])
    joined = ends[np.abs(x[ends[:, 0]] - x[ends[:, 1]]) <= limit]
    graph = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(len(x), len(x)))
    _, block = connected_components(graph, directed=False)
    return np.asarray(block)


def _region_slopes(
    means: FloatArray, order: IntArray, regions: IntArray, alpha: float, n_regions: int
) -> FloatArray:
    """Return a sum (R,) over the pixels of each region.

    A summand is the mean of the pixel's block times the gain of the pixel.
    """
    own = regions[order]
    sizes = np.bincount(own, minlength=n_regions)
    starts = np.cumsum(sizes) - sizes
    size, rank = sizes[own].astype(np.float64), np.arange(len(own)) - starts[own]
    # The price of n labels 1 is (s - n)^a + n^a - s^a. Only the sum of gains over a block matters.
    left = size - rank
    gains = (left - 1) ** alpha - left**alpha + (rank + 1.0) ** alpha - rank**alpha
    return np.bincount(own, means[order] * gains, minlength=n_regions).astype(np.float64)
