"""The bound of trees: exact on forests, above log Z on every graph, certified by its own dual."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pytest
import reference
from field_terms import SUBMODULAR, random_field
from hypothesis import given
from hypothesis import strategies as st
from marginals_cases import log_partition, true_marginals

import setwise as sw
from setwise import _core
from setwise.inference._marginals._methods import METHODS
from setwise.inference._marginals._trees import _tree_descent
from setwise.inference._marginals._trees._forest_bound import Forested, forest_bound
from setwise.inference._marginals._trees._pairs import pairs_of
from setwise.inference._marginals._trees._tree_descent import TreeDescent
from setwise.inference._marginals._trees._tree_shares import order_of

ANY = st.integers(0, 2**32 - 1)


def random_forest(rng: np.random.Generator, n: int) -> np.ndarray:
    """Each variable but a few is joined to an earlier one; then they are shuffled."""
    edges = [(i, int(rng.integers(i))) for i in range(1, n) if rng.random() < 0.85]
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    return np.asarray(rng.permutation(n)[pairs])


@pytest.mark.hypothesis
@given(seed=ANY, n=st.integers(1, 7), n_labels=st.integers(1, 3))
def test_forests_are_exact(seed, n, n_labels):
    rng = np.random.default_rng(seed)
    edges = random_forest(rng, n)
    field = sw.fields.Field(rng.normal(size=(n, n_labels)))
    field += sw.fields.Potts(edges, rng.uniform(0.0, 2.0, len(edges)))
    field += sw.fields.Pairwise(edges, rng.normal(size=(len(edges), n_labels, n_labels)))
    post = sw.marginals(field, "trees", tol=1e-12)
    truth = log_partition(field)
    assert post.log_partition_upper == pytest.approx(truth, abs=1e-9)
    assert post.gap <= 1e-9
    np.testing.assert_allclose(post.probabilities, true_marginals(field), atol=1e-9)


@pytest.mark.hypothesis
@given(
    seed=ANY,
    n=st.integers(2, 7),
    n_labels=st.integers(2, 3),
    density=st.floats(0.2, 1.0),
    scale=st.sampled_from([0.3, 1.0, 5.0]),
    max_iter=st.integers(0, 8),
)
def test_every_pass_bounds_log_partition(seed, n, n_labels, density, scale, max_iter):
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((n, n)) < density, 1))
    field = sw.fields.Field(rng.normal(size=(n, n_labels)))
    field += sw.fields.Pairwise(edges, scale * rng.normal(size=(len(edges), n_labels, n_labels)))
    truth = log_partition(field)
    post = sw.marginals(field, "trees", tol=0.0, max_iter=max_iter)
    slack = 1e-9 * max(1.0, abs(truth))
    assert post.log_partition_lower - slack <= truth <= post.log_partition_upper + slack
    assert (np.diff(post.history) <= 0).all()
    best = sw.marginals(field, "trees", tol=1e-9, max_iter=100)
    assert post.bound <= best.log_partition_upper + slack
    assert best.gap >= 0


@pytest.mark.parametrize("seed", range(20))
def test_pairs_beside_other_terms(seed):
    field = random_field(SUBMODULAR, 5, 3, seed, forbidden=0.2)
    rng = np.random.default_rng(seed)
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [1, 4]])
    field += sw.fields.Pairwise(edges, rng.normal(size=(5, 3, 3)))
    truth = log_partition(field)
    post = sw.marginals(field, "trees", tol=1e-9)
    assert truth <= post.log_partition_upper + 1e-9
    assert post.relative_gap <= 1e-6
    assert (post.probabilities[np.isinf(field.unary)] == 0).all()


def _is_at(stop, now):
    return now.n_iter == stop


@pytest.mark.parametrize("regions", [False, True])
def test_looking_at_the_bound_seldom_loses_nothing(regions, monkeypatch):
    """Dense tables raise the bound of some passes; it is one wherever the search is stopped."""
    rng = np.random.default_rng(8)
    n, edges = 9, np.array(list(combinations(range(9), 2)))
    field = sw.fields.Field(rng.normal(size=(n, 2)))
    field += sw.fields.Pairwise(edges, 1.5 * rng.normal(size=(len(edges), 2, 2)))
    if regions:
        field += sw.fields.RegionConsistency(np.arange(n) // 3, 1.0, 0.6)
    truth, uppers = log_partition(field), []
    for patience in (1, 16):
        monkeypatch.setattr(_tree_descent, "PATIENCE", patience)
        uppers.append(sw.marginals(field, "trees", tol=1e-6).log_partition_upper)
    assert uppers[1] == pytest.approx(uppers[0], rel=1e-4)
    for stop in (3, 5, 12, 40):
        post = sw.marginals(field, "trees", tol=0.0, callback=partial(_is_at, stop))
        assert truth <= post.log_partition_upper == post.history[-1]
        assert post.interrupted is not post.converged  # the gap of pass 40 is 0
        assert post.gap >= 0
        assert len(post.history) == stop + 1
        assert (np.diff(post.history) <= 0).all()


def test_an_interrupt_before_the_bound_of_a_pass_is_looked_at(monkeypatch):
    look, looks = TreeDescent._look, []

    def interrupted(self, value):
        looks.append(value)
        if len(looks) == 1:
            raise KeyboardInterrupt
        look(self, value)

    field = sw.fields.Field(np.zeros((3, 2))) + sw.fields.Potts([[0, 1], [1, 2]], 1.0)
    monkeypatch.setattr(TreeDescent, "_look", interrupted)
    post = sw.marginals(field, "trees")
    assert post.interrupted
    assert post.log_partition_upper >= sw.marginals(field, "elimination").log_partition_lower


@pytest.mark.parametrize("coupling", [0.3, 1.0])
def test_it_is_far_below_projection_on_grids(coupling):
    """Excess over log Z and error of the marginals, grid alone and with regions."""
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(9, 3))
    grid = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((3, 3)), coupling)
    regions = grid + sw.fields.RegionConsistency([0, 0, 1, 0, 1, 1, 2, 2, 2], 0.5, 0.7)
    for field, times in [(grid, 5.0), (regions, 2.0)]:
        truth, marginals = log_partition(field), true_marginals(field)
        excess, error = {}, {}
        for method in ["projection", "trees"]:
            post = sw.marginals(field, method, tol=1e-9)
            excess[method] = post.log_partition_upper - truth
            error[method] = np.abs(post.probabilities - marginals).mean()
        assert 0 <= times * excess["trees"] <= excess["projection"]
        assert 1.5 * error["trees"] <= error["projection"]


def test_without_pairs_it_is_projection():
    rng = np.random.default_rng(3)
    field = sw.fields.Field(rng.normal(size=(12, 3)))
    field += sw.fields.RegionConsistency(np.arange(12) // 4, 1.0, 0.6)
    field += sw.fields.LabelCost([0.5, 1.0, 0.2])
    one, other = (sw.marginals(field, m, tol=1e-10) for m in ("projection", "trees"))
    assert one.log_partition_upper == pytest.approx(other.log_partition_upper, abs=1e-7)
    np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-4)


def test_repeated_edges_are_one_pair():
    rng = np.random.default_rng(4)
    unary, tables = rng.normal(size=(3, 3)), rng.normal(size=(2, 3, 3))
    once = sw.fields.Field(unary) + sw.fields.Potts([[0, 1], [1, 2]], [0.7, 0.4])
    twice = sw.fields.Field(unary) + sw.fields.Potts([[0, 1], [1, 0], [2, 1]], [0.5, 0.2, 0.4])
    results = [sw.marginals(field, "trees", tol=1e-10) for field in (once, twice)]
    assert results[0].log_partition_upper == pytest.approx(results[1].log_partition_upper)
    turned = sw.fields.Field(unary) + sw.fields.Pairwise([[0, 1], [2, 1]], tables)
    turned += sw.fields.Potts([[1, 0]], 0.6)
    post = sw.marginals(turned, "trees", tol=1e-10)
    assert post.log_partition_upper == pytest.approx(log_partition(turned))


@pytest.mark.parametrize("connectivity", [4, 8, [[0, 1], [1, 0], [2, -1], [1, -2]]])
def test_tiles_give_every_pixel_its_later_neighbours(connectivity):
    shape = (70, 90)
    edges = sw.fields.grid_edges(shape, connectivity)
    field = sw.fields.Field(np.zeros((6300, 2))) + sw.fields.Potts(edges, 1.0)
    pairs = pairs_of(field._folded().terms, (6300, 2))
    order = order_of(pairs, 6300)
    assert sorted(order.variables) == list(range(6300))
    assert len(order.starts) > 5
    later = np.bincount(order.first(edges), minlength=6300)
    assert later.max() == len(np.unique(edges[:, 1] - edges[:, 0]))


def test_leaves_come_first():
    rng = np.random.default_rng(5)
    for n in (1, 2, 50):
        edges = random_forest(rng, n)
        order = np.empty(n, np.int64)
        _core.fewest_edges_first(edges, n, order)
        place = np.argsort(order)
        assert np.bincount(edges[np.arange(len(edges)), place[edges].argmin(axis=1)]).max(
            initial=0
        ) <= (1 if len(edges) else 0)


def test_huge_prices_leave_a_bound():
    """Changes so dear that exponentials of them are 0, against the same sums in logarithms."""
    field = sw.fields.Field([[0.0, 2000.0], [1.0, 0.0], [3000.0, 0.0]])
    field += sw.fields.Potts([[0, 1], [1, 2]], [1500.0, 900.0])
    post = sw.marginals(field, "trees", tol=1e-9)
    assert post.log_partition_upper == pytest.approx(log_partition(field), abs=1e-6)


def test_a_start_of_its_own_goes_on_and_others_begin_near():
    rng = np.random.default_rng(6)
    field = sw.fields.Field(rng.normal(size=(30, 3)))
    field += sw.fields.Potts(sw.fields.grid_edges((5, 6)), 0.6)
    field += sw.fields.RegionConsistency(np.arange(30) // 5, 0.5, 0.7)
    post = sw.marginals(field, "trees", tol=1e-9)
    again = sw.marginals(field, "trees", tol=1e-9, init=post)
    assert again.n_iter <= 1
    near = sw.marginals(field, "trees", tol=1e-9, init=sw.marginals(field, "projection"))
    assert near.log_partition_upper == pytest.approx(post.log_partition_upper, abs=1e-6)
    other = sw.fields.Field(field.unary) + sw.fields.Potts([[0, 1]], 1.0)
    with pytest.raises(ValueError, match="init must be a result with 6 messages and block entries"):
        sw.marginals(other, "trees", init=post)
    with pytest.raises(ValueError, match="init must be a result of projection"):
        sw.marginals(field, "projection", init=post)


def test_gradient_of_tables_against_finite_differences():
    rng = np.random.default_rng(7)
    unary, tables = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 3))
    edges = [[0, 1], [2, 1], [2, 3], [3, 0]]
    base = sw.fields.Field(unary) + sw.fields.Potts([[1, 0]], 0.5)

    def result(factor: float) -> tuple[sw.fields.Field, sw.inference.MarginalsResult]:
        field = base + sw.fields.Pairwise(edges, factor * tables)
        return field, sw.marginals(field, "trees", tol=1e-13)

    gradient = sw.inference.log_partition_gradient(*result(1.0))
    high, low = (result(1.0 + h)[1].log_partition_upper for h in (1e-5, -1e-5))
    assert gradient.weights[1] == pytest.approx((high - low) / 2e-5, rel=1e-5)
    with pytest.raises(ValueError, match="result must be of this field, got one of other edges"):
        sw.inference.log_partition_gradient(base, result(1.0)[1])


@pytest.mark.hypothesis
@given(seed=ANY, n=st.integers(1, 6), n_labels=st.integers(1, 3), scale=st.floats(0.1, 3.0))
def test_products_of_trees_are_below_log_partition(seed, n, n_labels, scale):
    rng = np.random.default_rng(seed)
    kinds = ["potts", "tables", "shared table", "count", "robust", "label", "labels", "transition"]
    field = random_field(kinds, n, n_labels, seed % 10_000, forbidden=0.2)
    q = rng.random((n, n_labels)) * np.isfinite(field.unary) + 1e-9
    q = np.where(np.isfinite(field.unary), q, 0.0)
    below = forest_bound(field, q / q.sum(axis=1, keepdims=True), scale)
    labelings = reference.all_labelings(n, n_labels)
    truth = float(np.logaddexp.reduce(-field._energies(labelings) / scale))
    assert below.bound <= truth + 1e-9 * max(1.0, abs(truth))
    np.testing.assert_allclose(below.probabilities.sum(axis=1), 1.0)


def test_a_product_of_trees_is_exact_on_a_forest_and_never_falls():
    rng = np.random.default_rng(8)
    edges = random_forest(rng, 7)
    field = sw.fields.Field(rng.normal(size=(7, 3)))
    field += sw.fields.Pairwise(edges, rng.normal(size=(len(edges), 3, 3)))
    post = sw.marginals(field, "trees", tol=1e-9)
    assert post.width <= 1e-8
    assert post.total_variation <= 1e-4
    np.testing.assert_allclose(post.lower_probabilities, true_marginals(field), atol=1e-9)
    grid = sw.fields.Field(rng.normal(size=(30, 3)))
    grid += sw.fields.Potts(sw.fields.grid_edges((5, 6)), rng.uniform(0.2, 1.0, 49))
    grid += sw.fields.RegionConsistency(np.arange(30) // 7, 0.5, 0.7)
    grid += sw.fields.LabelCost([0.5, 2.0, 1.0])
    forest = Forested(grid, np.full((30, 3), 1 / 3), 1.0)
    values = []
    for _ in range(12):
        forest.sweep()
        values.append(forest.bound())
    assert (np.diff(values) >= -1e-9).all()


def test_rows_are_the_trees_of_an_even_grid():
    edges = sw.fields.grid_edges((4, 6))
    kept = np.empty(len(edges), np.uint8)
    _core.induced_forest(edges, 24, np.arange(len(edges)), kept)
    assert kept.tolist() == [1] * 20 + [0] * 18


@pytest.mark.parametrize("seed", range(8))
def test_an_edge_joins_two_trees_where_it_is_the_only_one_between(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 120))
    pairs = np.argwhere(np.triu(rng.uniform(size=(n, n)) < 4.0 / n, 1))
    order = rng.permutation(len(pairs))
    kept = np.empty(len(pairs), np.uint8)
    _core.induced_forest(np.ascontiguousarray(pairs), n, order, kept)
    tree, joined = np.arange(n), np.zeros(len(pairs), np.uint8)
    for e in order:
        ends, trees = set(tree[pairs[e]]), tree[pairs]
        between = [set(two) == ends for two in trees]
        if len(ends) == 2 and sum(between) == 1:
            joined[e] = 1
            tree[tree == max(ends)] = min(ends)
    np.testing.assert_array_equal(kept, joined)


def test_the_result_says_whose_its_probabilities_are():
    field = sw.fields.Field(np.zeros((4, 2))) + sw.fields.Potts(sw.fields.grid_edges((2, 2)), 1.0)
    said = {method: sw.marginals(field, method).of for method in METHODS}
    assert said["trees"] == said["projection"] == "the upper bound, whose gradient they are"
    assert said["mean_field"].startswith("the lower bound")
    assert said["elimination"] == "the field itself: they are exact"
    assert all(said.values())
    below = sw.marginals(field, "mean_field")
    np.testing.assert_array_equal(below.lower_probabilities, below.probabilities)
    assert below.total_variation == 1.0
    assert sw.marginals(field, "trees", time_limit=0.0).of.startswith("the unaries alone")


@pytest.mark.parametrize(
    "method", [name for name in METHODS if "upper bound" in METHODS[name].of and name != "trees"]
)
def test_probabilities_of_an_upper_bound_are_its_gradient(method):
    """Those of trees have their own test: here the ones of the base polytope, by differences."""
    rng = np.random.default_rng(4)
    field = sw.fields.Field(rng.normal(size=(4, 2)))
    field += sw.fields.Potts(sw.fields.grid_edges((2, 2)), 0.4)
    options = {"tol": 1e-9 if method in ("projection", "exact_binary") else 1e-4}
    post = sw.marginals(field, method, **options)
    assert post.of == "the upper bound, whose gradient they are"
    h, slack = 0.05, 1e-7 if options["tol"] == 1e-9 else 0.05
    for i in range(4):
        push = np.zeros((4, 2))
        push[i, 0] = h
        ends = [
            sw.marginals(field.with_unary(field.unary + s * push), method, **options)
            for s in (1.0, -1.0)
        ]
        slope = (ends[0].log_partition_upper - ends[1].log_partition_upper) / (2 * h)
        assert slope == pytest.approx(-post.probabilities[i, 0], abs=1e-3 + slack)


@pytest.mark.parametrize("n", [4, 5, 7])
def test_an_answer_in_single_precision_is_a_start(n):
    """Thirds and fifths of an edge are rounded there."""
    rng = np.random.default_rng(n)
    edges = np.argwhere(np.triu(np.ones((n, n)), 1))
    field = sw.fields.Field(rng.normal(size=(n, 2))) + sw.fields.Potts(edges, 0.5)
    post = sw.marginals(field, "trees", tol=1e-9, dtype="float32")
    again = sw.marginals(field, "trees", tol=1e-4, init=post)
    assert again.n_iter <= 2
    assert again.log_partition_upper == pytest.approx(post.log_partition_upper, rel=1e-4)
    assert again.log_partition_upper >= log_partition(field)


@pytest.mark.parametrize("seed", range(6))
def test_other_tables_on_the_same_edges_are_a_start(seed):
    """Tables of two labels that are submodular become Potts terms, so that the order differs."""
    rng = np.random.default_rng(seed)
    edges = sw.fields.grid_edges((3, 4))

    def drawn():
        field = sw.fields.Field(rng.normal(size=(12, 2)))
        return field + sw.fields.Pairwise(edges, rng.normal(size=(len(edges), 2, 2)))

    first, other = drawn(), drawn()
    start = sw.marginals(first, "trees", tol=1e-8)
    assert sw.marginals(first, "trees", tol=1e-6, init=start).n_iter == 1
    post = sw.marginals(other, "trees", tol=1e-8, init=start)
    assert post.converged
    assert post.log_partition_lower <= log_partition(other) <= post.log_partition_upper


def test_probabilities_that_underflow_make_no_infinite_information():
    # products of two tiny probabilities are 0, and quotients by them were infinite
    random = np.random.default_rng(0)
    edges = [[1, 3], [2, 3], [2, 4], [0, 2], [0, 3], [3, 4]]
    weights = np.array([8e8, 1.4e9, 7e8, 1.0, 2.0, 3.0])
    for _ in range(20):
        field = sw.fields.Field(random.normal(size=(5, 3))) + sw.fields.Potts(edges, weights)
        for dtype in ("float32", "float64"):
            post = sw.marginals(field, "trees", temperature=0.01, dtype=dtype, tol=0.0, max_iter=30)
            truth = reference.log_partition(field, 0.01)
            assert post.log_partition_lower <= truth + 1e-9 * abs(truth)
            assert truth <= post.log_partition_upper + 1e-9 * abs(truth)
