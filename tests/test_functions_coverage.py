"""Coverage: the definition, the compiled pass, sparse input, bad input."""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix
from strategies import coverages, orders, sizes

from setwise import _core
from setwise.functions import Coverage


def sets_of(function):
    ends = zip(function.indptr, function.indptr[1:], strict=False)
    return [set(function.items[start:end].tolist()) for start, end in ends]


@given(sizes.flatmap(coverages))
def test_value_is_the_weight_of_the_union(function):
    sets = sets_of(function)
    for mask in reference.all_masks(function.n):
        union = set().union(*(sets[i] for i in np.flatnonzero(mask)))
        expected = sum(function.weights[item] for item in union)
        assert function(mask) == pytest.approx(expected, abs=1e-12)


@given(st.data())
def test_gains_are_differences_of_values(data):
    function = data.draw(sizes.flatmap(coverages))
    order = data.draw(orders(function.n))
    expected = reference.gains(reference.all_values(function), order)
    np.testing.assert_allclose(function.gains(order), expected, atol=1e-12)


@given(sizes.flatmap(coverages))
def test_answers_about_itself(function):
    values = reference.all_values(function)
    assert function.is_submodular is True
    assert reference.is_submodular(values)
    assert function.is_increasing is True
    assert reference.is_increasing(values)
    assert function.is_supermodular is reference.is_supermodular(values)


def test_a_pass_over_many_sets():
    rng = np.random.default_rng(0)
    sets = [rng.integers(0, 5000, size=20) for _ in range(3000)]
    function = Coverage(sets, rng.random(5000))
    order = rng.permutation(3000)
    gains = function.gains(order)
    masks = np.zeros((3, 3000), bool)
    for row, k in zip(masks, (1, 500, 3000), strict=True):
        row[order[:k]] = True
        assert function(row) == pytest.approx(gains[:k].sum(), rel=1e-12)
    assert function(masks).tolist() == [function(row) for row in masks]


def test_masks_beyond_one_chunk():
    function = Coverage([[item] for item in range(3000)])
    masks = np.random.default_rng(0).random((1500, 3000)) < 0.5
    np.testing.assert_array_equal(function(masks), masks.sum(axis=1))


@pytest.mark.parametrize("kind", [csr_array, coo_array, csr_matrix])
def test_a_sparse_matrix_gives_the_same_function(kind):
    dense = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, -2, 1, 0]])
    sparse = Coverage(kind(dense), [1.0, 2.0, 4.0, 8.0])
    lists = Coverage([[0, 2], [], [1, 2]], [1.0, 2.0, 4.0, 8.0])
    np.testing.assert_array_equal(reference.all_values(sparse), reference.all_values(lists))
    assert sparse.gains([2, 0, 1]).tolist() == [6.0, 1.0, 0.0]


def test_a_stored_zero_covers_nothing():
    stored = csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert Coverage(stored)([True]) == 1.0
    cancelled = coo_array((np.array([1.0, -1.0]), ([0, 0], [0, 0])), shape=(1, 2))
    assert Coverage(cancelled)([True]) == 0.0
    assert stored.nnz == 2


def test_an_item_listed_twice_counts_once():
    function = Coverage([[1, 1, 0], [1]])
    assert function([True, False]) == 2.0
    assert function.gains([0, 1]).tolist() == [2.0, 0.0]


def test_nothing_to_cover():
    assert Coverage([])([]) == 0.0
    assert Coverage([[], []]).gains([1, 0]).tolist() == [0.0, 0.0]
    assert Coverage(csr_array((2, 0)))([True, True]) == 0.0
    assert Coverage([[], []]).is_supermodular


def test_pickle():
    function = Coverage([[0, 1], [1]], [1.0, 2.0])
    copy = pickle.loads(pickle.dumps(function))
    assert copy.gains([1, 0]).tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        copy.weights[0] = 1.0


def test_repr():
    assert repr(Coverage([[0, 4], [1]])) == "Coverage(n=2, items=5)"


@pytest.mark.parametrize(
    ("sets", "weights", "error", "sentence"),
    [
        ([[0, 1.5]], None, TypeError, r"sets\[0\] must hold integers, got dtype float64"),
        ([[0], [-1]], None, ValueError, r"sets\[1\] must lie between 0 and \d+, got -1"),
        ([[0], [2]], [1.0, 1.0], ValueError, r"sets\[1\] must lie between 0 and 1, got 2"),
        ([[[0]]], None, ValueError, r"sets\[0\] must be one-dimensional, got shape \(1, 1\)"),
        ("ab", None, TypeError, "sets must be a sequence of integer arrays"),
        (3, None, TypeError, "sets must be a sequence of integer arrays .*, got int"),
        ([[0]], [-1.0], ValueError, "weights must not be negative, got -1"),
        ([[0]], [np.inf], ValueError, "weights must be finite, got inf"),
        ([[0]], 1.0, ValueError, r"weights must have shape \(any\), got \(\)"),
        (csr_array((2, 3)), [1.0], ValueError, "weights must have one entry for each of the 3"),
    ],
)
def test_bad_input(sets, weights, error, sentence):
    with pytest.raises(error, match=sentence):
        Coverage(sets, weights)


@pytest.mark.parametrize(
    "broken",
    [{"order": [2]}, {"order": [-1]}, {"items": [7, 0]}, {"items": [-1, 0]}, {"indptr": [0, 9, 2]}],
    ids=str,
)
def test_the_kernel_refuses_indices_out_of_range(broken):
    rows = {"indptr": [0, 1, 2], "items": [1, 0], "order": [0, 1], **broken}
    arrays = {name: np.array(values, np.int64) for name, values in rows.items()}
    out = np.empty(len(arrays["order"]))
    with pytest.raises(ValueError, match="must"):
        _core.coverage_gains(arrays["indptr"], arrays["items"], np.ones(2), arrays["order"], out)
