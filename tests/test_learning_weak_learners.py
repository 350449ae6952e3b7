"""Perceptrons and scikit-learn classifiers as weak learners."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from strategies import arrays

from setwise.learning import ClassifierSearch, PerceptronSearch, StumpSearch
from setwise.learning._weak_learners._stumps import Stump


@st.composite
def problems(draw):
    m, d, k = draw(st.integers(1, 8)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    X = draw(arrays(m * d, -1.0, 1.0)).reshape(m, d)
    return X, draw(arrays(k * m)).reshape(k, m)


TREE = DecisionTreeClassifier(max_depth=2)
SEARCHES = [
    PerceptronSearch,
    lambda X, n_columns=1: ClassifierSearch(X, TREE, n_columns, rng=0),
    lambda X, n_columns=1: ClassifierSearch(X, TREE, n_columns, drop=0.5, rng=0),
]


def gain(weights, column):
    return weights[column.segment] @ column.response


@given(problems(), st.sampled_from(SEARCHES), st.integers(1, 3), st.booleans())
def test_columns_come_best_first_and_predict_their_responses(problem, make, n, sparse):
    X, weights = problem
    rows = csr_array(X) if sparse else X
    search = make(rows, n)
    assert not search.exact
    columns = search(weights.ravel())
    assert len(columns) == min(n, len(weights))
    gains = [gain(weights, column) for column in columns]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] >= 0
    assert len({column.segment for column in columns}) == len(columns)
    for column in columns:
        assert set(np.abs(column.response)) == {1.0}
        for given_rows in (X, rows):
            np.testing.assert_array_equal(column.learner.predict(given_rows), column.response)
        shares = column.learner.importances(X.shape[1])
        assert shares.shape == (X.shape[1],)
        assert shares.sum() == pytest.approx(1.0) or not shares.any()


@given(problems())
def test_a_perceptron_is_no_worse_than_the_best_stump(problem):
    X, weights = problem
    (stump,), (found,) = (
        StumpSearch(X)(weights.ravel()),
        PerceptronSearch(X, max_iter=20)(weights.ravel()),
    )
    assert gain(weights, found) >= gain(weights, stump) - 1e-12


@given(problems())
def test_segments_left_out_could_not_have_been_the_best(problem):
    X, weights = problem
    tree = ClassifierSearch(X, DecisionTreeClassifier(max_depth=2, random_state=0))
    alone = [gain([own], tree(own)[0]) for own in weights]
    assert gain(weights, tree(weights.ravel())[0]) == max(alone)


def diagonal(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)) * [1, 100, 1, 1, 0.01] + [0, 1000, 0, 0, 0]
    weights = np.sign(X @ [1, 0.01, -1, 0, 0] - 10) * rng.random(n)
    return X, weights


@pytest.mark.parametrize("sparse", [False, True])
def test_a_perceptron_follows_a_diagonal_whatever_the_scales(sparse):
    X, weights = diagonal()
    if sparse:
        X = X - [0, 1000, 0, 0, 0]
        X[np.abs(X) < 0.1] = 0.0
        weights = np.sign(X @ [1, 0.01, -1, 0, 0]) * np.abs(weights)
    (stump,) = StumpSearch(X)(weights)
    (found,) = PerceptronSearch(csr_array(X) if sparse else X)(weights)
    total = np.abs(weights).sum()
    assert weights @ stump.response < 0.7 * total
    assert weights @ found.response > 0.97 * total


@pytest.mark.parametrize("sparse", [False, True])
def test_a_perceptron_of_huge_features(sparse):
    X, weights = diagonal()
    X = X - [0, 1000, 0, 0, 0]
    usual, huge = (
        PerceptronSearch(csr_array(rows) if sparse else rows)(weights)[0] for rows in (X, X * 1e300)
    )
    assert weights @ huge.response == pytest.approx(weights @ usual.response, rel=0.02)
    assert np.isfinite(huge.learner.coef).all()


@pytest.mark.parametrize("model", [LogisticRegression(), GaussianNB(), LinearSVC(C=1e4)])
def test_any_classifier_with_weights_serves(model):
    X, weights = diagonal()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    (column,) = ClassifierSearch(X, model)(weights)
    assert weights @ column.response > 0.8 * np.abs(weights).sum()
    learner = pickle.loads(pickle.dumps(column.learner))
    np.testing.assert_array_equal(learner.predict(X), column.response)


class Contrary(DecisionTreeClassifier):
    def predict(self, X):
        return -super().predict(X)


@given(problems(), st.sampled_from([2.0**-20, 2.0**20]))
@settings(max_examples=settings.default.max_examples // 4)
def test_the_unit_of_a_feature_does_not_matter(problem, unit):
    X, weights = problem
    scaled = X.copy()
    scaled[:, 0] *= unit
    # scikit-learn's trees take features within 1e-7 of each other for equal.
    trees = [SEARCHES[1]] if unit > 1.0 else []
    for make in (PerceptronSearch, StumpSearch, *trees):
        plain, other = make(X)(weights)[0], make(scaled)(weights)[0]
        assert gain(weights, other) == pytest.approx(gain(weights, plain), abs=1e-9)


def test_a_classifier_worse_than_chance_is_turned_round():
    X, weights = diagonal()
    (column,) = ClassifierSearch(X, Contrary(max_depth=3, random_state=0))(weights)
    assert column.learner.sign == -1
    assert weights @ column.response > 0
    np.testing.assert_array_equal(column.learner.predict(X), column.response)


def test_weights_of_one_sign_need_no_classifier():
    X = np.arange(4.0)[:, None]
    for make in SEARCHES:
        search = make(X)
        (column,) = search(np.array([-1.0, -1.0, 0.0, -1.0]))
        assert column.learner == Stump(0, -np.inf, -1)
        (column,) = search(np.zeros(4))
        assert column.response.tolist() == [1.0] * 4


def test_the_smallest_weights_are_dropped():
    """Without the light row the rest is separable by one split."""
    X, weights = np.arange(10.0)[:, None], np.array([-1.0] * 5 + [1.0] * 5)
    weights[7] = -0.1
    deep = DecisionTreeClassifier(random_state=0)
    assert ClassifierSearch(X, deep)(weights)[0].response[7] == -1
    assert ClassifierSearch(X, deep, drop=0.1)(weights)[0].response[7] == 1


def test_randomness_is_an_argument():
    X, weights = diagonal()
    tree = DecisionTreeClassifier(splitter="random", max_depth=2)
    one, two, three = (
        ClassifierSearch(X, tree, rng=seed)(weights)[0].response for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert np.any(one != three)


X = np.eye(3)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: ClassifierSearch(X, "tree"), TypeError, "estimator must be a scikit-learn class"),
        (
            lambda: ClassifierSearch(X, GaussianNB(), drop=1.0),
            ValueError,
            "drop must be below 1, got 1.0",
        ),
        (lambda: ClassifierSearch(X, GaussianNB(), drop=-0.1), ValueError, "drop must not be nega"),
        (lambda: ClassifierSearch(X, GaussianNB(), 0), ValueError, "n_columns must be at least 1"),
        (lambda: ClassifierSearch([[np.nan]], GaussianNB()), ValueError, "X must be finite, got n"),
        (lambda: PerceptronSearch([[np.nan]]), ValueError, "X must be finite, got nan"),
        (
            lambda: PerceptronSearch(X, max_iter=-1),
            ValueError,
            "max_iter must be at least 0, got -1",
        ),
        (lambda: PerceptronSearch(X)(np.ones(2)), ValueError, "weights must have a multiple of 3"),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
