"""Tables with missing values, words and trends, in the boosted estimators."""

import pickle

import numpy as np
import pytest
import reference
from boost_options import boost_options
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import get_tags

import setwise as sw
from setwise.estimators._boosting._distinct_rows import distinct_rows
from setwise.learning._weak_learners._category_stumps import CategoryStump
from setwise.learning._weak_learners._stumps import Stump

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
NAN = np.nan
TOWNS = np.array(["Bonn", "Lima", "Oslo", "Rome"])


def towns(n=60):
    """Codes of towns (some missing) and a number (some missing), and a label that follows both."""
    rng = np.random.default_rng(0)
    town, x = rng.integers(0, 4, n).astype(float), rng.normal(size=n).round(1)
    y = (np.isin(town, [1, 3]) ^ (x > 0.5)).astype(int)
    town[::9], x[::7] = NAN, NAN
    return np.column_stack([town, x]), y


def words(codes):
    return [None if np.isnan(code) else str(TOWNS[int(code)]) for code in codes]


X, Y = towns()
WORDS = words(X[:, 0])
FRAME = pd.DataFrame({"town": WORDS, "x": X[:, 1]})
TABLES = {
    "category": (FRAME.assign(town=FRAME["town"].astype("category")), "from_dtype"),
    "names": (FRAME, ["town"]),
    "objects": (FRAME.assign(town=FRAME["town"].astype(object)), [0]),
    "numbers": (FRAME.assign(town=pd.Categorical(X[:, 0])), "from_dtype"),
    "array": (np.array([[w, x] for w, x in zip(WORDS, X[:, 1], strict=True)], object), [0]),
    "list": ([[w, x] for w, x in zip(WORDS, X[:, 1], strict=True)], [True, False]),
    "sparse": (csr_array(X), [True, False]),
    "polars": (
        pl.DataFrame({"town": WORDS, "x": X[:, 1]}).with_columns(
            pl.col("town").cast(pl.Categorical)
        ),
        "from_dtype",
    ),
    "polars words": (pl.DataFrame({"town": WORDS, "x": X[:, 1]}), ["town"]),
}


@pytest.mark.parametrize("estimator", [sw.StructBoostClassifier, sw.StructBoostRanker])
@pytest.mark.parametrize("name", TABLES)
def test_every_kind_of_table_gives_the_fit_of_numbers(estimator, name):
    table, categorical = TABLES[name]
    plain = estimator(C=10.0, **boost_options(categorical_features=[0])).fit(X, Y)
    model = estimator(C=10.0, **boost_options(categorical_features=categorical)).fit(table, Y)
    assert model.estimators_ == plain.estimators_
    assert any(isinstance(learner, CategoryStump) for learner in model.estimators_)
    scores = plain.decision_function(X)
    for again in (model, pickle.loads(pickle.dumps(model)), clone(model).fit(table, Y)):
        np.testing.assert_array_equal(again.decision_function(table), scores)
        np.testing.assert_array_equal(list(again.staged_decision_function(table))[-1], scores)
    assert model.certified_
    assert model.gap_ <= 1e-3
    if name not in ("numbers", "sparse"):
        assert model.categories_[0].tolist() == TOWNS.tolist()
        assert model.categories_[1] is None


def test_the_fit_is_the_minimum_over_all_sides_and_subsets():
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, 4, 12), rng.integers(0, 5, 12)]).astype(float)
    rows[[2, 5, 11], [0, 1, 1]] = NAN
    for k in (2, 3):
        y = rng.permutation(np.arange(12) % k)
        model = sw.StructBoostClassifier(
            C=20.0, tol=1e-6, options=sw.learning.BoostOptions(categorical_features=[0])
        ).fit(rows, y)
        answers = np.array(
            reference.stump_answers(rows[:, 0], categorical=True)
            + reference.stump_answers(rows[:, 1])
        )
        code, width = model.code_, model.code_.shape[1]
        columns = np.zeros((len(answers), width, width, 12))
        for segment in range(width):
            columns[:, segment, segment] = answers
        planes = reference.class_planes(y, model.cost_, code)
        best = reference.boosted_minimum(planes, columns.reshape(-1, width * 12), 20.0)
        assert model.history_.primal.min() == pytest.approx(best, rel=1e-5)
        assert model.history_.dual.max() <= best * (1 + 1e-9)


