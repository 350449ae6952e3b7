"""The operator D as the linear program that defines it, over all sets or over a grid of counts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog

from reference._functions import size_of


def least_supermodular_sum(values: np.ndarray) -> float:
    """The least sum of g over all sets in the operator D (B_D paper, Definition 6)."""
    return _least_sum(np.ones(len(values)), *_requirements(values))


def _requirements(values: np.ndarray) -> tuple[list[np.ndarray], list[float]]:
    """One row for each, as printed: g increasing, g supermodular, l - g submodular."""
    size, n = len(values), size_of(values)
    rows, bounds = [], []

    def at_least(terms: dict[int, float], bound: float) -> None:
        row = np.zeros(size)
        for index, coefficient in terms.items():
            row[index] += coefficient
        rows.append(-row)
        bounds.append(-bound)

    for a in range(size):
        outside = [1 << i for i in range(n) if not a >> i & 1]
        for i in outside:
            at_least({a | i: 1.0, a: -1.0}, 0.0)
        for i, j in combinations(outside, 2):
            square = {a | i | j: 1.0, a | i: -1.0, a | j: -1.0, a: 1.0}
            at_least(square, 0.0)
            at_least(square, sum(c * values[index] for index, c in square.items()))
    return rows, bounds


def least_supermodular_sum_on_grid(grid: np.ndarray, weights: np.ndarray) -> float:
    """The same for a loss of two counts: unknowns g(n, q), weighted by how many sets have them."""
    index = np.arange(grid.size).reshape(grid.shape)
    rows, bounds = [], []

    def at_least(corners: tuple[tuple[int, int, float], ...], bound: float) -> None:
        row = np.zeros(grid.size)
        for n, q, coefficient in corners:
            row[index[n, q]] += coefficient
        rows.append(-row)
        bounds.append(-bound)

    height, width = grid.shape
    for n in range(height):
        for q in range(width):
            more = [(n + a, q + b) for a, b in ((1, 0), (0, 1)) if n + a < height and q + b < width]
            for place in more:
                at_least(((*place, 1.0), (n, q, -1.0)), 0.0)
            squares = []
            if n + 2 < height:
                squares.append(((n + 2, q, 1.0), (n + 1, q, -2.0), (n, q, 1.0)))
            if q + 2 < width:
                squares.append(((n, q + 2, 1.0), (n, q + 1, -2.0), (n, q, 1.0)))
            if n + 1 < height and q + 1 < width:
                mixed = ((n + 1, q, -1.0), (n, q + 1, -1.0))
                squares.append(((n + 1, q + 1, 1.0), *mixed, (n, q, 1.0)))
            for square in squares:
                at_least(square, 0.0)
                at_least(square, sum(c * grid[a, b] for a, b, c in square))
    return _least_sum(weights.ravel(), rows, bounds)


def _least_sum(cost: np.ndarray, rows: list[np.ndarray], bounds: list[float]) -> float:
    """The linear program over g with g(empty) = 0 and rows @ g <= bounds."""
    free = [(0, 0)] + [(None, None)] * (len(cost) - 1)
    if not rows:
        return 0.0
    answer = linprog(cost, A_ub=np.array(rows), b_ub=np.array(bounds), bounds=free)
    assert answer.status == 0, answer.message
    return float(answer.fun)


def range_of_optimal_entries(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest that each g(A) can be among the optima of the operator D."""
    rows, bounds = _requirements(values)
    best = _least_sum(np.ones(len(values)), rows, bounds)
    # Among the optima: the sum may not exceed the least one, but for the solver's tolerance.
    rows = [*rows, np.ones(len(values))]
    bounds = [*bounds, best + 1e-9]
    unit = np.eye(len(values))
    least = np.array([_least_sum(direction, rows, bounds) for direction in unit])
    most = np.array([-_least_sum(-direction, rows, bounds) for direction in unit])
    return least, most


def least_by_size(values: np.ndarray) -> np.ndarray:
    """A feasible g by recursion over the sizes of the sets: an upper bound on the operator D."""
    n = size_of(values)
    g = np.zeros(len(values))
    for a in sorted(range(len(values)), key=int.bit_count):
        inside = [1 << i for i in range(n) if a >> i & 1]
        for i, j in combinations(inside, 2):
            bend = values[a] - values[a ^ i] - values[a ^ j] + values[a ^ i ^ j]
            g[a] = max(g[a], g[a ^ i] + g[a ^ j] - g[a ^ i ^ j] + max(bend, 0.0))
    return g
