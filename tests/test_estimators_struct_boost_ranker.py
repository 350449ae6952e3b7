"""StructBoostRanker: the problem it says it solves, solved; and a good citizen of scikit-learn."""

import pickle
from itertools import combinations_with_replacement

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from mistaken_checks import MISTAKEN
from scipy.optimize import linprog
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import estimator_checks_generator
from strategies import arrays

from setwise import StructBoostRanker
from setwise.estimators._boosting._boosted import SEARCHES
from setwise.estimators._boosting._rank_risk import cut_points
from setwise.learning import BoostOptions

random = np.random.default_rng(0)
X = random.normal(size=(60, 4))
Y = (X @ [1.0, -1.0, 0.5, 0.0] + random.normal(size=60) > 0.8).astype(int)
LEVELS = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * random.normal(size=60), [-1.0, 0.5, 1.5])

# So few weak learners by design.
few = pytest.mark.filterwarnings("ignore:.* stopped at n_estimators")


def least_objective(X, y, C, weights=None):
    """The linear program over all stumps and all pairs."""
    weights = np.ones(len(y)) if weights is None else weights
    stumps = reference.all_stumps(X)
    responses = np.array([[s if x > t else -s for x in X[:, f]] for f, t, s in stumps], float)
    pairs = [(i, j) for i, j in reference.ranked_pairs(y) if weights[i] * weights[j] > 0]
    share = np.array([weights[i] * weights[j] for i, j in pairs])
    differences = np.array([responses[:, i] - responses[:, j] for i, j in pairs])
    costs = np.concatenate([np.ones(len(stumps)), C * share / share.sum()])
    upper = -np.hstack([differences, np.eye(len(pairs))])
    return linprog(costs, upper, -np.ones(len(pairs))).fun


@pytest.mark.parametrize("C", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("slack", ["one", "example"])
@pytest.mark.parametrize("y", [Y, LEVELS], ids=["two", "levels"])
def test_the_objective_is_that_of_the_whole_linear_program(C, slack, y):
    rows, y = np.round(X[:20, :2], 1), y[:20]
    model = StructBoostRanker(C=C, tol=1e-7, ordinal=True, options=BoostOptions(slack=slack)).fit(
        rows, y
    )
    least = least_objective(rows, y, C)
    assert model.history_.primal[-1] == pytest.approx(least, rel=1e-6)
    assert model.certified_
    assert model.gap_ <= 1e-7


def test_the_objective_is_that_of_the_scores():
    model = StructBoostRanker(C=20.0).fit(X, Y)
    f = model.decision_function(X)
    risk = np.mean([max(0.0, 1 - (f[i] - f[j])) for i, j in reference.ranked_pairs(Y)])
    assert model.estimator_weights_.sum() + 20.0 * risk == pytest.approx(model.history_.primal[-1])
    assert np.all(model.estimator_weights_ >= 0)


def test_score_is_the_area_under_the_curve():
    model = StructBoostRanker(C=20.0).fit(X, Y)
    auc = roc_auc_score(Y, model.decision_function(X))
    assert model.score(X, Y) == pytest.approx(auc)
    weights = random.integers(0, 3, 60)
    auc = roc_auc_score(Y, model.decision_function(X), sample_weight=weights)
    assert model.score(X, Y, sample_weight=weights) == pytest.approx(auc)
    assert model.score(X, Y) > 0.9


def test_a_weight_of_two_is_a_repeated_row_and_none_a_removed_one():
    weights = random.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weights)
    weighted = StructBoostRanker(C=5.0, tol=1e-8).fit(X, Y, sample_weight=weights)
    repeated = StructBoostRanker(C=5.0, tol=1e-8).fit(X[rows], Y[rows])
    assert weighted.history_.primal[-1] == pytest.approx(repeated.history_.primal[-1], rel=1e-6)


def test_groups_are_compared_within():
    """A shift of a group's scores is free, so labels that differ between groups alone are noise."""
    groups = np.repeat([0, 1], 30)
    y = LEVELS.copy()
    y[30:] += 10
    apart = StructBoostRanker(C=10.0, ordinal=True).fit(X, y, groups=groups)
    same = StructBoostRanker(C=10.0, ordinal=True).fit(X, LEVELS, groups=groups)
    np.testing.assert_array_equal(apart.estimator_weights_, same.estimator_weights_)
    assert apart.score(X, y, groups=groups) == same.score(X, LEVELS, groups=groups)


def test_stages_lead_to_the_final_scores():
    model = StructBoostRanker(C=20.0).fit(X, Y)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == model.stages_.shape[0]
    np.testing.assert_allclose(stages[-1], model.decision_function(X))


def test_feature_importances_name_the_features_that_matter():
    model = StructBoostRanker(C=5.0).fit(X, Y)
    shares = model.feature_importances_
    assert shares.sum() == pytest.approx(1.0)
    assert shares[3] <= shares.min() + 1e-9  # another feature may have the same share


def test_levels_are_predicted_by_cut_points():
    model = StructBoostRanker(C=50.0, ordinal=True).fit(X, LEVELS)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert np.mean(model.predict(X) == LEVELS) > 0.8
    assert np.all(np.diff(model.cut_points_) >= 0)
    assert model.score(X, LEVELS) > 0.95
    order = np.argsort(model.decision_function(X))
    assert np.all(np.diff(model.predict(X)[order]) >= 0)


