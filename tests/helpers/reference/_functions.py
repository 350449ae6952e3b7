"""Set functions: gains, properties, extremes, the Lovász extension, the base polytope.

A set is an index in bit order, the sum of 2^i over its elements; a set function is the array of its
2^n values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, permutations

import numpy as np

TOLERANCE = 1e-9


def all_masks(n: int) -> np.ndarray:
    """Every subset as a row, (2^n, n), in bit order."""
    return np.array([[index >> i & 1 == 1 for i in range(n)] for index in range(1 << n)], bool)


def all_values(function: Callable[[np.ndarray], float]) -> np.ndarray:
    """The 2^n values of a set function, one call each."""
    return np.array([function(mask) for mask in all_masks(function.n)])


def index_of(elements: Sequence[int]) -> int:
    return sum(1 << int(i) for i in elements)


def size_of(values: np.ndarray) -> int:
    return len(values).bit_length() - 1


def gains(values: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """The definition: F(order[:k+1]) - F(order[:k])."""
    chain = [values[index_of(order[:k])] for k in range(len(order) + 1)]
    return np.array([after - before for before, after in pairwise(chain)])


def _pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sets = np.arange(len(values))
    return sets[:, None], sets[None, :]


def _slack(values: np.ndarray) -> float:
    return 1e-11 * np.abs(values).max()


def is_submodular(values: np.ndarray) -> bool:
    """F(A) + F(B) >= F(A | B) + F(A & B), for all pairs of sets."""
    a, b = _pairs(values)
    return bool(np.all(values[a] + values[b] >= values[a | b] + values[a & b] - _slack(values)))


def is_supermodular(values: np.ndarray) -> bool:
    return is_submodular(-values)


def is_increasing(values: np.ndarray) -> bool:
    """F(A) <= F(B) whenever A is inside B."""
    a, b = _pairs(values)
    return bool(np.all((values[a] <= values[b] + _slack(values)) | (a & b != a)))


def minimum(values: np.ndarray) -> float:
    return float(values.min())


def maximum(values: np.ndarray, k: int | None = None) -> float:
    """The largest value, or the largest over the sets of at most k elements."""
    sizes = np.bitwise_count(np.arange(len(values)))
    return float(values[sizes <= (size_of(values) if k is None else k)].max())


def lovasz_by_integral(values: np.ndarray, w: np.ndarray) -> float:
    """The integral of F({w >= t}) - F(empty) over the levels t, and F(V) below them all."""
    if len(w) == 0:
        return 0.0
    normalized = values - values[0]
    levels = np.unique(w)[::-1]
    total = levels[-1] * normalized[-1]
    for high, low in pairwise(levels):
        total += (high - low) * normalized[index_of(np.flatnonzero(w >= high))]
    return float(total)


def lovasz_by_permutations(values: np.ndarray, w: np.ndarray) -> float:
    """The largest <w, vertex> over all vertices of the base polytope: for submodular F only."""
    return max(
        float(np.dot(w[list(order)], gains(values, order))) for order in permutations(range(len(w)))
    )


def in_base_polytope(values: np.ndarray, x: np.ndarray, tolerance: float = TOLERANCE) -> bool:
    """x(A) <= F(A) - F(empty) for all A, with equality for the whole set."""
    normalized = values - values[0]
    sums = all_masks(len(x)) @ x
    slack = tolerance * max(1.0, np.abs(values).max())
    return bool(np.all(sums <= normalized + slack) and abs(sums[-1] - normalized[-1]) <= slack)


def base_vertices(values: np.ndarray) -> np.ndarray:
    """The gains along every permutation, each aligned with the elements: (n!, n)."""
    orders = np.array(list(permutations(range(size_of(values)))), int)
    chains = np.cumsum(np.left_shift(1, orders), axis=1)
    chains = np.concatenate([np.zeros((len(orders), 1), int), chains], axis=1)
    vertices = np.empty(orders.shape)
    np.put_along_axis(vertices, orders, np.diff(values[chains], axis=1), axis=1)
    return vertices
