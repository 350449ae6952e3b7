"""Any loss of the two counts under independent elements, by the distributions of the counts."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.decisions._answers import Answers, rounding
from setwise.decisions._presence import Law
from setwise.losses import Loss

# The largest number of elements for which all counts are enumerated, with O(n^3) values of the
# loss: 17 million. Not tuned.
MOST_FOR_COUNTS = 256


def by_counts(loss: Loss, law: Law) -> Answers | None:
    r"""Return the best set of the k most probable elements, or None if another may be better.

    It also returns None if the loss is not a function of the two counts.

    Such a set is optimal if :math:`l(n + 1, q + 1; m, r) \ge l(n, q; m, r)`: exchanging a predicted
    element j for an element i that is not predicted, with p_i > p_j, changes the expectation by
    (p_j - p_i) times the expectation of that difference. With H, the number of positives among the
    first k, and G, that among the others, which are independent, the loss is l(G, k - H; H + G, n -
    H - G). The cost is O(n^3) after the two distributions. For an empty truth all sets of k
    elements have the same loss, so its probability does not matter.
    """
    p, n = law.chances, len(law)
    order = np.argsort(-p, kind="stable")
    hits = _distributions(p[order])  # hits[k, h]: the probability of h positives among the first k
    # Others[k, g]: the probability of g positives among the last n - k.
    others = _distributions(p[order][::-1])[::-1]
    risks, largest = np.zeros(n + 1), 0.0
    for m in range(n + 1):
        grid = loss._grid_of_counts(m, n - m)
        if grid is None:
            return None
        largest = max(largest, float(np.abs(grid).max()))
        if np.any(grid[1:, 1:] < grid[:-1, :-1] - 8 * np.finfo(float).eps * largest):
            return None
        k, h = np.nonzero(np.tri(n + 1, m + 1, dtype=bool))
        possible = m - h <= n - k
        k, h = k[possible], h[possible]
        weights = hits[k, h] * others[k, m - h] / law.scale
        if m == 0 and law.empty is not None:
            weights = np.full(len(k), law.empty)
        risks += np.bincount(k, weights * grid[m - h, k - h], minlength=n + 1)
    best = int(np.argmin(risks))
    mask = np.zeros(n, np.bool_)
    mask[order[:best]] = True
    return Answers.best(mask, risks[[best]], np.array([rounding(2 * n, largest)]))


def _distributions(p: FloatArray) -> FloatArray:
    """Return a matrix whose row k is the distribution of the number of the first k events."""
    n = len(p)
    rows = np.zeros((n + 1, n + 1))
    rows[0, 0] = 1.0
    for k in range(n):
        rows[k + 1] = rows[k] * (1 - p[k])
        rows[k + 1, 1:] += rows[k, :-1] * p[k]
    return rows