@few
@pytest.mark.parametrize("estimator", [*SEARCHES, GaussianNB()])
def test_every_kind_of_weak_learner(estimator):
    model = StructBoostRanker(estimator, C=20.0, n_estimators=10, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.8
    assert model.certified_ == (estimator == "stump")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert model.feature_importances_.shape == (4,)


def test_sparse_rows_and_threads_change_nothing():
    rows = np.where(np.abs(X) < 0.5, 0.0, X)
    # Sums over sparse features are rounded otherwise, so what ties may be broken otherwise.
    dense, sparse = (StructBoostRanker(C=20.0, tol=1e-6).fit(R, Y) for R in (rows, csr_array(rows)))
    assert sparse.history_.primal[-1] == pytest.approx(dense.history_.primal[-1], rel=2e-6)
    np.testing.assert_array_equal(
        sparse.decision_function(rows), sparse.decision_function(csr_array(rows))
    )
    two = StructBoostRanker(C=20.0, tol=1e-6, n_jobs=2).fit(rows, Y)
    np.testing.assert_array_equal(two.estimator_weights_, dense.estimator_weights_)


def test_it_is_a_classifier_to_scikit_learn():
    model = StructBoostRanker(C=5.0, n_estimators=20)
    assert is_classifier(clone(model))
    labels = np.array(["ham", "spam"])[Y]
    scores = cross_val_score(model, X, labels, scoring="roc_auc", cv=3)
    np.testing.assert_allclose(scores, cross_val_score(model, X, labels, cv=3))
    grid = GridSearchCV(model, {"C": [2.0, 5.0]}, scoring="roc_auc", cv=3).fit(X, labels)
    assert set(grid.predict(X)) == {"ham", "spam"}


CHECKS = [
    pytest.param(model, check, id=check.func.__name__)
    for model, check in estimator_checks_generator(StructBoostRanker())
    if check.func.__name__ not in MISTAKEN
]


@pytest.mark.filterwarnings("ignore:.*all weights are 0:UserWarning")
@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_scikit_learns_own_checks(model, check):
    check(model)


@given(st.data())
def test_cut_points_make_the_fewest_mistakes(data):
    m, k = data.draw(st.integers(1, 6)), data.draw(st.integers(2, 4))
    scores = data.draw(arrays(m, -1.0, 1.0))
    levels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=m, max_size=m)))
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=m, max_size=m)), float)
    cuts = cut_points(scores, levels, weights, k)
    assert np.all(np.diff(cuts) >= 0)

    def mistakes(thresholds):
        return weights @ (np.searchsorted(thresholds, scores, side="left") != levels)

    values = np.unique(scores)
    middles = [values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1]
    best = min(mistakes(np.array(t)) for t in combinations_with_replacement(middles, k - 1))
    assert mistakes(cuts) == best


@few
@pytest.mark.parametrize("unit", [1e-300, 1e308])
def test_the_unit_of_weights_does_not_matter(unit):
    weights = np.random.default_rng(0).random(60)
    model = StructBoostRanker(C=10.0, n_estimators=10)
    plain = model.fit(X, Y, sample_weight=weights).decision_function(X)
    scaled = model.fit(X, Y, sample_weight=unit * weights)
    np.testing.assert_allclose(scaled.decision_function(X), plain)
    assert 0.5 < model.score(X, Y, sample_weight=unit * weights) <= 1.0


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: StructBoostRanker("stamp").fit(X, Y),
            ValueError,
            "estimator must be one of 'stum",
        ),
        (lambda: StructBoostRanker(3).fit(X, Y), TypeError, "estimator must be one of .* got int"),
        (
            lambda: StructBoostRanker(GaussianNB).fit(X, Y),
            TypeError,
            "estimator must be .* got the class GaussianNB",
        ),
        (lambda: StructBoostRanker(C=-1.0).fit(X, Y), ValueError, "C must be positive, got -1.0"),
        (lambda: StructBoostRanker(n_jobs=0).fit(X, Y), ValueError, "n_jobs must not be 0, got 0"),
        (
            lambda: StructBoostRanker(options=BoostOptions(slack="two")).fit(X, Y),
            ValueError,
            "slack must be one of",
        ),
        (lambda: StructBoostRanker().fit(X, LEVELS), ValueError, "set ordinal=True if the labels"),
        (
            lambda: StructBoostRanker(ordinal=True).fit(X, np.array(["a", "b"])[Y]),
            TypeError,
            "y must hold numbers when ordinal",
        ),
        (
            lambda: StructBoostRanker().fit(X, Y, sample_weight=-np.ones(60)),
            ValueError,
            "sample_weight must not be negative",
        ),
        (
            lambda: StructBoostRanker(C=5.0).fit(X, Y).score(X, Y + 5),
            ValueError,
            r"y must hold the labels of fit, \[0, 1\], got [56]",
        ),
        (
            lambda: StructBoostRanker(C=5.0).fit(X, Y).score(X, Y[1:]),
            ValueError,
            r"y must have shape \(60,\), as X has rows, got \(59,\)",
        ),
        (
            lambda: StructBoostRanker().fit(X, Y, groups=np.array(["a", 1] * 30, object)),
            TypeError,
            "groups must hold names of one kind, got int, str",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
