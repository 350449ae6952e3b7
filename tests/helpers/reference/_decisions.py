"""Expected losses by their definition: a sum over all truths."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

Loss = Callable[[frozenset[int], frozenset[int], int], float]


def subsets(n: int) -> list[np.ndarray]:
    """All masks of n elements."""
    return [np.array(mask, bool) for mask in product([False, True], repeat=n)]


def chance(p: np.ndarray, truth: np.ndarray) -> float:
    """The probability of a truth of independent elements."""
    return float(np.where(truth, p, 1 - p).prod())


def law_of_presence(p: np.ndarray, presence: float) -> Callable[[np.ndarray], float]:
    """P(y): empty with probability 1 - presence, else independent but for that, c by bisection.

    The probabilities must agree with the presence: max p <= presence <= sum p.
    """

    def some(c: float) -> float:
        return sum(x * np.prod(1 - c * p[:i]) for i, x in enumerate(p))

    low, high = 0.0, 1 / presence
    for _ in range(200):
        c = (low + high) / 2
        low, high = (c, high) if some(c) > presence else (low, c)

    def law(truth: np.ndarray) -> float:
        if not truth.any():
            return 1 - presence
        first = int(np.argmax(truth))  # 1 / c goes into the first factor, for c may be 0
        others = np.where(truth, c * p, 1 - c * p)
        others[first] = p[first]
        return float(np.prod(others))

    return law


def expected_loss(
    definition: Loss,
    p: np.ndarray,
    decision: np.ndarray,
    law: Callable[[np.ndarray], float] | None = None,
) -> float:
    """sum_y P(y) l_y({i : y_i != z_i}), the loss by its definition on sets."""
    n, total = len(p), 0.0
    for truth in subsets(n):
        mistakes = frozenset(np.flatnonzero(truth != decision).tolist())
        positives = frozenset(np.flatnonzero(truth).tolist())
        weight = chance(p, truth) if law is None else law(truth)
        total += weight * definition(mistakes, positives, n)
    return total


def weighted_ratio(weights: np.ndarray, b: float | None) -> Loss:
    """1 - w(y and z) / w(y or z), or 1 minus the F-beta score of weights, b = beta^2."""

    def loss(mistakes: frozenset[int], positives: frozenset[int], p: int) -> float:
        def weigh(elements: frozenset[int]) -> float:
            return float(sum(weights[i] for i in elements))

        predicted = positives ^ mistakes
        both, union = weigh(positives & predicted), weigh(positives | predicted)
        if union == 0:
            return 0.0
        if b is None:
            return 1 - both / union
        return 1 - (1 + b) * both / (weigh(predicted) + b * weigh(positives))

    return loss
