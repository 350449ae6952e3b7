"""The boosted classifier: scikit-learn's checks, taxonomies, two classes, stages."""

import pickle
import warnings

import numpy as np
import pytest
import reference
from boost_options import boost_options
from mistaken_checks import MISTAKEN
from scipy.sparse import csc_array, csr_array
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

import setwise as sw
from setwise.learning._boosting._boost_fit import BoostHistory

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[y]

# So few weak learners by design.
few = pytest.mark.filterwarnings("ignore:.* stopped at n_estimators")
MODELS = (
    sw.StructBoostClassifier(C=30.0, n_estimators=30),
    sw.StructBoostClassifier(
        C=30.0, n_estimators=10, options=sw.learning.BoostOptions(label_form="augmented")
    ),
    sw.StructBoostClassifier("step", C=30.0, n_estimators=30),
)
# Of classes that weigh 1000 and 0.0001 it wants the first said of nearly all points. A margin is
# kept or not: all points of the first keep it, and what little is left goes to the others' own.
# Levels of steps that are balanced by the weights have no room for those.
UNANSWERED = {"check_class_weight_classifiers"}
# What parametrize_with_checks does, which under scikit-learn 1.6 makes pytest 9 warn.
CHECKS = [
    pytest.param(
        estimator,
        check,
        id=f"{estimator.estimator} {estimator._settings.label_form} {check.func.__name__}",
    )
    for model in MODELS
    for estimator, check in estimator_checks_generator(model)
    if check.func.__name__ not in MISTAKEN
    and (estimator.estimator == "step" or check.func.__name__ not in UNANSWERED)
]


@few
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        # Some of the checks have data of which there is nothing to learn.
        warnings.filterwarnings("ignore", message=".* all weights are 0")
        check(estimator)


def same(a, b):
    assert np.array_equal(a.estimator_weights_, b.estimator_weights_)
    assert np.array_equal(a.decision_function(X), b.decision_function(X))


def test_what_a_fit_leaves_behind():
    model = sw.StructBoostClassifier(C=20.0).fit(X, NAMES)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.gap_ <= 1e-3
    assert model.certified_
    assert isinstance(model.history_, BoostHistory)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[2:].sum() > 0.5  # petals
    assert len(model.estimators_) == len(model.estimator_weights_)
    assert model.score(X, NAMES) > 0.95
    assert model.decision_function(X).shape == (150, 3)
    same(model, pickle.loads(pickle.dumps(model)))
    stages = list(model.staged_predict(X))
    assert len(stages) == model.stages_.shape[0]
    assert np.array_equal(stages[-1], model.predict(X))


@few
def test_stages_are_shorter_fits():
    model = sw.StructBoostClassifier(C=20.0).fit(X, y)
    short = sw.StructBoostClassifier(C=20.0, n_estimators=3).fit(X, y)
    stage = list(model.staged_decision_function(X))[2]
    assert np.array_equal(stage, short.decision_function(X))


def test_sparse_and_dense_agree():
    Z = np.where(X > 2.0, X, 0.0)
    dense = sw.StructBoostClassifier(C=20.0).fit(Z, y)
    for form in (csr_array, csc_array):
        sparse = sw.StructBoostClassifier(C=20.0).fit(form(Z), y)
        assert np.allclose(sparse.decision_function(form(Z)), dense.decision_function(Z))


def test_one_level_taxonomy_is_the_flat_classifier():
    flat = sw.StructBoostClassifier(C=20.0).fit(X, y)
    same(flat, sw.StructBoostClassifier(C=20.0, taxonomy=[3, 3, 3, -1]).fit(X, y))
    same(flat, sw.StructBoostClassifier(C=20.0, taxonomy=np.array([3, 3, 3, -1])).fit(X, y))
    two = y > 0
    flat = sw.StructBoostClassifier(C=20.0).fit(X, two)
    same(flat, sw.StructBoostClassifier(C=20.0, taxonomy=[2, 2, -1]).fit(X, two))


def test_taxonomy_equals_the_whole_program():
    rows = np.random.default_rng(0).permutation(len(X))[:25]
    model = sw.StructBoostClassifier(C=20.0, tol=1e-8, taxonomy=[[0], [1, 2]]).fit(X[rows], y[rows])
    code = np.array([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]])
    assert model.code_.tolist() == code.tolist()
    assert model.cost_.tolist() == [[0, 2, 2], [2, 0, 1], [2, 1, 0]]
    planes = reference.class_planes(y[rows], model.cost_, model.code_)
    least = reference.boosted_minimum(planes, reference.stump_columns(X[rows], 4), 20.0)
    assert model.history_.primal[-1] == pytest.approx(least, rel=1e-6)