def test_what_was_not_met_in_the_fit_adds_nothing():
    whole = ~np.isnan(X).any(axis=1)
    model = sw.StructBoostClassifier(
        C=10.0, options=sw.learning.BoostOptions(categorical_features=[0])
    ).fit(X[whole], Y[whole])
    constant = sum(
        weight * learner.sign
        for learner, weight in zip(model.estimators_, model.estimator_weights_, strict=True)
        if isinstance(learner, Stump) and learner.threshold == -np.inf
    )
    scores = model.decision_function([[NAN, NAN], [17.0, NAN]])
    np.testing.assert_allclose(scores, [constant, constant], atol=1e-12)
    # Where some were missing, an unknown category is one more of them.
    frame, _ = TABLES["category"]
    model = sw.StructBoostClassifier(C=10.0).fit(frame, Y)
    new = pd.DataFrame({"town": ["Paris", None], "x": [0.2, 0.2]})
    scores = model.decision_function(new)
    assert scores[0] == scores[1]


def test_missing_values_of_equal_rows_are_equal():
    rows = np.array([[NAN, 1.0], [2.0, NAN], [NAN, 1.0], [2.0, 3.0], [2.0, NAN]])
    y, weight = np.array([0, 1, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    for table in (rows, csr_array(rows)):
        some, labels, sums = distinct_rows(table, y, weight)
        assert some.shape == (3, 2)
        assert sorted(zip(labels.tolist(), sums.tolist(), strict=True)) == [(0, 4), (1, 4), (1, 7)]
    once = sw.StructBoostClassifier(C=10.0).fit(X, Y, sample_weight=np.full(len(Y), 2.0))
    order = np.random.default_rng(0).permutation(2 * len(Y)) % len(Y)
    twice = sw.StructBoostClassifier(C=10.0).fit(X[order], Y[order])
    assert once.estimators_ == twice.estimators_


@pytest.mark.parametrize("estimator", [sw.StructBoostClassifier, sw.StructBoostRanker])
def test_trends_hold_for_every_value(estimator):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 2))
    y = (np.sin(3 * rows[:, 0]) + rows[:, 1] > 0).astype(int)
    frame = pd.DataFrame(rows, columns=["a", "b"])
    grid = np.column_stack([np.linspace(-3, 3, 200), np.zeros(200)])
    for trend in (1, -1):
        model = estimator(C=30.0, tol=0.05, **boost_options(monotonic_cst=[trend, 0])).fit(rows, y)
        assert (np.diff(model.decision_function(grid)) * trend >= 0).all()
        named = estimator(C=30.0, tol=0.05, **boost_options(monotonic_cst={"a": trend})).fit(
            frame, y
        )
        assert named.estimators_ == model.estimators_
    free = estimator(C=30.0, tol=0.05).fit(rows, y)
    assert (np.diff(free.decision_function(grid)) < 0).any()


def test_missing_values_are_taken_where_the_weak_learners_take_them():
    whole = np.isfinite(X)
    assert not whole.all()
    for estimator in ("stump", "tree", HistGradientBoostingClassifier(max_iter=2)):
        model = sw.StructBoostClassifier(estimator, C=10.0, n_estimators=3, tol=0.9)
        assert get_tags(model).input_tags.allow_nan
        assert np.isfinite(model.fit(X, Y).decision_function(X)).all()
    for estimator in ("perceptron", "linear"):
        model = sw.StructBoostClassifier(estimator, C=10.0)
        assert not get_tags(model).input_tags.allow_nan
        with pytest.raises(ValueError, match="Input X contains NaN"):
            model.fit(X, Y)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        sw.StructBoostClassifier().fit(np.where(whole, X, np.inf), Y)


