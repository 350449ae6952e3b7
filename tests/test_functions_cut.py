"""Cuts: the definition, the compiled pass, the answers about themselves, bad input."""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import cuts, orders, sizes

from setwise import _core
from setwise.functions import Cut


@given(sizes.flatmap(cuts))
def test_value_is_the_weight_of_the_edges_cut(cut):
    for mask in reference.all_masks(cut.n):
        expected = 0.0
        for (u, v), weight in zip(cut.edges, cut.weights, strict=True):
            leaves = mask[u] and not mask[v]
            enters = mask[v] and not mask[u]
            expected += weight * (leaves or (enters and not cut.directed))
        assert cut(mask) == pytest.approx(expected, abs=1e-12)


@given(st.data())
def test_gains_are_differences_of_values(data):
    cut = data.draw(sizes.flatmap(cuts))
    order = data.draw(orders(cut.n))
    expected = reference.gains(reference.all_values(cut), order)
    np.testing.assert_allclose(cut.gains(order), expected, atol=1e-12)


@given(sizes.flatmap(cuts))
def test_answers_about_itself(cut):
    values = reference.all_values(cut)
    assert cut.is_submodular is True
    assert reference.is_submodular(values)
    assert cut.is_supermodular is reference.is_supermodular(values)
    assert cut.is_increasing is reference.is_increasing(values)


def test_masks_beyond_one_chunk():
    n = 1500
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    cut = Cut(ring, n=n)
    masks = np.random.default_rng(0).random((3000, n)) < 0.5
    np.testing.assert_array_equal(cut(masks), (masks != np.roll(masks, -1, axis=1)).sum(axis=1))


@pytest.mark.parametrize("directed", [False, True])
def test_a_pass_over_a_large_graph(directed):
    rng = np.random.default_rng(0)
    n = 20000
    ends = rng.integers(0, n, size=(4 * n, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    cut = Cut(ends, rng.random(len(ends)), n=n, directed=directed)
    order = rng.permutation(n)
    gains = cut.gains(order)
    assert gains.sum() == pytest.approx(0.0, abs=1e-8)
    for k in (1, 100, n // 2, n - 1):
        mask = np.zeros(n, bool)
        mask[order[:k]] = True
        assert cut(mask) == pytest.approx(gains[:k].sum(), rel=1e-10)


def test_a_repeated_edge_adds():
    twice = Cut([[0, 1], [1, 0], [0, 1]], [1.0, 2.0, 4.0], n=2)
    assert twice([True, False]) == 7.0
    assert twice.gains([1, 0]).tolist() == [7.0, -7.0]
    directed = Cut([[0, 1], [1, 0], [0, 1]], [1.0, 2.0, 4.0], n=2, directed=True)
    assert directed.gains([0, 1]).tolist() == [5.0, -5.0]
    assert directed.gains([1, 0]).tolist() == [2.0, -2.0]


def test_no_edges_is_the_zero_function():
    cut = Cut([], n=3)
    assert cut([True, False, True]) == 0.0
    assert cut.gains([2, 0]).tolist() == [0.0, 0.0]
    assert cut.is_increasing
    assert cut.is_supermodular
    assert Cut(np.zeros((0, 2)), n=0)([]) == 0.0


def test_an_order_need_not_be_contiguous():
    cut = Cut([[0, 1], [1, 2]], n=3)
    assert cut.gains(np.arange(3)[::-1]).tolist() == cut.gains([2, 1, 0]).tolist()


def test_pickle_keeps_the_function_and_drops_what_can_be_built_again():
    cut = Cut([[0, 1], [1, 2]], [1.0, 3.0], n=3, directed=True)
    before = cut.gains([1, 0, 2])
    copy = pickle.loads(pickle.dumps(cut))
    assert "_memo" not in vars(copy)
    assert copy.directed
    np.testing.assert_array_equal(copy.gains([1, 0, 2]), before)


def test_edges_given_may_change_afterwards():
    ends, weights = np.array([[0, 1]]), np.array([1.0])
    cut = Cut(ends, weights, n=3)
    ends[:], weights[:] = 2, 5.0
    assert cut([True, False, False]) == 1.0
    with pytest.raises(ValueError, match="read-only"):
        cut.weights[0] = 2.0


def test_repr():
    assert repr(Cut([[0, 1]], n=3)) == "Cut(n=3, edges=1)"
    assert repr(Cut([[0, 1]], n=3, directed=True)) == "Cut(n=3, edges=1, directed=True)"


@pytest.mark.parametrize(
    ("edges", "options", "error", "sentence"),
    [
        ([[0, 0]], {}, ValueError, r"edges must join two different elements, got \(0, 0\)"),
        ([[0, 3]], {}, ValueError, "edges must lie between 0 and 2, got 3"),
        ([[-1, 2]], {}, ValueError, "edges must lie between 0 and 2, got -1"),
        ([[0.0, 1.0]], {}, TypeError, "edges must hold integers, got dtype float64"),
        ([0, 1], {}, ValueError, r"edges must have shape \(E, 2\), got \(2,\)"),
        ([[0, 1, 2]], {}, ValueError, r"edges must have shape \(E, 2\), got \(1, 3\)"),
        ([[0, 1]], {"weights": -1.0}, ValueError, "weights must not be negative, got -1"),
        ([[0, 1]], {"weights": np.nan}, ValueError, "weights must be finite, got nan"),
        ([[0, 1]], {"weights": [1.0, 2.0]}, ValueError, r"weights must have shape \(1\)"),
        ([[0, 1]], {"weights": "a"}, TypeError, "weights must hold real numbers"),
        ([[0, 1]], {"directed": 1}, TypeError, "directed must be True or False, got int"),
        ([[0, 1]], {"n": 2.0}, TypeError, "n must be an integer, got float"),
        ([[0, 1]], {"n": -1}, ValueError, "n must be at least 0, got -1"),
    ],
)
def test_bad_input(edges, options, error, sentence):
    with pytest.raises(error, match=sentence):
        Cut(edges, **{"n": 3, **options})


@pytest.mark.parametrize(
    "broken",
    [
        {"order": [2]},
        {"order": [-1]},
        {"neighbors": [5, 0]},
        {"neighbors": [-1, 0]},
        {"indptr": [0, 3, 2]},
        {"indptr": [-1, 1, 2]},
    ],
    ids=str,
)
def test_the_kernel_refuses_indices_out_of_range(broken):
    rows = {"indptr": [0, 1, 2], "neighbors": [1, 0], "order": [0, 1], **broken}
    arrays = {name: np.array(values, np.int64) for name, values in rows.items()}
    ones, out = np.ones(2), np.empty(len(arrays["order"]))
    with pytest.raises(ValueError, match="must"):
        _core.cut_gains(arrays["indptr"], arrays["neighbors"], ones, ones, arrays["order"], out)