def test_augmented_form_equals_the_whole_program():
    rows = np.random.default_rng(1).permutation(len(X))[:20]
    Z, t = X[rows][:, [1, 3]], y[rows]
    model = sw.StructBoostClassifier(
        C=20.0, tol=1e-8, options=sw.learning.BoostOptions(label_form="augmented")
    ).fit(Z, t)
    augmented = np.kron(np.eye(3), Z)
    planes = reference.class_planes(t, 1 - np.eye(3), np.eye(3))
    least = reference.boosted_minimum(planes, reference.stump_columns(augmented, 1), 20.0)
    assert model.history_.primal[-1] == pytest.approx(least, rel=1e-6)
    assert model.feature_importances_.shape == (2,)
    assert model.score(Z, t) > 0.8


def test_two_classes_are_lpboost():
    t = (y == 1).astype(int)
    model = sw.StructBoostClassifier(C=20.0, tol=1e-8).fit(X[::3], t[::3])
    signs, m = 2.0 * t[::3] - 1, 50
    margins = [[(0.0, np.zeros(m)), (1.0, -s * np.eye(m)[i])] for i, s in enumerate(signs)]
    least = reference.boosted_minimum(margins, reference.stump_columns(X[::3], 1), 20.0)
    assert model.history_.primal[-1] == pytest.approx(least, rel=1e-6)
    assert model.decision_function(X).shape == (150,)
    assert np.array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))


@pytest.mark.parametrize("estimator", ["tree", "perceptron", "linear", DecisionTreeClassifier()])
def test_other_weak_learners(estimator):
    model = sw.StructBoostClassifier(estimator, 40, C=20.0, random_state=0).fit(X, y)
    assert not model.certified_
    assert model.score(X, y) > 0.9
    again = sw.StructBoostClassifier(estimator, 40, C=20.0, random_state=0).fit(X, y)
    same(model, again)
    same(model, pickle.loads(pickle.dumps(model)))


def test_slacks_agree():
    one, example = (
        sw.StructBoostClassifier(
            C=20.0, tol=1e-6, options=sw.learning.BoostOptions(slack=slack)
        ).fit(X, y)
        for slack in ("one", "example")
    )
    assert one.history_.primal[-1] == pytest.approx(example.history_.primal[-1], rel=1e-5)


def test_several_learners_a_round():
    model = sw.StructBoostClassifier(
        C=20.0, options=sw.learning.BoostOptions(columns="class", columns_per_round=3)
    ).fit(X, y)
    assert model.gap_ <= 1e-3
    assert np.diff(model.history_.n_columns).max() == 3
    assert len(list(model.staged_predict(X))) == model.stages_.shape[0] < len(model.estimators_)


def test_weights_of_zero_remove_rows():
    weight = np.ones(150)
    weight[100:] = 0.0
    model = sw.StructBoostClassifier(C=20.0).fit(X, y, sample_weight=weight)
    assert model.classes_.tolist() == [0, 1]
    same(model, sw.StructBoostClassifier(C=20.0).fit(X[:100], y[:100]))


def test_grid_search_and_progress(capsys):
    search = GridSearchCV(sw.StructBoostClassifier(n_estimators=20), {"C": [4.0, 40.0]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.9
    seen = []
    sw.StructBoostClassifier(C=20.0, verbose=True).fit(X, y, callback=seen.append)
    assert "gap" in capsys.readouterr().err
    assert seen[0].n_columns == 0


def test_too_small_a_c_says_so():
    with pytest.warns(UserWarning, match=r"at C=0\.5: all weights are 0, raise C"):
        model = sw.StructBoostClassifier(C=0.5).fit(X, y)
    assert list(model.staged_predict(X)) == []
    assert (model.predict(X) == 0).all()
    assert not model.feature_importances_.any()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"C": -1.0}, ValueError, "C must be positive"),
        ({"estimator": "oak"}, ValueError, "estimator must be one of .* got 'oak'"),
        ({"estimator": DecisionTreeClassifier}, TypeError, "got the class DecisionTreeClassifier"),
        ({"label_form": "flat"}, ValueError, "label_form must be one of 'coded', 'augmented'"),
        ({"slack": 1}, TypeError, "slack must be a string"),
        ({"columns_per_round": 0}, ValueError, "columns_per_round must be at least 1"),
        ({"estimator": "tree", "n_jobs": "all"}, TypeError, "n_jobs must be an integer or None"),
        (
            {"estimator": KNeighborsClassifier()},
            TypeError,
            "whose fit takes sample_weight, got KNeighborsClassifier",
        ),
        ({"C": 1e16}, ValueError, r"C must be at most 1e\+15, got 1e\+16"),
        ({"taxonomy": [0, 1]}, ValueError, "taxonomy must have a node for each of 3 classes"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        sw.StructBoostClassifier(**boost_options(**options)).fit(X, y)


def test_bad_data():
    with pytest.raises(TypeError, match="callback must be callable or None, got int"):
        sw.StructBoostClassifier().fit(X, y, callback=3)
    with pytest.raises(TypeError, match=r"options must be a BoostOptions of sw\.learning or None"):
        sw.StructBoostClassifier(options={"slack": "one"}).fit(X, y)
    with pytest.raises(ValueError, match="only one class is present"):
        sw.StructBoostClassifier().fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="sample_weight must not be zero for every sample"):
        sw.StructBoostClassifier().fit(X, y, sample_weight=np.zeros(150))
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        sw.StructBoostClassifier().fit(X, y, sample_weight=-np.ones(150))
    with pytest.raises(NotFittedError):
        sw.StructBoostClassifier().predict(X)
    with pytest.raises(NotFittedError):
        _ = sw.StructBoostClassifier().feature_importances_
    with pytest.raises(ValueError, match=r"X must stay below 1e\+100 for linear support vector"):
        sw.StructBoostClassifier("linear").fit(X * 1e150, y)


