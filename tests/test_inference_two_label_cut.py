"""Cuts of changing costs: each from the flow of the last, and as good as one from nothing."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise import _core, fields
from setwise.inference._flows._two_label_cut import TwoLabelCut

seeds = st.integers(0, 2**32 - 1)


def best_of_all(field: fields.Field, costs: np.ndarray) -> tuple[float, np.ndarray]:
    """The least energy of the potentials with costs of label 1, and its fewest ones."""
    every = np.array(list(product([0, 1], repeat=len(costs))), np.int64)
    bare = field.with_unary(np.zeros(field.unary.shape))
    taken = np.where(np.isneginf(costs), 1, 0)
    allowed = (every >= taken).all(axis=1) & ~(every[:, np.isposinf(costs)] == 1).any(axis=1)
    finite = np.where(np.isfinite(costs), costs, 0.0)
    paid = bare.energy(every) + every @ finite
    paid = np.where(allowed, paid, np.inf)
    best = np.isclose(paid, paid.min(), rtol=0.0, atol=1e-9)
    return float(paid.min()), every[best].min(axis=0)


@given(seeds)
def test_every_cut_of_a_sequence_is_the_best_with_the_fewest_ones(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    field = fields.Field(rng.normal(size=(n, 2)))
    pairs = [pair for pair in combinations(range(n), 2) if rng.random() < 0.5]
    if pairs:
        field = field + fields.Potts(pairs, 0.25 * rng.integers(0, 5, len(pairs)))
    if rng.random() < 0.5:
        field = field + fields.RobustPn(rng.integers(0, 2, n), 0.5, 1.0)
    cut, constants = TwoLabelCut(field, apart=bool(rng.integers(2))), []
    for _ in range(6):
        # Quarters are added without rounding, so that what ties does so in the flow too.
        costs = 0.25 * rng.normal(scale=4.0 ** rng.integers(0, 5), size=n).round()
        hard = rng.random(n)
        costs = np.where(hard < 0.1, np.inf, np.where(hard > 0.9, -np.inf, costs))
        costs = np.where((hard > 0.4) & (hard < 0.5), 1e9 * np.sign(costs), costs)
        ones = cut.ones(costs, share=0.0)
        least, fewest = best_of_all(field, costs)
        finite = np.where(np.isfinite(costs), costs, 0.0)
        bare = field.with_unary(np.zeros(field.unary.shape))
        energy = bare.energy(ones.astype(np.int64))
        assert energy + finite[ones].sum() <= least + 1e-9 * (1.0 + abs(least)) + cut.lost
        if np.abs(finite).max(initial=0.0) < 1e8:
            np.testing.assert_array_equal(ones, fewest)
            assert cut.lost == 0.0
        constants.append(energy - cut.value)
    np.testing.assert_allclose(constants, constants[0], atol=1e-9)


def test_many_changes_are_solved_in_blocks_from_the_flow_there_is():
    rng = np.random.default_rng(3)
    shape = (400, 340)
    edges = fields.grid_edges(shape, 8)
    field = fields.Field(np.zeros((136_000, 2)))
    field = field + fields.Potts(edges, rng.integers(0, 64, len(edges)) / 64)
    cuts = [TwoLabelCut(field, threads, apart=True) for threads in (1, 2)]
    costs = rng.integers(-64, 65, 136_000) / 16
    for share in (1.0, 0.3, 0.001, 0.1):
        more = rng.integers(-64, 65, 136_000) / 64
        costs = np.where(rng.random(136_000) < share, costs + more, costs)
        found = [cut.ones(costs) for cut in cuts]
        fresh = TwoLabelCut(field).ones(costs)
        for ones, cut in zip(found, cuts, strict=True):
            np.testing.assert_array_equal(ones, fresh)
            assert cut.lost == 0.0


@pytest.mark.parametrize("share", [0.0, 1e-10])
def test_a_long_sequence_on_a_grid_ends_where_one_cut_from_nothing_does(share):
    rng = np.random.default_rng(0)
    shape = (30, 40)
    edges = fields.grid_edges(shape)
    field = fields.Field(np.zeros((1200, 2)))
    field = field + fields.Potts(edges, rng.random(len(edges)))
    cut = TwoLabelCut(field)
    for k in range(40):
        costs = rng.normal(size=1200) + np.sin(k)
        ones = cut.ones(costs, share)
        paid = field.energy(ones.astype(np.int64)) + costs[ones].sum()
        fresh = TwoLabelCut(field).ones(costs)
        least = field.energy(fresh.astype(np.int64)) + costs[fresh].sum()
        assert least - 1e-9 <= paid <= least + cut.lost + 1e-9
        assert cut.lost <= 1e-10 * 1200
        np.testing.assert_array_equal(ones, fresh)


def test_seeds_that_come_and_go_take_no_digits():
    edges = fields.grid_edges((8, 8))
    field = fields.Field(np.zeros((64, 2))) + fields.Potts(edges, 0.3)
    cut, rng = TwoLabelCut(field), np.random.default_rng(1)
    costs = rng.normal(size=64)
    expected = cut.ones(costs)
    for size in (1e12, 1e20, np.inf):
        hard = costs.copy()
        hard[[0, 63]] = size, -size
        assert cut.ones(hard)[[0, 63]].tolist() == [False, True]
        hard[[0, 63]] = -size, size
        assert cut.ones(hard)[[0, 63]].tolist() == [True, False]
        np.testing.assert_array_equal(cut.ones(costs), expected)
        assert cut.lost == 0.0


def test_the_kernel_checks_its_arrays():
    edges, one = np.array([[0, 1]]), np.ones(1)
    with pytest.raises(ValueError, match="edges must join different nodes"):
        _core.make_changing_cut(np.zeros(1), edges, one, one)
    with pytest.raises(ValueError, match="there and back must have E entries"):
        _core.make_changing_cut(np.zeros(2), edges, one, np.ones(2))
    cut = _core.make_changing_cut(np.zeros(2), edges, one, one)
    with pytest.raises(ValueError, match="tilt and inside must have an entry"):
        cut.solve(np.zeros(3), 0.0, False, np.zeros(3, np.bool_), np.zeros(3), 1)
    with pytest.raises(ValueError, match="answer must have 3 entries"):
        cut.solve(np.zeros(2), 0.0, False, np.zeros(2, np.bool_), np.zeros(2), 1)


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e100])
def test_costs_that_are_taken_away_leave_what_came_in(unit):
    """0.4 came in beside a cost of -8.6e19, where it could not be seen, and has to go back."""
    edges = [[0, 1], [1, 2], [2, 3], [3, 4], [0, 3], [3, 2], [1, 2]]
    weights = unit * np.array([0.96, 0.35, 0.25, 0.2, 0.0, 3.7e19, 6e18])
    cut = TwoLabelCut(fields.Field(np.zeros((5, 2))) + fields.Potts(edges, weights))
    cut.ones(unit * np.array([0.4, -8.6e19, -0.81, -8.2e19, 0.0]))
    ones = cut.ones(unit * np.array([0.0, 0.0, 0.28, 0.0, -3.6e14]))
    assert ones.tolist() == [False, False, False, False, True]
    assert cut.above_least == pytest.approx(0.2 * unit, rel=1e-12)
    assert cut.lost == 0.0
