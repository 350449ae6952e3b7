"""Enumeration of all sets and all truths, for few elements."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import BATCH, BoolArray, FloatArray
from setwise.decisions._answers import Answers, rounding
from setwise.decisions._presence import Law
from setwise.losses import Loss

# The largest number of elements if the loss depends on the mistakes only. The cost for all
# decisions is O(n 2^n), which is 5 million operations for 18 elements. Not tuned.
MOST_FOR_MISTAKES = 18


def all_masks(n: int) -> BoolArray:
    """Return every subset of n elements: row s has element i where bit i of s is set."""
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def ignores_truth(loss: Loss, n: int) -> bool:
    """Return whether all truths of n elements have one set function."""
    return n == 0 or loss._key(np.zeros(n, np.bool_)) == loss._key(np.arange(n) % 2 == 0)


def is_affordable(loss: Loss, n: int) -> bool:
    """Return whether all sets can be enumerated.

    If the loss depends on the truth, there are 4^n pairs of decision and truth: up to 10 elements.
    """
    return n <= MOST_FOR_MISTAKES if ignores_truth(loss, n) else 4**n <= BATCH


def by_enumeration(loss: Loss, law: Law) -> Answers:
    """Find the set of least expected loss among all 2^n."""
    risks, largest = expected_losses(loss, law)
    best = int(np.argmin(risks))
    error = np.array([rounding(len(law), largest)])
    return Answers.best(all_masks(len(law))[best], risks[[best]], error)


def expected_losses(loss: Loss, law: Law) -> tuple[FloatArray, float]:
    r"""Return the expected loss of every set, indexed by its mask, and the largest loss.

    If l does not depend on the truth, :math:`R(z) = \sum_y P(y) \, l(y \oplus z)` is a convolution
    with a product: element i changes v to :math:`v + c p_i D_i v`, where :math:`D_i v(s) = v(s
    \oplus i) - v(s)`. With a presence (``_presence.py``), R is the sum of the contribution of an
    empty truth and 1 / c times the change by independent elements. Since c cancels, :math:`R = l +
    \sum_i p_i D_i v_i`, with :math:`v_i` the table before the step of element i.
    """
    p, n = law.p, len(law)
    masks = all_masks(n)
    if ignores_truth(loss, n):
        values = np.array(loss.function_of(np.zeros(n, np.bool_))._values(masks), np.float64)
        largest = float(np.abs(values).max())
        risks = values.copy()
        for i in range(n):
            pairs = values.reshape(-1, 2, 1 << i)
            change = p[i] * (pairs[:, ::-1] - pairs).reshape(-1)
            risks += change
            values = values + law.scale * change
        return risks, largest
    chances = np.where(masks, law.chances, 1 - law.chances).prod(axis=1) / law.scale
    if law.empty is not None:
        chances[0] = law.empty
    risks, largest = np.zeros(1 << n), 0.0
    numbers = np.arange(1 << n)
    for truth in numbers:
        values = loss.function_of(masks[truth])._values(masks)
        largest = max(largest, float(np.abs(values).max()))
        risks += chances[truth] * values[numbers ^ truth]
    return risks, largest
