"""Jaccard and F-beta under independent elements, by integrals."""

from __future__ import annotations

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS
from setwise.decisions._answers import Answers
from setwise.decisions._probabilities import SetProbabilities
from setwise.functions import Ratio

# The relative error of 1 / x as a sum of exponentials: ``relative_error`` of exponential_sum.hpp,
# where it is derived.
_QUADRATURE = 1e-12


def by_integrals(
    ratio: Ratio, p: SetProbabilities, weights: FloatArray | None, n_threads: int
) -> Answers:
    r"""Return the best set, which is the best of the k most probable elements, k = 0, ..., n.

    Exchanging a predicted element for a more probable one that is not predicted never increases the
    expectation of a loss that increases with both counts. The expected score of the first k
    elements follows from :math:`1/x = \int_0^\infty e^{-xu} du`, since the expectation of a product
    of independent factors is a product; see ``cpp/decisions/expected_ratio.hpp``. The cost is O(n
    Q) after sorting, with Q about 100 nodes.

    If ``presence`` is given, the expected score of a nonempty set is 1 / c times that under
    independent elements of c p (``_presence.py``), and the empty set has score 1 if the truth is
    empty.

    With different weights the best set need not be such a prefix. Then there is a bound by moments
    over all sets, but no claim of optimality.
    """
    mask = np.empty(len(p.flat), np.uint8)
    scores, most = np.empty(p.n), np.empty(p.n)
    b = 1.0 if ratio.beta is None else ratio.beta**2
    kept, weighted, offsets, none = p.flat, np.empty(0), p.offsets, np.empty(0)
    scale = 1.0 if p.scale is None else p.scale
    if p.scale is not None and p.presence is not None:
        kept = np.minimum(p.flat * np.repeat(p.scale, np.diff(offsets)), 1.0)
        none = p.scale * (1 - p.presence)
    heavy, sizes = None, p.sizes
    if weights is not None:
        heavy = weights > 0  # a weight of 0 removes an element
        kept, weighted = p.flat[heavy], weights[heavy]
        offsets = np.concatenate([[0], np.cumsum(heavy)])[p.offsets]
        sizes = np.diff(offsets)
        mask = np.empty(len(kept), np.uint8)
    _core.decide_ratio(
        kept, weighted, offsets, none, ratio.beta is None, b, n_threads, mask, scores, most
    )
    chosen = mask.view(np.bool_)
    if heavy is not None:
        chosen = np.zeros(len(p.flat), np.bool_)
        chosen[heavy] = mask.view(np.bool_)
    expected = np.maximum(1.0 - scores / scale, 0.0)
    # A factor of the product is rounded four times, and so is one of the equation for c.
    rounding = (4 if p.scale is None else 8) * EPS
    error = np.asarray(_QUADRATURE + rounding * (sizes + 8), np.float64)
    if weights is None or _same_weights(weighted, offsets):
        return Answers.best(chosen, expected, error)
    bound = np.minimum(np.maximum(1.0 - most, 0.0), expected)
    return Answers(chosen, expected, bound, error, expected - bound <= error)


def _same_weights(weights: FloatArray, offsets: np.ndarray) -> bool:
    """Return whether weights are equal within each set; a ratio does not depend on their unit."""
    sizes = np.diff(offsets)
    firsts = weights[offsets[:-1][sizes > 0]]
    return bool(np.all(weights == np.repeat(firsts, sizes[sizes > 0])))
