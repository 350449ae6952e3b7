"""Stumps on missing values, categories and trends: the search against all of their answers."""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.tree import DecisionTreeClassifier

from setwise.learning import ClassifierSearch, PerceptronSearch, StumpSearch
from setwise.learning._weak_learners import _tables
from setwise.learning._weak_learners._category_stumps import CategoryStump
from setwise.learning._weak_learners._classifiers import WeakClassifier
from setwise.learning._weak_learners._stumps import Stump

NAN = np.nan


@st.composite
def tables(draw):
    """Rows (m, d) with ties, zeros and NaN, weights (k, m), which are categories, and trends."""
    m, d = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    k = draw(st.sampled_from([1, 2, 9]))
    values = st.sampled_from([NAN, NAN, -1.0, 0.0, 0.0, 0.5, 2.0])
    X = np.array(draw(st.lists(values, min_size=m * d, max_size=m * d))).reshape(m, d)
    quarters = st.lists(st.integers(-8, 8), min_size=k * m, max_size=k * m)
    weights = np.array(draw(quarters), float).reshape(k, m) / 4
    categorical = np.array(draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    trends = np.array(draw(st.lists(st.integers(-1, 1), min_size=d, max_size=d)))
    return X, weights, categorical, np.where(categorical, 0, trends)


def brute_gains(X, weights, categorical, trends):
    """The best of each feature and segment, (d, k)."""
    answers = [
        np.array(reference.stump_answers(x, categorical=is_word, trend=trend))
        for x, is_word, trend in zip(X.T, categorical, trends, strict=True)
    ]
    return np.array([(own @ weights.T).max(axis=0) for own in answers])


@pytest.mark.parametrize("few", [0, 10])
@given(table=tables())
def test_the_best_stump_is_the_best_of_all_sides_subsets_and_trends(few, table):
    X, weights, categorical, trends = table
    options = {"categorical_features": categorical, "monotonic_cst": trends}
    known = _tables.FEW_VALUES
    _tables.FEW_VALUES = few
    try:
        searches = [
            StumpSearch(X, **options),
            StumpSearch(csr_array(X), **options),
            StumpSearch(X, n_jobs=2, **options),
        ]
    finally:
        _tables.FEW_VALUES = known
    gains = brute_gains(X, weights, categorical, trends)
    feature, segment = np.unravel_index(gains.argmax(), gains.shape)
    for search in searches:
        assert search.exact
        (column,) = search(weights.ravel())
        learner = column.learner
        assert weights[column.segment] @ column.response == gains.max()
        assert (learner.feature, column.segment) == (feature, segment)
        assert set(column.response.tolist()) <= {1.0, -1.0}
        np.testing.assert_array_equal(column.response, learner.predict(X))
        np.testing.assert_array_equal(column.response, learner.predict(csr_array(X)))
        own = reference.stump_answers(
            X[:, feature], categorical=categorical[feature], trend=trends[feature]
        )
        assert any(np.array_equal(column.response, answers) for answers in own)


@given(tables())
def test_each_of_several_columns_is_the_best_of_its_feature_and_segment(table):
    X, weights, categorical, trends = table
    search = StumpSearch(X, 6, categorical_features=categorical, monotonic_cst=trends)
    gains = brute_gains(X, weights, categorical, trends)
    for again in (search, pickle.loads(pickle.dumps(search))):
        for column in again(weights):
            found = weights[column.segment] @ column.response
            assert found == gains[column.learner.feature, column.segment]


@pytest.mark.parametrize("values", [3, 300, 70_000, None])
def test_many_rows_with_missing_values_whatever_the_number_of_values(values):
    rng = np.random.default_rng(0)
    m, d, k = 20_000, 3, 11
    X = rng.normal(size=(m, d)) if values is None else rng.integers(0, values, (m, d)) * 1.0
    X[rng.random((m, d)) < 0.3] = NAN
    X[rng.random((m, d)) < 0.3] = 0.0
    weights = rng.integers(-100, 100, (k, m)) * 1.0
    one, two = (StumpSearch(X, n_columns=5, n_jobs=jobs)(weights) for jobs in (None, 2))
    sparse = StumpSearch(csr_array(X), n_columns=5)(weights)
    for a, b, c in zip(one, two, sparse, strict=True):
        assert a.learner == b.learner == c.learner
        assert a.segment == b.segment == c.segment
    x, own = X[:, one[0].learner.feature], weights[one[0].segment]
    present, apart = ~np.isnan(x), own[np.isnan(x)].sum()
    order = np.argsort(x[present])
    sums = own[present].sum() - 2 * np.cumsum(own[present][order])
    cuts = np.flatnonzero(np.diff(x[present][order]))
    assert own @ one[0].response == np.abs(sums[cuts]).max() + abs(apart)
    words = np.round(X[:, :1])
    if values != 70_000:
        (column,) = StumpSearch(words, categorical_features=[0])(weights)
        groups = [words[:, 0] == c for c in np.unique(words[~np.isnan(words)])]
        sums = np.array([weights @ group for group in [*groups, np.isnan(words[:, 0])]])
        assert weights[column.segment] @ column.response == np.abs(sums).sum(axis=0).max()


def test_what_a_stump_says_of_values_that_the_search_never_met():
    (column,) = StumpSearch(np.array([[0.0], [1.0]]))(np.array([-1.0, 1.0]))
    assert column.learner.predict([[2.0], [NAN]]).tolist() == [1.0, 0.0]
    (column,) = StumpSearch(np.array([[0.0], [1.0]]), categorical_features=[0])([-1.0, 1.0])
    assert column.learner == CategoryStump(0, (1.0,), (0.0,))
    assert column.learner.predict([[1.0], [2.0], [NAN]]).tolist() == [1.0, 0.0, 0.0]
    rows, weights = np.array([[0.0], [1.0], [NAN]]), np.array([-1.0, 1.0, -2.0])
    (column,) = StumpSearch(rows, categorical_features=[0])(weights)
    assert column.learner.predict([[1.0], [2.0], [NAN]]).tolist() == [1.0, -1.0, -1.0]
    (column,) = StumpSearch(rows)(weights)
    assert column.learner == Stump(0, 0.5, 1, missing=-1)
    # A constant is one, whatever it is asked.
    for categorical in ([], [0]):
        (column,) = StumpSearch(rows[:2], categorical_features=categorical)([1.0, 1.0])
        assert column.learner.predict([[7.0], [NAN]]).tolist() == [1.0, 1.0]
        assert column.learner.importances(1).tolist() == [0.0]
    # That a value is missing may be all that matters.
    (column,) = StumpSearch(rows)(np.array([1.0, 1.0, -1.0]))
    assert column.learner == Stump(0, -np.inf, 1, missing=-1)
    assert column.learner.importances(1).tolist() == [1.0]


def test_a_feature_without_a_single_value():
    rows = np.full((3, 1), NAN)
    for X in (rows, csr_array(rows)):
        for categorical in ([], [0]):
            (column,) = StumpSearch(X, categorical_features=categorical)([1.0, 1.0, -5.0])
            assert column.response.tolist() == [-1.0, -1.0, -1.0]


def test_ties_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    x = np.repeat([0.0, 1.0, 2.0, NAN], 12)
    weights = rng.random(48) - 0.5
    weights[36:] -= weights[36:].mean()  # the missing ones add up to nothing, but for rounding
    weights[12:24] -= weights[12:24].mean()
    for categorical in ([], [0]):
        found = set()
        for _ in range(20):
            order = rng.permutation(48)
            search = StumpSearch(x[order][:, None], categorical_features=categorical)
            found.add(search(weights[order])[0].learner)
        assert len(found) == 1


def test_other_searches_take_missing_values_if_their_learners_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    X[::3, 0] = NAN
    weights = np.where(np.isnan(X[:, 0]), 1.0, -1.0)
    (column,) = ClassifierSearch(X, DecisionTreeClassifier(max_depth=1, random_state=0))(weights)
    assert column.response.tolist() == weights.tolist()
    assert isinstance(column.learner, WeakClassifier)
    assert column.learner.predict(X).tolist() == weights.tolist()
    with pytest.raises(ValueError, match="X must be finite, got nan"):
        PerceptronSearch(X)


X = np.eye(3)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: StumpSearch(X, categorical_features=[3]),
            ValueError,
            "categorical_features must hold indices between 0 and 2, got 3",
        ),
        (
            lambda: StumpSearch(X, categorical_features=[True]),
            ValueError,
            "categorical_features must have a bool for each of 3 features, got 1",
        ),
        (
            lambda: StumpSearch(X, categorical_features=[0.5]),
            TypeError,
            "categorical_features must hold bools, or indices",
        ),
        (
            lambda: StumpSearch(X, categorical_features=1),
            ValueError,
            r"categorical_features must be a mask or a list of features, \(n,\), got shape \(\)",
        ),
        (
            lambda: StumpSearch(np.arange(70_000.0)[:, None], categorical_features=[0]),
            ValueError,
            "feature 0 of X must have at most 65536 categories, got 70000",
        ),
        (
            lambda: StumpSearch(X, monotonic_cst=[0, 0]),
            ValueError,
            r"monotonic_cst must have one entry for each of 3 features, got shape \(2,\)",
        ),
        (
            lambda: StumpSearch(X, monotonic_cst=[0, 2, 0]),
            ValueError,
            "monotonic_cst must hold 1, 0 and -1, got 2",
        ),
        (
            lambda: StumpSearch(X, monotonic_cst="up"),
            TypeError,
            "monotonic_cst must hold 1, 0 and -1, got dtype <U2",
        ),
        (
            lambda: StumpSearch(X, categorical_features=[1], monotonic_cst=[0, -1, 0]),
            ValueError,
            "monotonic_cst must be 0 for categories, which have no order, got -1 for feature 1",
        ),
        (lambda: Stump(0, 0.0, 1, missing=2), ValueError, "missing must be at most 1, got 2"),
        (
            lambda: CategoryStump(0, (1.0,), (1.0, 2.0)),
            ValueError,
            "positive and negative must not share a category, got 1.0",
        ),
        (
            lambda: CategoryStump(2, (1.0,), ()).predict([[1.0]]),
            ValueError,
            "X must have more than 2 columns",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