@few
@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_the_unit_of_weights_and_features_does_not_matter(unit):
    model = sw.StructBoostClassifier(C=10.0, n_estimators=10)
    weights = np.random.default_rng(0).random(150)
    plain = model.fit(X, y, sample_weight=weights).decision_function(X)
    scaled = model.fit(X, y, sample_weight=unit * weights)
    np.testing.assert_allclose(scaled.decision_function(X), plain)
    for learner in ("stump", "perceptron"):
        model = sw.StructBoostClassifier(learner, C=10.0, n_estimators=5)
        few = model.fit(X, y).score(X, y)
        huge = 1e305 * (X / X.max())
        assert model.fit(huge, y).score(huge, y) > few - 0.1


@pytest.mark.parametrize("kind", ["stump", "tree"])
@pytest.mark.parametrize("booster", [sw.StructBoostClassifier, sw.StructBoostRanker])
def test_ending_at_n_estimators_says_so_once(booster, kind):
    model = booster(kind, n_estimators=3, C=100.0, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y > 1)
    assert len(caught) == 1
    said = f"{booster.__name__} stopped at n_estimators=3 weak learners with a relative gap of "
    assert str(caught[0].message).startswith(said + f"{model.gap_:.1e}, above tol=0.001")
    assert model.gap_ > model.tol
    assert model.certified_ == (kind == "stump")  # of the bound, not of the weights
    history = model.history_
    assert model.gap_ == pytest.approx(
        history.gap[-1] / min(history.primal[0] - history.dual[-1], history.primal[-1])
    )
    enough = booster(kind, C=100.0, random_state=0)
    enough.fit(X, y > 1, callback=lambda p: p.n_columns >= 3)
    assert np.array_equal(enough.predict(X), model.predict(X))


def test_constant_and_repeated_columns_change_nothing():
    plain = sw.StructBoostClassifier(C=20.0, options=sw.learning.BoostOptions(slack="one")).fit(
        X, y
    )
    wide = np.column_stack([X, np.full(len(X), 7.0), X])
    other = sw.StructBoostClassifier(C=20.0, options=sw.learning.BoostOptions(slack="one")).fit(
        wide, y
    )
    assert np.array_equal(other.decision_function(wide), plain.decision_function(X))
    assert other.gap_ == plain.gap_


def test_few_rows():
    two = sw.StructBoostClassifier(C=20.0).fit([[0.0], [1.0]], [0, 1])
    assert two.predict([[0.0], [1.0]]).tolist() == [0, 1]
    assert two.gap_ == 0
    with pytest.raises(ValueError, match=r"y must hold two classes, got \[1\]"):
        sw.StructBoostClassifier().fit([[0.0]], [1])
    with pytest.warns(UserWarning, match="no weak learner lowers the objective at C=50"):
        alike = sw.StructBoostClassifier().fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert alike.gap_ == 0  # zero weights are the best, and that is proved


def test_a_tolerance_that_asks_for_nothing_says_so():
    with pytest.warns(UserWarning, match="without any weak learner is within tol=10: all weights"):
        sw.StructBoostClassifier(tol=10.0).fit(X, y)


@pytest.mark.parametrize("C", [1e8, 1e12, 1e15])
def test_c_may_be_large(C):
    model = sw.StructBoostClassifier(C=C, n_estimators=8).fit(X[::5], y[::5])
    assert 0 <= model.gap_ < 1
    # Rounding grows with C, and hides no more than a millionth of the objective.
    value, bound = model.history_.primal[-1], model.history_.dual[-1]
    assert (value - bound) / value <= model.gap_ + 1e-6


@pytest.mark.parametrize("slack", ["one", "example"])
@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
def test_no_learners_are_proved_best_where_the_features_say_nothing(C, slack):
    """The edge of a constant is a sum of terms as large as C that cancel: no gap, but rounding."""
    for n in range(3, 15):
        y = np.arange(n) % 3
        with pytest.warns(UserWarning, match="no weak learner lowers the objective") as caught:
            model = sw.StructBoostClassifier(
                C=C, options=sw.learning.BoostOptions(slack=slack)
            ).fit(np.ones((n, 1)), y)
        assert len(caught) == 1
        assert model.gap_ == 0.0
