"""Stumps: the search is exact, dense or sparse, for few values and many, ties and constants."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_matrix, csr_array
from strategies import arrays

from setwise import _core
from setwise.learning import StumpSearch
from setwise.learning._weak_learners import _tables
from setwise.learning._weak_learners._one_feature import midway
from setwise.learning._weak_learners._stumps import Stump


@st.composite
def problems(draw):
    """Rows (m, d) with ties and zeros, weights (k, m)."""
    m, d = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    k = draw(st.sampled_from([1, 1, 2, 3, 9, 17]))
    X = draw(arrays(m * d, -1.0, 1.0)).reshape(m, d)
    if draw(st.booleans()):
        X = np.round(X)
    # Whole quarters add up without rounding, so that ties are ties.
    quarters = st.lists(st.integers(-8, 8), min_size=k * m, max_size=k * m)
    return X, np.array(draw(quarters), float).reshape(k, m) / 4


def brute_best(X, weights):
    """The largest gain, and the first (feature, segment, threshold) that has it."""
    best = (-np.inf, None)
    stumps = reference.all_stumps(X)
    for feature in range(X.shape[1]):
        for segment, own in enumerate(weights):
            for stump in (s for s in stumps if s[0] == feature):
                gain = reference.stump_gain(X, own, stump)
                if gain > best[0]:
                    best = (gain, (segment, stump))
    return best


@pytest.mark.parametrize("few", [0, 10])
@given(problem=problems())
def test_the_best_stump_is_that_of_enumeration(few, problem):
    X, weights = problem
    known = _tables.FEW_VALUES
    _tables.FEW_VALUES = few
    try:
        searches = [StumpSearch(X), StumpSearch(csr_array(X)), StumpSearch(X, n_jobs=2)]
    finally:
        _tables.FEW_VALUES = known
    gain, (segment, stump) = brute_best(X, weights)
    for search in searches:
        assert search.exact
        (column,) = search(weights.ravel())
        found = column.learner
        assert weights[column.segment] @ column.response == gain
        assert (column.segment, found.feature, found.threshold) == (segment, *stump[:2])
        assert gain == 0 or found.sign == stump[2]
        np.testing.assert_array_equal(column.response, found.predict(X))
        np.testing.assert_array_equal(column.response, found.predict(csr_array(X)))


@given(problems(), st.integers(1, 12))
def test_several_columns_are_the_best_of_each_pair_of_feature_and_segment(problem, n_columns):
    X, weights = problem
    columns = StumpSearch(X, n_columns=n_columns)(weights.ravel())
    gains = [weights[c.segment] @ c.response for c in columns]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == brute_best(X, weights)[0]
    pairs = [(c.learner.feature, c.segment) for c in columns]
    assert len(set(pairs)) == len(pairs)
    quota = -(-n_columns // len(weights))
    assert len(pairs) == min(n_columns, len(weights) * min(quota, X.shape[1]))
    stumps = reference.all_stumps(X)
    for (feature, segment), gain in zip(pairs, gains, strict=True):
        own = [s for s in stumps if s[0] == feature]
        assert gain == max(reference.stump_gain(X, weights[segment], s) for s in own)


@pytest.mark.parametrize("values", [3, 300, 70_000, None])
def test_many_rows_whatever_the_number_of_values_threads_and_layout(values):
    rng = np.random.default_rng(0)
    m, d, k = 20_000, 3, 11
    X = rng.normal(size=(m, d)) if values is None else rng.integers(0, values, (m, d)) * 1.0
    X[rng.random((m, d)) < 0.3] = 0.0
    weights = rng.integers(-100, 100, (k, m)) * 1.0
    one, two = (StumpSearch(X, n_columns=5, n_jobs=jobs)(weights.ravel()) for jobs in (None, 2))
    sparse = StumpSearch(csc_matrix(X), n_columns=5)(weights.ravel())
    for a, b, c in zip(one, two, sparse, strict=True):
        assert a.learner == b.learner == c.learner
        assert a.segment == b.segment == c.segment
    best = one[0]
    order = np.argsort(X[:, best.learner.feature])
    sums = weights[best.segment].sum() - 2 * np.cumsum(weights[best.segment][order])
    cuts = np.flatnonzero(np.diff(X[order, best.learner.feature]))
    assert weights[best.segment] @ best.response == np.abs(sums[cuts]).max()


def test_what_is_equal_but_for_rounding_ties():
    """Three copies of a feature, and weights whose sums round differently in another order."""
    rng = np.random.default_rng(0)
    x, weights = np.arange(50.0), rng.random(50) - 0.5
    for _ in range(20):
        order = rng.permutation(50)
        X = np.column_stack([x, -x, 3 * x])[order]
        for rows in (X, csr_array(X)):
            for repeat in (1, 3):
                copies = csr_array(rows) if repeat == 1 else csr_array(np.repeat(X, 3, axis=0))
                shares = np.repeat(weights[order] / repeat, repeat)
                first = StumpSearch(copies)(shares)[0].learner
                assert first.feature == 0
                assert first == StumpSearch(X[np.argsort(X[:, 0])])(weights)[0].learner


def test_a_constant_feature_and_weights_of_one_sign_give_a_constant():
    X = np.array([[5.0], [5.0], [5.0]])
    for rows in (X, csr_array(X)):
        (column,) = StumpSearch(rows)(np.array([1.0, 1.0, -5.0]))
        assert column.learner == Stump(0, -np.inf, -1)
        assert column.response.tolist() == [-1.0, -1.0, -1.0]
    assert Stump(0, -np.inf, 1).importances(2).tolist() == [0.0, 0.0]
    assert Stump(1, 0.0, 1).importances(2).tolist() == [0.0, 1.0]


def test_stored_zeros_and_repeated_entries_of_a_sparse_matrix_count_as_what_they_are():
    entries = ([0.0, 1.0, 1.0, -1.0], ([0, 1, 1, 2], [0, 0, 0, 0]))
    X = coo_array(entries, shape=(4, 1))
    (column,) = StumpSearch(X)(np.array([1.0, -2.0, 1.0, 1.0]))
    assert column.learner == Stump(0, 1.0, -1)
    assert X.nnz == 4, "the caller's matrix is left alone"


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 1.0), (-1e308, 1.5e308), (1.0, np.nextafter(1.0, 2.0)), (0.0, 5e-324), (5e-324, 1e-323)],
)
def test_a_threshold_lies_between_its_neighbours(low, high):
    assert low <= midway(low, high) < high
    (column,) = StumpSearch(np.array([[low], [high]]))(np.array([-1.0, 1.0]))
    assert column.response.tolist() == [-1.0, 1.0]


X = np.eye(3)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: StumpSearch([[-np.inf]]), ValueError, "X must be finite or NaN, got -inf"),
        (lambda: StumpSearch(csr_array([[np.inf]])), ValueError, "X must be finite or NaN"),
        (
            lambda: StumpSearch([1.0]),
            ValueError,
            r"X must have shape \(m, d\), both at lea",
        ),
        (
            lambda: StumpSearch(np.zeros((0, 2))),
            ValueError,
            r"X must have shape \(m, d\), both at le",
        ),
        (lambda: StumpSearch([["a"]]), TypeError, "X must hold real numbers, got dtype <U1"),
        (
            lambda: StumpSearch(csr_array([[1j]])),
            TypeError,
            "X must hold real numbers, got dtype comp",
        ),
        (lambda: StumpSearch(X, n_columns=0), ValueError, "n_columns must be at least 1, got 0"),
        (lambda: StumpSearch(X, n_jobs="a"), TypeError, "n_jobs must be an integer or None"),
        (
            lambda: StumpSearch(X)(np.ones(4)),
            ValueError,
            "weights must have a multiple of 3 entries",
        ),
        (
            lambda: StumpSearch(X)(np.ones((3, 2))),
            ValueError,
            r"weights must have .* shape \(3, 2\)",
        ),
        (lambda: StumpSearch(X)([1.0, np.nan, 0.0]), ValueError, "weights must be finite, got nan"),
        (
            lambda: StumpSearch(X)(np.ones(0)),
            ValueError,
            "weights must have a multiple of 3 entries",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_the_kernel_refuses_what_does_not_fit():
    search = _core.StumpSearch(2)
    none, rows = np.empty(0, np.uint32), np.array([0, 2], np.uint32)
    zero = np.zeros(2, np.uint8)
    numbers, words = _core.StumpSearch(2), _core.StumpSearch(2)
    numbers.add_codes(zero, np.zeros(1, np.int32), 0)
    words.add_categories(zero, 3)
    for call, sentence in [
        (lambda: search.add_rows(rows, none, none, 0), "rows must lie below"),
        (lambda: search.add_rows(none, rows, none, 0), "rows must lie below"),
        (lambda: search.add_rows(none, none, rows, 0), "rows must lie below"),
        (lambda: search.add_rows(none, none, none, 2), "trend must be -1, 0 or 1"),
        (lambda: search.add_codes(zero[:1], np.zeros(1, np.int32), 0), "one entry a row"),
        (lambda: search.add_codes(zero + 2, np.zeros(1, np.int32), 0), "codes must not lie above"),
        (lambda: search.add_codes(zero, np.full(1, 2, np.int32), 0), "be rows"),
        (lambda: search.add_categories(zero, 0), "codes must lie below"),
        (lambda: search.add_categories(zero, -1), "categories must not be neg"),
        (lambda: words.locate(np.ones(2), 0, 0.0), "feature must hold numbers"),
        (lambda: words.sums(np.ones(2), 0, np.ones(2)), "one entry a category"),
        (lambda: numbers.sums(np.ones(2), 0, np.ones(1)), "one entry a category"),
        (lambda: search.gains(np.ones((1, 3)), np.ones((0, 1)), 1), "a column for each row"),
        (lambda: search.gains(np.ones((1, 2)), np.ones((1, 1)), 1), "gains must have shape"),
        (lambda: search.gains(np.ones((1, 2)), np.ones((0, 1)), 0), "n_threads must be at least"),
        (lambda: search.locate(np.ones(3), 0, 0.0), "one entry a row"),
        (lambda: search.locate(np.ones(2), 0, 0.0), "feature must be one of them"),
        (lambda: _core.StumpSearch(-1), "rows must lie below"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()