def test_a_field_with_missing_node_features():
    chain = np.array([[0, 1], [1, 2], [2, 3]])
    ones = np.ones((3, 1))
    graphs = [
        (np.array([[1.0], [2.0], [NAN], [1.0]]), chain, ones),
        (np.array([[-1.0], [-2.0], [-1.5], [-1.0]]), chain, ones),
    ]
    labels = [[1, 1, 1, 1], [0, 0, 0, 0]]
    model = sw.FieldBoost(C=10.0).fit(graphs, labels)
    assert [found.tolist() for found in model.predict(graphs)] == labels
    assert model.certified_
    assert get_tags(model).input_tags.allow_nan
    assert not get_tags(sw.FieldBoost("feature")).input_tags.allow_nan
    whole = [(np.nan_to_num(nodes), edges, pairs) for nodes, edges, pairs in graphs]
    for refusing in (sw.FieldSVM(C=10.0), sw.FieldBoost("perceptron", C=10.0)):
        with pytest.raises(ValueError, match=r"node_features of X\[0\] must be finite, got nan"):
            refusing.fit(graphs, labels)
        with pytest.raises(ValueError, match=r"node_features of X\[1\] must be finite, got nan"):
            refusing.fit(whole, labels).predict(graphs[::-1])


THREE = np.arange(len(Y)) % 3


@pytest.mark.parametrize(
    ("options", "table", "y", "error", "sentence"),
    [
        ({"categorical_features": "all"}, X, Y, ValueError, "categorical_features must be 'from"),
        ({"categorical_features": ["town"]}, X, Y, ValueError, "X has no names of features, got"),
        (
            {"categorical_features": ["city"]},
            FRAME,
            Y,
            ValueError,
            "categorical_features must hold names of features, got 'city'",
        ),
        ({"categorical_features": [2]}, X, Y, ValueError, "indices between 0 and 1, got 2"),
        ({"categorical_features": [None]}, X, Y, TypeError, "must hold bools, indices or names"),
        (
            {"categorical_features": [0], "estimator": "tree"},
            X,
            Y,
            ValueError,
            "categorical_features must be None unless estimator is 'stump'",
        ),
        (
            {"categorical_features": [0], "label_form": "augmented"},
            X,
            Y,
            ValueError,
            "categorical_features must be None for label_form='augmented'",
        ),
        (
            {"categorical_features": [0]},
            np.array([["a", 1.0], [2.0, 1.0]], object),
            [0, 1],
            TypeError,
            "feature 0 of X must hold categories of one kind, words or numbers, got float 2.0",
        ),
        (
            {"monotonic_cst": [1, 0]},
            X,
            THREE,
            ValueError,
            "monotonic constraints are not supported for multiclass classification",
        ),
        (
            {"monotonic_cst": [1, 0], "label_form": "augmented"},
            X,
            Y,
            ValueError,
            "monotonic_cst must be None for more than one score",
        ),
        (
            {"monotonic_cst": [1, 0], "estimator": "tree"},
            X,
            Y,
            ValueError,
            "monotonic_cst must be None unless estimator is 'stump'",
        ),
        ({"monotonic_cst": {"z": 1}}, X, Y, ValueError, "names of features as keys, got 'z'"),
        ({"monotonic_cst": [1]}, X, Y, ValueError, "one entry for each of 2 features"),
        (
            {"monotonic_cst": [1, 0], "categorical_features": [0]},
            X,
            Y,
            ValueError,
            "monotonic_cst must be 0 for categories",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(options, table, y, error, sentence):
    with pytest.raises(error, match=sentence):
        sw.StructBoostClassifier(**boost_options(**options)).fit(table, y)


def test_a_fit_to_words_takes_no_numbers_for_them():
    model = sw.StructBoostClassifier(
        C=10.0, options=sw.learning.BoostOptions(categorical_features=["town"])
    ).fit(FRAME, Y)
    with pytest.raises(TypeError, match="feature 0 of X must hold categories of one kind"):
        model.predict(FRAME.assign(town=1.0))
    with pytest.raises(TypeError, match="feature 0 of X must hold words, as in fit"):
        model.predict(csr_array(X))
