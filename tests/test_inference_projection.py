"""Projections onto base polytopes: the variational inequality, and plain versions of each."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize

from setwise import _core


def chain_vertices(weights: np.ndarray) -> np.ndarray:
    """All greedy vertices of a chain of cuts."""

    def value(chosen: np.ndarray) -> float:
        return float((weights * (chosen[1:] != chosen[:-1])).sum())

    return greedy_vertices(len(weights) + 1, value)


def greedy_vertices(n: int, value) -> np.ndarray:
    vertices = []
    for order in permutations(range(n)):
        chosen, s = np.zeros(n, bool), np.zeros(n)
        for i in order:
            before = value(chosen)
            chosen[i] = True
            s[i] = value(chosen) - before
        vertices.append(s)
    return np.array(vertices)


def project(kind: str, z: np.ndarray, parameters: np.ndarray | float) -> np.ndarray:
    s = np.full(len(z), np.nan)
    getattr(_core, f"project_{kind}")(z, parameters, s)
    return s


def random_block(kind: str, n: int, rng: np.random.Generator):
    """Parameters of a block, and its value on sets."""
    if kind == "chain":
        weights = rng.choice([0.0, 0.5, 1.0, rng.random()], n - 1)
        return weights, lambda c: float((weights * (c[1:] != c[:-1])).sum())
    if kind == "count":
        gains = np.sort(rng.choice([0.0, 1.0, *rng.normal(size=4)], n))[::-1].copy()
        table = np.concatenate([[0.0], np.cumsum(gains)])
        return gains, lambda c: float(table[int(c.sum())])
    cost = float(rng.choice([0.0, 0.5, 3.0]))
    return cost, lambda c: cost * bool(c.any())


@pytest.mark.parametrize("kind", ["chain", "count", "simplex"])
@pytest.mark.parametrize("seed", range(60))
def test_variational_inequality(kind, seed):
    # s is the projection of z iff <z - s, v - s> <= 0 for every vertex v, and s is in the polytope
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    parameters, value = random_block(kind, n, rng)
    z = rng.choice([0.0, 1.0, *(rng.normal(size=5) * 3)], n)
    s = project(kind, z, parameters)
    vertices = greedy_vertices(n, value)
    assert ((vertices - s) @ (z - s)).max() <= 1e-8
    for bits in range(1 << n):
        chosen = (bits >> np.arange(n) & 1).astype(bool)
        assert s[chosen].sum() <= value(chosen) + 1e-12
    assert s.sum() == pytest.approx(value(np.ones(n, bool)), abs=1e-12)


@pytest.mark.parametrize("kind", ["chain", "count", "simplex"])
@pytest.mark.parametrize("seed", range(8))
def test_equals_a_quadratic_programme_over_the_vertices(kind, seed):
    rng = np.random.default_rng(seed)
    n = 4
    parameters, value = random_block(kind, n, rng)
    z = rng.normal(size=n) * 2
    vertices = np.unique(greedy_vertices(n, value).round(12), axis=0)

    def objective(share: np.ndarray) -> tuple[float, np.ndarray]:
        rest = share @ vertices - z
        return float(rest @ rest) / 2, vertices @ rest

    answer = minimize(
        objective,
        np.full(len(vertices), 1 / len(vertices)),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * len(vertices),
        constraints={"type": "eq", "fun": lambda share: share.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(project(kind, z, parameters), answer.x @ vertices, atol=1e-5)


def plain_isotonic(y: np.ndarray) -> np.ndarray:
    """The closest non-increasing sequence, by its minimax formula."""
    n = len(y)
    means = np.array(
        [[y[i : j + 1].mean() if j >= i else np.nan for j in range(n)] for i in range(n)]
    )
    return np.array([min(means[i, k:].max() for i in range(k + 1)) for k in range(n)])


@pytest.mark.parametrize("seed", range(30))
def test_count_equals_plain_isotonic_regression(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    z = rng.normal(size=n) * 2
    gains = np.sort(rng.normal(size=n))[::-1].copy()
    order = np.argsort(-z)
    expected = z.copy()
    expected[order] -= plain_isotonic(z[order] - gains)
    np.testing.assert_allclose(project("count", z, gains), expected, atol=1e-12)


def plain_chain(z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coordinate descent in the edges' variables y, s = differences of y, to the end."""
    y = np.zeros(len(z) + 1)
    for _ in range(20_000):
        before = y.copy()
        for k in range(len(weights)):
            # the two entries that y_k moves are s_k = y_k - y_(k-1) and s_(k+1) = y_(k+1) - y_k
            best = (z[k] + y[k] - z[k + 1] + y[k + 2]) / 2
            y[k + 1] = np.clip(best, -weights[k], weights[k])
        if np.abs(y - before).max() < 1e-13:
            break
    return np.diff(y)


@pytest.mark.parametrize("seed", range(30))
def test_chain_equals_plain_coordinate_descent(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    z = rng.normal(size=n) * rng.choice([0.1, 1.0, 10.0])
    weights = rng.random(n - 1) * rng.choice([0.0, 0.3, 2.0], n - 1)
    np.testing.assert_allclose(project("chain", z, weights), plain_chain(z, weights), atol=1e-9)


def test_long_chains_lose_no_digits():
    # a projection of a projection is itself, and its edges' variables stay within their weights
    rng = np.random.default_rng(0)
    z = rng.normal(size=200_000) + 1e4
    weights = rng.random(len(z) - 1) * 3
    s = project("chain", z, weights)
    assert (np.abs(np.cumsum(s)[:-1]) <= weights + 1e-9).all()
    np.testing.assert_allclose(project("chain", s, weights), s, atol=1e-9)
    np.testing.assert_allclose(project("chain", z - 1e4, weights), s, atol=1e-7)


def test_simplex_equals_a_count_with_one_gain():
    rng = np.random.default_rng(1)
    z = rng.normal(size=1000)
    gains = np.zeros(1000)
    gains[0] = 2.5
    np.testing.assert_allclose(project("simplex", z, 2.5), project("count", z, gains), atol=1e-12)


def test_sizes_are_checked():
    z = np.zeros(3)
    with pytest.raises(ValueError, match="one shorter"):
        _core.project_chain(z, z, z.copy())
    with pytest.raises(ValueError, match="as long as z"):
        _core.project_count(z, np.zeros(2), z.copy())
    with pytest.raises(ValueError, match="as long as z"):
        _core.project_simplex(z, 1.0, np.zeros(4))
