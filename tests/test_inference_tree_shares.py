"""Shares that move, messages in single precision, momentum: every bound on the way holds."""

from __future__ import annotations

import numpy as np
import pytest
from field_terms import SUBMODULAR, random_field
from hypothesis import given
from hypothesis import strategies as st
from marginals_cases import log_partition, true_marginals

import setwise as sw
from setwise.inference._marginals._trees import _tree_descent
from setwise.inference._marginals._trees._forest_bound import Forested
from setwise.inference._marginals._trees._tree_shares import Shares

ANY = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True)
def _as_large_graphs():
    """Small graphs, treated as those too large for a cover by forests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tree_descent, "LARGE", 0)
        yield


def grid(shape, n_labels, seed, regions=False):
    rng = np.random.default_rng(seed)
    edges = sw.fields.grid_edges(shape)
    field = sw.fields.Field(rng.normal(size=(shape[0] * shape[1], n_labels)))
    field += sw.fields.Potts(edges, rng.uniform(0.05, 1.5, len(edges)))
    if regions:
        labels = np.arange(field.n_variables) // 3
        field += sw.fields.RegionConsistency(labels, 0.6, 0.7)
    return field


@pytest.mark.hypothesis
@given(seed=ANY, n=st.integers(1, 6), max_iter=st.integers(0, 12), dtype=st.sampled_from([4, 8]))
def test_every_pass_bounds_log_partition(seed, n, max_iter, dtype):
    rng = np.random.default_rng(seed)
    field = random_field(SUBMODULAR, n, 3, seed % 10_000, forbidden=0.1)
    edges = np.argwhere(np.triu(rng.random((n, n)) < 0.7, 1))
    field += sw.fields.Pairwise(edges, 2.0 * rng.normal(size=(len(edges), 3, 3)))
    truth = log_partition(field)
    name = f"float{8 * dtype}"
    post = sw.marginals(field, "trees", tol=0.0, max_iter=max_iter, dtype=name)
    slack = 1e-9 * max(1.0, abs(truth))
    assert post.log_partition_lower - slack <= truth <= post.log_partition_upper + slack
    assert (np.diff(post.history) <= 0).all()
    assert post.gap >= 0


@pytest.mark.parametrize("regions", [False, True])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_shares_that_move_are_nearer_to_the_truth(n_labels, regions, monkeypatch):
    moved, even = [], []
    for seed in range(6):
        field = grid((3, 3), n_labels, seed, regions)
        truth = log_partition(field)
        moved.append(sw.marginals(field, "trees", tol=1e-7).log_partition_upper - truth)
        monkeypatch.setattr(Shares, "move", lambda self, informations: self.take_back() or 0.0)
        even.append(sw.marginals(field, "trees", tol=1e-7).log_partition_upper - truth)
        monkeypatch.undo()
    assert min(moved) >= -1e-9
    assert sum(moved) <= 0.95 * sum(even)


def test_shares_sum_to_one_and_answer_for_other_orders():
    first = np.array([0, 0, 1, 1, 1, 2])
    shares = Shares(first, 4)
    assert shares.now.tolist() == [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1.0]
    assert shares.move(np.array([1.0, 0.0, 0.0, 0.0, 5.0, 1.0])) > 0
    np.testing.assert_allclose(np.bincount(first, shares.now), 1.0, rtol=1e-15)
    assert shares.now.min() >= 0.01
    shares.take_back()
    assert shares.now.tolist() == [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1.0]
    shares.set(np.ones(6, np.float32))  # of another order: no more than 1 is shared out
    assert shares.now.tolist() == [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1.0]
    assert Shares(np.array([0, 1, 2]), 4).is_forest


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_state_holds_the_shares(dtype):
    field = grid((4, 5), 3, 0, regions=True)
    tol = 1e-8 if dtype == "float64" else 1e-5
    post = sw.marginals(field, "trees", tol=tol, dtype=dtype)
    assert post.state.dtype == post.probabilities.dtype == np.dtype(dtype)
    again = sw.marginals(field, "trees", tol=tol, dtype=dtype, init=post)
    assert again.n_iter <= 3 < post.n_iter
    assert again.log_partition_upper == pytest.approx(post.log_partition_upper, rel=2 * tol)
    other = sw.fields.Field(field.unary) + sw.fields.Potts([[0, 1]], 1.0)
    with pytest.raises(ValueError, match="init must be a result with 6 messages and block entries"):
        sw.marginals(other, "trees", init=post)


def test_single_precision_is_close_and_above():
    for n_labels in (2, 4):
        field = grid((3, 3), n_labels, 1, regions=True)
        double = sw.marginals(field, "trees", tol=1e-9)
        single = sw.marginals(field, "trees", tol=1e-5, dtype="float32")
        assert single.converged
        assert single.log_partition_upper == pytest.approx(double.log_partition_upper, rel=1e-4)
        assert single.log_partition_upper >= log_partition(field)
        np.testing.assert_allclose(single.probabilities, double.probabilities, atol=1e-3)


def test_single_precision_on_a_long_chain_is_above_log_partition():
    """A message too low by half a last digit at each of many edges would be seen."""
    rng = np.random.default_rng(0)
    n = 20_000
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    field = sw.fields.Field(rng.normal(size=(n, 2))) + sw.fields.Potts(edges, 0.8)
    exact = sw.marginals(field, "trees", tol=1e-12, max_iter=2)
    single = sw.marginals(field, "trees", tol=1e-6, dtype="float32")
    assert exact.log_partition_lower <= single.log_partition_upper
    assert single.log_partition_upper <= exact.log_partition_upper + 1e-2


def test_the_gradient_in_unaries_and_weights_against_finite_differences():
    base = grid((4, 5), 3, 2)
    weight = base.potentials[0].weights
    edges = sw.fields.grid_edges((4, 5))

    def built(factor, scale, unary):
        field = sw.fields.Field(unary) + sw.fields.Potts(edges, factor * weight)
        return field + sw.fields.RegionConsistency(np.arange(20) // 4, scale, 0.7)

    field = built(1.0, 1.0, base.unary)
    start = sw.marginals(field, "trees", tol=1e-12)

    def upper(*change):  # at the same shares
        return sw.marginals(built(*change), "trees", tol=1e-12, init=start).log_partition_upper

    post = sw.marginals(field, "trees", tol=1e-12, init=start)
    gradient = sw.inference.log_partition_gradient(field, post)
    step = 1e-5
    for k, change in enumerate([(step, 0.0), (0.0, step)]):
        high = upper(1.0 + change[0], 1.0 + change[1], base.unary)
        low = upper(1.0 - change[0], 1.0 - change[1], base.unary)
        assert gradient.weights[k] == pytest.approx((high - low) / (2 * step), rel=1e-4)
    for i, label in [(0, 0), (7, 2), (19, 1)]:
        moved = np.zeros_like(base.unary)
        moved[i, label] = step
        high, low = (upper(1.0, 1.0, base.unary + sign * moved) for sign in (1.0, -1.0))
        assert gradient.unary[i, label] == pytest.approx((high - low) / (2 * step), rel=1e-4)


@pytest.mark.parametrize("n_labels", [2, 5])
def test_threads_change_no_bit(n_labels):
    field = grid((70, 75), n_labels, 3)
    field += sw.fields.RegionConsistency(np.arange(5250) // 40, 0.5, 0.7)
    field += sw.fields.LabelCost(np.full(n_labels, 2.0))
    one, two = (sw.marginals(field, "trees", tol=1e-3, n_jobs=k) for k in (1, 2))
    assert one.log_partition_upper == two.log_partition_upper
    assert one.log_partition_lower == two.log_partition_lower
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    np.testing.assert_array_equal(one.lower_probabilities, two.lower_probabilities)


def test_many_trees_at_once_never_lower_the_bound():
    """Components of one colour move together; counts and costs of labels follow by tangents."""
    field = grid((9, 9), 3, 4)
    field += sw.fields.RegionConsistency(np.arange(81) // 7, 1.5, 0.6)
    field += sw.fields.LabelCost([0.5, 2.0, 1.0])
    forest = Forested(field, np.full((81, 3), 1 / 3), 1.0, n_threads=2)
    values = []
    for _ in range(10):
        forest.sweep()
        values.append(forest.bound())
    assert (np.diff(values) >= -1e-9).all()


def test_marginals_of_pairs_meet_those_of_their_ends():
    field = grid((3, 3), 2, 5)
    post = sw.marginals(field, "trees", tol=1e-8)
    assert np.abs(post.probabilities - true_marginals(field)).mean() < 0.06
