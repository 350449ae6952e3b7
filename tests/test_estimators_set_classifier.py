"""SetClassifier: the problem it says it solves, solved; and a good citizen of scikit-learn."""

import pickle
import sys
import warnings

import numpy as np
import pytest
import reference
import skops.io
from mistaken_checks import MISTAKEN
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from setwise import SetClassifier
from setwise.functions import decompose
from setwise.losses import (
    CardinalityLoss,
    CountsLoss,
    Dice,
    EarlyDetection,
    Hamming,
    Jaccard,
    SetLoss,
    get,
)
from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling

random = np.random.default_rng(0)
n, d, p = 60, 4, 3
X = random.normal(size=(n, d))
W = random.normal(size=(p, d))
Y = (X @ W.T + 0.7 * random.normal(size=(n, p)) > 0.4).astype(int)
y = Y[:, 0]
GROUPS = random.integers(0, 12, size=n)


# What the names of the surrogates stand for.
SURROGATES = {
    "lovasz": LovaszHinge,
    "margin": MarginRescaling,
    "slack": SlackRescaling,
    "decomposed": DecomposedHinge,
    "hinge": lambda loss: LovaszHinge("hamming"),
}


def value_and_bound(model):
    """The last objective and the last bound of a fit."""
    return model.history_.primal[-1], model.history_.dual[-1]


def objective(model, X, Y, groups=None):
    """1/2 |W|^2 + C sum of the surrogate over the sets, from the fitted arrays alone."""
    surrogate = SURROGATES[model.surrogate](model.loss)
    squares = 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2))
    scores = X @ model.coef_.T + model.intercept_
    if Y.ndim == 2:
        return squares + model.C * float(np.sum(surrogate(Y, scores)))
    sets = [np.ones(len(Y), bool)] if groups is None else [groups == g for g in np.unique(groups)]
    return squares + model.C * sum(surrogate(Y[s], scores[s, 0]) for s in sets)


# ------------------------------------------------------------------------------------- scikit-learn


# What parametrize_with_checks does, which under scikit-learn 1.6 makes pytest 9 warn. Three skips
# are scikit-learn's own, for want of pandas and of an array API; one is for want of predict_proba,
# which a hinge does not have.
CHECKS = [
    pytest.param(estimator, check, id=f"{estimator.surrogate} {check.func.__name__}")
    for model in (SetClassifier(), SetClassifier(surrogate="hinge", C=0.1))
    for estimator, check in estimator_checks_generator(model)
    if check.func.__name__ not in MISTAKEN
]


@pytest.mark.filterwarnings("ignore:SetClassifier predicts no positive")  # labels drawn at random
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_in_a_pipeline():
    pipe = make_pipeline(StandardScaler(), SetClassifier()).fit(100.0 * X + 5.0, Y)
    alone = SetClassifier().fit(StandardScaler().fit_transform(100.0 * X + 5.0), Y)
    assert np.array_equal(pipe[-1].coef_, alone.coef_)
    assert pipe.predict(100.0 * X + 5.0).shape == (n, p)
    assert pipe.score(100.0 * X + 5.0, Y) > 0.5
    grouped = make_pipeline(StandardScaler(), SetClassifier(sets="groups"))
    grouped.fit(X, y, setclassifier__groups=GROUPS)
    with config_context(enable_metadata_routing=True):
        last = SetClassifier(sets="groups").set_fit_request(groups=True)
        routed = make_pipeline(StandardScaler(), last).fit(X, y, groups=GROUPS)
    assert np.array_equal(grouped[-1].coef_, routed[-1].coef_)


def test_in_a_grid_search_over_rows():
    search = GridSearchCV(SetClassifier(), {"C": [1e-4, 1.0], "loss": ["jaccard", "hamming"]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_["C"] == 1.0
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_in_a_grid_search_over_groups():
    with config_context(enable_metadata_routing=True):
        model = SetClassifier(sets="groups")
        model.set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(model, {"C": [1e-4, 1.0]}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, groups=GROUPS)
        assert search.best_params_ == {"C": 1.0}
        by_hand = []
        for train, test in GroupKFold(3).split(X, y, GROUPS):
            fold = SetClassifier(sets="groups").fit(X[train], y[train], groups=GROUPS[train])
            by_hand.append(fold.score(X[test], y[test], groups=GROUPS[test]))
        found = search.cv_results_["mean_test_score"][1]
        assert found == pytest.approx(np.mean(by_hand), rel=1e-12)


@pytest.mark.parametrize("splitter", [GroupKFold(3), KFold(3)])
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")  # scikit-learn's own
def test_a_search_that_drops_the_groups_is_an_error(splitter):
    """With routing off groups reach the splitter only: never one set a fold in silence."""
    sentence = "groups must be given when sets='groups', got None: pass groups="
    search = GridSearchCV(
        SetClassifier(sets="groups"), {"C": [0.1, 1.0]}, cv=splitter, error_score="raise"
    )
    with pytest.raises(ValueError, match=sentence):
        search.fit(X, y, groups=GROUPS)
    with pytest.raises(ValueError, match=sentence):
        cross_val_score(
            SetClassifier(sets="groups"), X, y, groups=GROUPS, cv=splitter, error_score="raise"
        )


def test_a_search_that_routes_groups_to_fit_only_is_an_error():
    with config_context(enable_metadata_routing=True):
        model = SetClassifier(sets="groups").set_fit_request(groups=True)
        model.set_score_request(groups=False)
        search = GridSearchCV(model, {"C": [1.0]}, cv=GroupKFold(3), error_score="raise")
        with pytest.raises(ValueError, match="groups must be given when sets='groups'"):
            search.fit(X, y, groups=GROUPS)


@pytest.mark.parametrize("loss", ["jaccard", Jaccard(), Hamming([1.0, 2.0, 3.0])])
def test_clone_and_pickle(loss):
    model = SetClassifier(loss, C=3.0, tol=1e-2)
    copy = clone(model)
    assert copy.get_params()["C"] == 3.0
    assert repr(copy.loss) == repr(model.loss)
    model.fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.score(X, Y) == model.score(X, Y)
    assert np.array_equal(copy.fit(X, Y).coef_, model.coef_)
    assert not hasattr(clone(model), "coef_")


@pytest.mark.parametrize("loss", ["jaccard", Jaccard()])
def test_skops(loss):
    """Everything that is not NumPy's is setwise's own, and plain."""
    model = SetClassifier(loss).fit(X, Y)
    data = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("setwise.") for name in untrusted)
    again = skops.io.loads(data, trusted=untrusted)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.history_.primal, model.history_.primal)


# ------------------------------------------------------------------------------------- the minimum

SMALL_X = np.random.default_rng(5).normal(size=(6, 2))
SMALL_Y = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]])
SMALL_GROUPS = np.array([0, 1, 0, 1, 2, 1])


def blocks(surrogate, table):
    """The planes of a surrogate in the margins, from the 2^p values of the loss."""
    if surrogate == "hinge":
        table = reference.all_masks(reference.size_of(table)).sum(axis=1).astype(float)
    if surrogate in ("lovasz", "hinge"):
        return [reference.hinge_planes(table, case=1)]
    return [reference.rescaling_planes(table, slack=surrogate == "slack")]


def decomposed_blocks(function):
    """B_D: the Lovász hinge of f, by cases, plus slack rescaling of g."""
    f, g = (reference.all_values(part) for part in decompose(function))
    case = 1 if reference.is_increasing(f) else 2
    return [reference.hinge_planes(f, case), reference.rescaling_planes(g, slack=True)]


def least(loss, surrogate, sets, C=1.0):
    """The minimum over w, by brute force: sets are pairs of a truth and a matrix of its scores."""
    risks = []
    for truth, scores in sets:
        margins = (2.0 * truth - 1.0)[:, None] * scores
        function = get(loss).set_function(truth)
        table = reference.all_values(function)
        found = (
            decomposed_blocks(function) if surrogate == "decomposed" else blocks(surrogate, table)
        )
        risks += [(slopes @ margins, offsets) for slopes, offsets in found]
    return reference.least_objective(risks, C)


def row_sets(X, Y):
    """Scores of row i are linear in w: a row of weights for each label, the intercept last."""
    full = np.column_stack([X, np.ones(len(X))])
    return [(truth, np.kron(np.eye(len(truth)), x)) for truth, x in zip(Y, full, strict=True)]


def group_sets(X, y, groups):
    full = np.column_stack([X, np.ones(len(X))])
    return [(y[groups == g], full[groups == g]) for g in np.unique(groups)]


PAIRS = [
    ("jaccard", "lovasz"),
    ("jaccard", "margin"),
    ("jaccard", "slack"),
    ("jaccard", "decomposed"),
    ("jaccard", "hinge"),
    ("hamming", "lovasz"),
    ("dice", "decomposed"),
    ("exponential", "lovasz"),
]


def each_pair(pairs):
    names = [f"{surrogate} of {loss}" for loss, surrogate in pairs]
    return pytest.mark.parametrize(("loss", "surrogate"), pairs, ids=names)


@each_pair([*PAIRS, (Hamming([0.5, 1.0, 2.0]), "lovasz")])
def test_rows_reach_the_minimum_over_all_sets_and_vertices(loss, surrogate):
    model = SetClassifier(loss, surrogate, C=2.0, tol=1e-4).fit(SMALL_X, SMALL_Y)
    minimum = least(loss, surrogate, row_sets(SMALL_X, SMALL_Y), C=2.0)
    value, bound = value_and_bound(model)
    assert bound - 1e-5 <= minimum <= value + 1e-5
    assert value - minimum <= 1e-4 * max(1.0, value) + 1e-5
    assert model.coef_.shape == (3, 2)
    assert model.intercept_.shape == (3,)
    assert model.certified_


@each_pair(PAIRS)
def test_groups_reach_the_minimum_over_all_sets_and_vertices(loss, surrogate):
    small_y = SMALL_Y[:, 0]
    model = SetClassifier(loss, surrogate, C=2.0, tol=1e-4)
    model.fit(SMALL_X, small_y, groups=SMALL_GROUPS)
    minimum = least(loss, surrogate, group_sets(SMALL_X, small_y, SMALL_GROUPS), C=2.0)
    value, bound = value_and_bound(model)
    assert bound - 1e-5 <= minimum <= value + 1e-5
    assert value - minimum <= 1e-4 * max(1.0, value) + 1e-5
    assert model.coef_.shape == (1, 2)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("kind", ["rows", "groups", "sample"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gap_is_honest(surrogate, kind, intercept):
    """The last primal is the objective of the fitted arrays, and a finer fit is within the gap."""
    truth = Y if kind == "rows" else y
    groups = GROUPS if kind == "groups" else None
    model = SetClassifier("jaccard", surrogate, tol=0.05, fit_intercept=intercept, sets=kind)
    fine = clone(model).set_params(tol=1e-4).fit(X, truth, groups=groups)
    model.fit(X, truth, groups=groups)
    value, bound = value_and_bound(model)
    assert value == pytest.approx(objective(model, X, truth, groups), rel=1e-9)
    room = min(model.history_.primal[0] - bound, value)  # the fit starts at w = 0
    assert model.gap_ == pytest.approx((value - bound) / room, rel=1e-12)
    assert model.gap_ <= 0.05
    assert objective(fine, X, truth, groups) >= bound - 1e-9
    assert model.intercept_.any() == intercept
    assert len(model.history_.seconds) == model.n_iter_


def test_hamming_is_the_problem_of_liblinear():
    """One LinearSVC a label: the same sum of hinge losses, the same penalised intercept."""
    model = SetClassifier("hamming", C=0.5, tol=1e-4).fit(X, Y)
    other = 0.0
    for k in range(p):
        svm = LinearSVC(
            C=0.5, loss="hinge", intercept_scaling=1.0, tol=1e-7, max_iter=100_000, random_state=0
        ).fit(X, Y[:, k])
        slack = 1.0 - (2 * Y[:, k] - 1) * svm.decision_function(X)
        squares = 0.5 * (np.sum(svm.coef_**2) + np.sum(svm.intercept_**2))
        other += squares + 0.5 * np.maximum(slack, 0.0).sum()
    slack = 1.0 - (2 * Y - 1) * model.decision_function(X)
    squares = 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2))
    ours = squares + 0.5 * np.maximum(slack, 0.0).sum()
    assert ours == pytest.approx(other, rel=1e-3)
    assert ours == pytest.approx(value_and_bound(model)[0], rel=1e-9)


@pytest.mark.parametrize("surrogate", ["lovasz", "margin", "slack", "hinge"])
def test_features_far_from_zero_take_no_more_rounds(surrogate):
    model = SetClassifier(surrogate=surrogate, max_iter=60).fit(X + 1000.0, y)
    assert model.gap_ <= 1e-3


def test_sets_of_one_are_hinge_losses():
    """One label a row, groups of one, the sample under Hamming: all the same problem."""
    values = [
        value_and_bound(SetClassifier("jaccard", tol=1e-6).fit(X, y[:, None]))[0],
        value_and_bound(SetClassifier("jaccard", tol=1e-6).fit(X, y, groups=np.arange(n)))[0],
        value_and_bound(SetClassifier("hamming", tol=1e-6).fit(X, y))[0],
        value_and_bound(SetClassifier("hamming", tol=1e-6).fit(X, y, groups=GROUPS))[0],
        value_and_bound(SetClassifier("jaccard", "hinge", tol=1e-6).fit(X, y))[0],
    ]
    assert values == pytest.approx([values[0]] * 5, rel=3e-6)


def test_one_group_is_the_sample():
    one = SetClassifier().fit(X, y, groups=np.full(n, 7))
    whole = SetClassifier().fit(X, y)
    assert np.array_equal(one.coef_, whole.coef_)
    assert np.array_equal(SetClassifier(sets="sample").fit(X, y).coef_, whole.coef_)


@pytest.mark.parametrize("names", [GROUPS, GROUPS.astype(str), -1.5 * GROUPS])
def test_groups_are_named_in_any_way_and_come_in_any_order(names):
    model = SetClassifier(tol=1e-6).fit(X, y, groups=names)
    order = np.random.default_rng(1).permutation(n)
    mixed = SetClassifier(tol=1e-6).fit(X[order], y[order], groups=names[order])
    numbered = SetClassifier(tol=1e-6).fit(X, y, groups=GROUPS)
    value = value_and_bound(numbered)[0]
    assert value_and_bound(model)[0] == pytest.approx(value, rel=3e-6)
    assert value_and_bound(mixed)[0] == pytest.approx(value, rel=3e-6)
    assert mixed.score(X, y, groups=names) == pytest.approx(model.score(X, y, groups=names))


# -------------------------------------------------------------------------------- labels, features


@pytest.mark.parametrize(
    ("encode", "classes"),
    [
        (lambda Y: Y, [0, 1]),
        (lambda Y: 2 * Y - 1, [-1, 1]),
        (lambda Y: Y.astype(bool), [False, True]),
        (lambda Y: Y.astype(np.float32), [0.0, 1.0]),
        (lambda Y: (2 * Y - 1).astype(np.int8), [-1, 1]),
        (lambda Y: Y.tolist(), [0, 1]),
    ],
)
def test_a_matrix_of_labels_in_any_encoding(encode, classes):
    model, plain = SetClassifier().fit(X, encode(Y)), SetClassifier().fit(X, Y)
    assert np.array_equal(model.coef_, plain.coef_)
    assert model.classes_.tolist() == classes
    predicted = model.predict(X)
    assert predicted.dtype == np.asarray(encode(Y)).dtype
    assert np.array_equal(predicted == classes[1], plain.predict(X) == 1)
    assert np.array_equal(predicted == classes[1], model.decision_function(X) > 0)
    assert model.score(X, encode(Y)) == plain.score(X, Y)


@pytest.mark.parametrize(
    "classes", [("ham", "spam"), (0, 1), (-1, 1), (3, 8), (False, True), (1.0, 2.0)]
)
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_any_two_classes(classes, groups):
    labels = np.array(classes)[y]
    model = SetClassifier().fit(X, labels, groups=groups)
    assert model.classes_.tolist() == list(classes)
    predicted = model.predict(X)
    assert predicted.shape == (n,)
    assert predicted.dtype == labels.dtype
    assert np.array_equal(predicted == classes[1], model.decision_function(X) > 0)
    plain = SetClassifier().fit(X, y, groups=groups)
    assert np.array_equal(model.coef_, plain.coef_)
    assert model.score(X, labels, groups=groups) == plain.score(X, y, groups=groups)


def test_one_label_a_row():
    model = SetClassifier().fit(X, y[:, None])
    assert model.coef_.shape == (1, d)
    assert model.predict(X).shape == model.decision_function(X).shape == (n, 1)
    assert model.score(X, y[:, None]) == np.mean(model.predict(X)[:, 0] == y)


def test_labels_that_are_never_or_always_there():
    """No positive at all is a defined truth: anything predicted costs 1."""
    nothing = SetClassifier(C=10.0).fit(X, np.zeros((n, 2), int))
    assert not nothing.predict(X).any()
    assert nothing.score(X, np.zeros((n, 2), int)) == 1.0
    constant = SetClassifier(C=10.0).fit(X, np.column_stack([np.ones(n, int), y]))
    assert constant.predict(X)[:, 0].all()


def test_constant_features_and_a_single_row():
    model = SetClassifier().fit(np.zeros((1, 2)), [[1, 0]])
    assert model.coef_.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert model.predict(np.zeros((3, 2))).tolist() == [[1, 0]] * 3


def refuse(*arguments, **options):
    raise AssertionError("sparse features must not be made dense")


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(
    ("truth", "groups"), [(Y, None), (y, GROUPS), (y, None)], ids=["rows", "groups", "sample"]
)
def test_sparse_features_are_the_dense_ones_and_stay_sparse(kind, truth, groups, monkeypatch):
    dense = np.where(np.abs(X) > 0.8, X, 0.0)
    expected = SetClassifier(tol=1e-6).fit(dense, truth, groups=groups)
    scores = expected.decision_function(dense)
    for made in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array):
        for name in ("toarray", "todense", "__array__"):
            monkeypatch.setattr(made, name, refuse, raising=False)
    model = SetClassifier(tol=1e-6).fit(kind(dense), truth, groups=groups)
    assert value_and_bound(model)[0] == pytest.approx(value_and_bound(expected)[0], rel=3e-6)
    np.testing.assert_allclose(model.decision_function(kind(dense)), scores, atol=0.02)
    assert type(model.coef_) is np.ndarray
    assert model.score(kind(dense), truth, groups=groups) > 0.3


def test_the_number_of_features_must_be_that_of_fit():
    model = SetClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but SetClassifier is expecting 4"):
        model.predict(X[:, :3])


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(SetClassifier(), method)(X)
    with pytest.raises(NotFittedError):
        SetClassifier().score(X, Y)


# ----------------------------------------------------------------------------------------- weights

TIMES = np.random.default_rng(2).integers(0, 4, size=n)


@pytest.mark.parametrize("surrogate", ["lovasz", "slack", "hinge"])
@pytest.mark.parametrize("kind", ["rows", "groups", "sample"])
def test_a_weight_is_how_often_a_sample_is_there(surrogate, kind):
    truth = Y if kind == "rows" else y
    repeated = np.repeat(np.arange(n), TIMES)
    options = {"surrogate": surrogate, "tol": 1e-5}
    groups = GROUPS if kind == "groups" else None
    some = None if groups is None else GROUPS[repeated]
    weighted = SetClassifier(**options).fit(X, truth, groups=groups, sample_weight=TIMES)
    plain = SetClassifier(**options).fit(X[repeated], truth[repeated], groups=some)
    value = value_and_bound(plain)[0]
    assert value_and_bound(weighted)[0] == pytest.approx(value, rel=3e-5)
    np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=0.05)
    assert weighted.score(X, truth, groups=groups, sample_weight=TIMES) == pytest.approx(
        weighted.score(X[repeated], truth[repeated], groups=some), rel=1e-12
    )


@pytest.mark.parametrize("surrogate", ["lovasz", "margin", "slack", "decomposed"])
def test_rows_take_any_weight(surrogate):
    """A row is a set, and its weight a factor: C times as much is C times the weight."""
    weight = np.random.default_rng(3).uniform(0.0, 2.0, size=n)
    model = SetClassifier(surrogate=surrogate, tol=1e-5).fit(X, Y, sample_weight=weight)
    double = SetClassifier(surrogate=surrogate, C=0.5, tol=1e-5)
    double.fit(X, Y, sample_weight=2 * weight)
    assert value_and_bound(model)[0] == pytest.approx(value_and_bound(double)[0], rel=3e-5)


def test_jaccard_of_a_sample_takes_any_weight():
    """It is a ratio: a common factor of the weights changes nothing."""
    weight = 1.0 + TIMES
    whole = SetClassifier(tol=1e-6).fit(X, y, sample_weight=weight)
    for factor in (0.5, 0.3):
        part = SetClassifier(tol=1e-6).fit(X, y, sample_weight=factor * weight)
        assert value_and_bound(part)[0] == pytest.approx(value_and_bound(whole)[0], rel=3e-6)
        assert part.certified_
        assert part.score(X, y, sample_weight=factor * weight) == pytest.approx(
            part.score(X, y, sample_weight=weight), rel=1e-12
        )


def test_jaccard_of_a_sample_with_weights_by_brute_force():
    weight, small_y = np.array([0.5, 1.25, 2.0, 0.75]), np.array([1, 0, 1, 0])
    masks = reference.all_masks(4)
    missed = masks @ (weight * small_y)
    added = masks @ (weight * (1 - small_y))
    table = (missed + added) / (weight @ small_y + added)
    full = np.column_stack([SMALL_X[:4], np.ones(4)])
    slopes, offsets = reference.hinge_planes(table, case=1)
    margins = (2.0 * small_y - 1.0)[:, None] * full
    minimum = reference.least_objective([(slopes @ margins, offsets)], 3.0)
    model = SetClassifier(C=3.0, tol=1e-5).fit(SMALL_X[:4], small_y, sample_weight=weight)
    value, bound = value_and_bound(model)
    assert bound - 1e-5 <= minimum <= value + 1e-5
    mistakes = model.predict(SMALL_X[:4]) != small_y
    expected = 1.0 - table[reference.index_of(np.flatnonzero(mistakes))]
    found = model.score(SMALL_X[:4], small_y, sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_weight_of_zero_is_a_sample_removed():
    kept = np.random.default_rng(4).random(n) < 0.7
    for truth, groups in ((Y, None), (y, GROUPS), (y, None)):
        some = None if groups is None else groups[kept]
        removed = SetClassifier().fit(X[kept], truth[kept], groups=some)
        weighted = SetClassifier().fit(X, truth, groups=groups, sample_weight=kept.astype(float))
        assert np.array_equal(removed.coef_, weighted.coef_)


def test_class_weights_are_sample_weights():
    for weights in ({0: 1, 1: 3}, {0: 0.25, 1: 1.5}):
        of_sample = np.where(y == 1, weights[1], weights[0])
        for loss in ("jaccard", "hamming"):
            model = SetClassifier(loss, class_weight=weights).fit(X, y)
            same = SetClassifier(loss).fit(X, y, sample_weight=of_sample)
            assert np.array_equal(model.coef_, same.coef_)
            both = SetClassifier(loss, class_weight=weights).fit(X, y, sample_weight=TIMES)
            product = SetClassifier(loss).fit(X, y, sample_weight=TIMES * of_sample)
            assert np.array_equal(both.coef_, product.coef_)


def test_balanced_class_weights():
    share = n / (2.0 * np.bincount(y))
    model = SetClassifier("hamming", class_weight="balanced").fit(X, y)
    assert np.array_equal(
        model.coef_, SetClassifier("hamming").fit(X, y, sample_weight=share[y]).coef_
    )


# ------------------------------------------------------------------------------------------- score


@pytest.mark.parametrize("loss", ["jaccard", "hamming", "dice", CardinalityLoss(lambda k, p: k**2)])
def test_the_score_by_hand(loss):
    """1 - mean over the sets of loss / loss of everything wrong."""
    measure = get(loss)
    surrogate = "lovasz" if loss in ("jaccard", "hamming") else "decomposed"
    model = SetClassifier(loss, surrogate).fit(X, Y)
    shares = [
        measure(truth, found) / measure(truth, 1 - truth)
        for truth, found in zip(Y, model.predict(X), strict=True)
    ]
    weight = 0.5 + TIMES
    assert model.score(X, Y) == pytest.approx(1.0 - np.mean(shares), rel=1e-12)
    assert model.score(X, Y, sample_weight=weight) == pytest.approx(
        1.0 - np.average(shares, weights=weight), rel=1e-12
    )
    model = SetClassifier(loss, surrogate).fit(X, y, groups=GROUPS)
    found = model.predict(X)
    shares = [
        measure(y[here], found[here]) / measure(y[here], 1 - y[here])
        for here in (np.unique(GROUPS)[:, None] == GROUPS)
    ]
    assert model.score(X, y, groups=GROUPS) == pytest.approx(1.0 - np.mean(shares), rel=1e-12)
    whole = measure(y, found) / measure(y, 1 - y)
    assert model.score(X, y) == pytest.approx(1.0 - whole, rel=1e-12)


def test_hamming_scores_are_accuracies():
    model = SetClassifier("hamming").fit(X, Y)
    assert model.score(X, Y) == pytest.approx(np.mean(model.predict(X) == Y), rel=1e-12)
    model.fit(X, y)
    weight = np.random.default_rng(6).uniform(0.1, 2.0, size=n)
    right = model.predict(X) == y
    assert model.score(X, y) == pytest.approx(np.mean(right), rel=1e-12)
    assert model.score(X, y, sample_weight=weight) == pytest.approx(
        np.average(right, weights=weight), rel=1e-12
    )


# ------------------------------------------------------------------------------- threads, stopping


@pytest.mark.parametrize("truth", [Y, y], ids=["rows", "groups"])
def test_the_number_of_threads_changes_no_bit(truth, monkeypatch):
    """Shards of some dozen scores, so that there is work to share."""
    monkeypatch.setattr("setwise.estimators._sets._set_risk._SHARD_SCORES", 16)
    groups = None if truth.ndim == 2 else GROUPS
    one = SetClassifier(tol=1e-4).fit(X, truth, groups=groups)
    for n_jobs in (1, 2, 3, -1):
        model = SetClassifier(tol=1e-4, n_jobs=n_jobs).fit(X, truth, groups=groups)
        assert np.array_equal(model.coef_, one.coef_)
        assert np.array_equal(model.intercept_, one.intercept_)
        assert np.array_equal(model.history_.dual, one.history_.dual)


def test_a_fit_made_again_is_the_same_to_the_last_bit():
    """Also where the solver gives up on a program: what it leaves then must not be old memory."""
    first = SetClassifier(tol=1e-6).fit(X, y)
    for size in range(1, 200, 20):
        memory = np.full(size, np.nan)
        del memory
        assert np.array_equal(SetClassifier(tol=1e-6).fit(X, y).coef_, first.coef_)


def test_shards_change_nothing_but_rounding(monkeypatch):
    whole = value_and_bound(SetClassifier(tol=1e-6).fit(X, y, groups=GROUPS))[0]
    for size in (1, 7, 64):
        monkeypatch.setattr("setwise.estimators._sets._set_risk._SHARD_SCORES", size)
        model = SetClassifier(tol=1e-6).fit(X, y, groups=GROUPS)
        assert value_and_bound(model)[0] == pytest.approx(whole, rel=3e-6)


def assert_best_so_far(model, rounds):
    """The fit ended early and without a warning: a model, and a gap that says how good it is."""
    assert model.n_iter_ == rounds
    assert model.gap_ > 1e-3
    value, bound = value_and_bound(model)
    assert value == pytest.approx(objective(model, X, Y), rel=1e-9)
    assert bound <= value_and_bound(SetClassifier(model.loss).fit(X, Y))[0]
    assert model.predict(X).shape == (n, p)
    assert value < model.history_.primal[0]


def test_a_callback_that_returns_true_leaves_the_best_model_so_far():
    seen = []

    def callback(progress):
        seen.append(progress.n_iter)
        return progress.n_iter == 4

    assert_best_so_far(SetClassifier(callback=callback).fit(X, Y), rounds=4)
    assert seen == [1, 2, 3, 4]


def test_control_c_leaves_the_best_model_so_far():
    """It comes while the loss is being computed in round 5."""
    rounds = []

    def loss(mistakes, positive):
        if len(rounds) == 4:
            raise KeyboardInterrupt
        return float(np.sqrt(mistakes.sum()))

    custom = SetLoss(loss, submodular=True, increasing=True)
    model = SetClassifier(custom, callback=rounds.append).fit(X, Y)
    rounds.clear()
    assert_best_so_far(model, rounds=4)


@pytest.mark.parametrize("verbose", [False, True])
def test_control_c_in_the_callback(verbose):
    def callback(progress):
        if progress.n_iter == 4:
            raise KeyboardInterrupt

    assert_best_so_far(SetClassifier(callback=callback, verbose=verbose).fit(X, Y), rounds=4)


def test_control_c_before_there_is_a_model():
    def loss(mistakes, positive):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SetClassifier(SetLoss(loss, submodular=True, increasing=True)).fit(X, Y)


def test_too_few_rounds_are_a_warning():
    sentence = r"SetClassifier stopped after 2 rounds at a relative gap of .*, above tol=0.001: "
    with pytest.warns(ConvergenceWarning, match=sentence) as caught:
        model = SetClassifier(max_iter=2).fit(X, Y)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.n_iter_ == 2
    assert model.gap_ > 1e-3


def test_verbose_draws_a_bar_on_stderr(capsys):
    pytest.importorskip("rich", reason="without rich there are plain lines, tested below")
    model = SetClassifier(verbose=True).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert f"round {model.n_iter_}, relative gap" in err


def test_verbose_prints_lines_where_there_is_no_rich(capsys, monkeypatch):
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    seen = []
    SetClassifier(verbose=True, callback=seen.append).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith("round 1: value ")
    assert [line.split(":")[0] for line in lines[:3]] == ["round 1", "round 2", "round 4"]
    assert len(seen) >= len(lines)


def test_silence_is_the_default(capsys):
    SetClassifier().fit(X, Y)
    assert capsys.readouterr() == ("", "")


# ----------------------------------------------------------------------------------- certificates

MANY = np.random.default_rng(7).integers(0, 2, size=(n, 17))


@pytest.mark.parametrize(
    ("loss", "surrogate"),
    [
        (Hamming(np.arange(1.0, 18.0)), "slack"),
        (EarlyDetection(), "slack"),
        (EarlyDetection() + Jaccard(), "margin"),
    ],
)
def test_no_exact_maximiser_is_said_once(loss, surrogate):
    with pytest.warns(UserWarning, match="has no exact maximiser for 17 elements") as caught:
        model = SetClassifier(loss, surrogate, C=0.01, callback=lambda p: True).fit(X, MANY)
    assert len(caught) == 1
    assert str(caught[0].message).endswith(
        "a greedy search stands for it, and gap_ is no certificate"
    )
    assert not model.certified_


def test_the_warning_points_at_the_call_of_fit():
    model = SetClassifier(EarlyDetection(), "slack", callback=lambda p: True)
    with pytest.warns(UserWarning, match="has no exact maximiser") as caught:
        model.fit(X, MANY)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("loss", "surrogate"),
    [
        ("jaccard", "lovasz"),
        ("jaccard", "slack"),
        ("dice", "decomposed"),
        (EarlyDetection(), "margin"),
        (Hamming(np.arange(1.0, 18.0)), "margin"),
        (SetLoss(lambda m, q: float(m.any()), submodular=True, increasing=True), "lovasz"),
    ],
)
def test_exact_maximisers_are_certified(loss, surrogate):
    model = SetClassifier(loss, surrogate, C=0.01, callback=lambda p: p.n_iter == 2)
    assert model.fit(X, MANY).certified_


def test_what_is_not_known_to_be_convex_is_not_certified():
    """l = 1 for two mistakes out of two: the planes of its Lovász hinge are no lower bounds."""
    loss = SetLoss(lambda mistakes, positive: float(mistakes.all()))
    model = SetClassifier(loss, fit_intercept=False).fit(np.ones((2, 1)), [[1, 1], [1, -1]])
    assert not model.certified_


def test_every_set_is_looked_at_for_the_certificate():
    """The largest set, of positives alone, is a small grid of counts; the second one is not."""
    loss = CountsLoss(lambda n, q, m, r: np.sqrt(n + 2 * q))
    truth = np.ones(9600, int)
    truth[5000:7300] = 0
    groups = (np.arange(9600) >= 5000).astype(int)
    model = SetClassifier(loss, "slack", callback=lambda p: True)
    with pytest.warns(UserWarning, match="has no exact maximiser for 4600 elements"):
        model.fit(np.ones((9600, 1)), truth, groups=groups)
    assert not model.certified_


def test_the_submodular_part_that_is_negative_is_said_once():
    with pytest.warns(UserWarning, match="the submodular part of .* is negative") as caught:
        SetClassifier(CardinalityLoss(lambda k, p: k * (k > 1)), "decomposed").fit(X, Y)
    assert len(caught) == 1


# --------------------------------------------------------------------------------------- bad input

NOT_LABELS = r"y must hold labels in \{0, 1\} or \{-1, \+1\} when it is a matrix, got "
BAD = [
    (
        {"surrogate": "hinges"},
        {},
        ValueError,
        "surrogate must be one of decomposed, .*, got 'hinges'",
    ),
    ({"loss": "overlap"}, {}, ValueError, "loss must be one of dice, .*, got 'overlap'"),
    ({"loss": 3}, {}, TypeError, "loss must be a Loss or a name, got int"),
    ({"loss": "dice"}, {}, ValueError, "loss must be submodular for LovaszHinge, got Dice"),
    ({"C": 0.0}, {}, ValueError, "C must be positive, got 0"),
    ({"C": "1"}, {}, TypeError, "C must be a real number, got str"),
    ({"tol": -1.0}, {}, ValueError, "tol must not be negative, got -1"),
    ({"max_iter": 0}, {}, ValueError, "max_iter must be at least 1, got 0"),
    ({"max_iter": 1e3}, {}, TypeError, "max_iter must be an integer, got float"),
    ({"surrogate": ["lovasz"]}, {}, TypeError, "surrogate must be a Surrogate or a name, got list"),
    ({"n_jobs": 0}, {}, ValueError, "n_jobs must not be 0, got 0"),
    ({"n_jobs": "a"}, {}, TypeError, "n_jobs must be an integer or None, got str"),
    ({"n_jobs": 1.5}, {}, TypeError, "n_jobs must be an integer or None, got float"),
    (
        {"sets": "bags"},
        {},
        ValueError,
        "sets must be 'auto', 'rows', 'groups' or 'sample', got 'bags'",
    ),
    ({"sets": "groups"}, {"y": y}, ValueError, "groups must be given when sets='groups', got None"),
    (
        {"sets": "groups"},
        {"groups": GROUPS},
        ValueError,
        r"y must have shape \(n,\) when samples are grouped into sets, got \(60, 3\)",
    ),
    ({"sets": "sample"}, {}, ValueError, r"y must have shape \(n,\) when samples are grouped"),
    ({}, {"groups": GROUPS}, ValueError, r"y must have shape \(n,\) when samples are grouped"),
    (
        {"sets": "rows"},
        {"y": y},
        ValueError,
        r"y must have shape \(n, p\) when sets='rows', got \(60,\)",
    ),
    ({}, {"y": y, "groups": GROUPS[:9]}, ValueError, r"groups must have shape \(60,\), got \(9,\)"),
    *(
        ({}, {"y": y, "groups": groups}, ValueError, "groups must name a set for every sample, got")
        for groups in (
            [None] * n,
            [None, *GROUPS[1:]],
            [None, *map(str, GROUPS[1:])],
            np.array([np.nan, *map(str, GROUPS[1:])], object),
            np.where(GROUPS == 0, np.nan, GROUPS),
            np.where(GROUPS == 0, np.datetime64("NaT"), np.datetime64("2020-01-01")),
        )
    ),
    (
        {},
        {"y": y, "groups": np.array(["a", *GROUPS[1:].tolist()], object)},
        TypeError,
        "groups must be of one type, got int and str",
    ),
    (
        {"sets": "sample"},
        {"y": y, "groups": GROUPS},
        ValueError,
        "groups must be None when sets='sample'",
    ),
    ({}, {"y": Y + 1}, ValueError, NOT_LABELS + r"\[1, 2\]"),
    ({}, {"y": Y - X[:, :1]}, ValueError, NOT_LABELS),
    ({}, {"y": np.where(Y > 0, 1, -Y[::-1])}, ValueError, NOT_LABELS + r"\[-1, 0, 1\]"),
    ({}, {"y": Y.astype(str)}, ValueError, NOT_LABELS + r"\['0', '1'\]"),
    (
        {},
        {"y": Y.astype(object)},
        TypeError,
        "y must hold numbers or bools when it is a matrix, got dtype object",
    ),
    ({}, {"y": np.where(Y > 0, "a", None)}, TypeError, "y must hold numbers or bools"),
    ({}, {"y": np.zeros((n, 2, 2))}, ValueError, "Found array with dim 3"),
    ({}, {"y": np.zeros((n, 0))}, ValueError, r"Found array with 0 feature\(s\)"),
    (
        {},
        {"y": np.ones(n)},
        ValueError,
        r"only one class is present: y must hold two classes, got \[1.0\]",
    ),
    ({}, {"y": np.arange(n) % 3}, ValueError, "Only binary classification is supported"),
    ({}, {"y": X[:, 0]}, ValueError, "Unknown label type"),
    ({}, {"y": np.where(y == 1, 1.0, np.nan)}, ValueError, "Input y contains NaN"),
    ({}, {"y": y[:9]}, ValueError, "inconsistent numbers of samples"),
    ({}, {"X": np.where(X > 2, np.nan, X)}, ValueError, "Input X contains NaN"),
    ({}, {"X": np.where(X > 2, np.inf, X)}, ValueError, "Input X contains infinity"),
    ({}, {"X": X[:, 0]}, ValueError, "Expected 2D array, got 1D array"),
    (
        {},
        {"sample_weight": np.ones(9)},
        ValueError,
        r"sample_weight must have shape \(60,\), got \(9,\)",
    ),
    *(
        ({}, {"sample_weight": weight}, TypeError, "sample_weight must hold real numbers, got")
        for weight in (["a"] * n, ["1"] * n, "balanced")
    ),
    (
        {},
        {"sample_weight": [[1], [1, 2]]},
        TypeError,
        "sample_weight must be an array of numbers, got rows of different lengths",
    ),
    (
        {},
        {"sample_weight": -np.ones(n)},
        ValueError,
        "sample_weight must not be negative, got -1",
    ),
    (
        {},
        {"sample_weight": np.full(n, np.nan)},
        ValueError,
        "sample_weight must be finite, got nan",
    ),
    (
        {},
        {"sample_weight": np.zeros(n)},
        ValueError,
        "sample_weight must not be zero for every sample, got only zeros",
    ),
    ({}, {"y": y, "sample_weight": np.zeros(n)}, ValueError, "sample_weight must not be zero"),
    (
        {},
        {"y": y, "groups": GROUPS, "sample_weight": np.full(n, 0.5)},
        ValueError,
        "sample_weight must be whole numbers when samples are elements of a set, got 0.5",
    ),
    (
        {"loss": "exponential"},
        {"y": y, "sample_weight": np.full(n, 1.5)},
        ValueError,
        "sample_weight must be whole numbers when samples are elements of a set, got 1.5",
    ),
    (
        {"surrogate": "slack"},
        {"y": y, "sample_weight": np.full(n, 1.5)},
        ValueError,
        "sample_weight must be whole numbers when samples are elements of a set, got 1.5",
    ),
    (
        {"class_weight": {0: 1, 1: 2}},
        {},
        ValueError,
        r"class_weight must be None when y is a matrix, got \{0: 1, 1: 2\}: give the loss weights",
    ),
    ({"class_weight": "heavy"}, {"y": y}, ValueError, "class_weight"),
]


@pytest.mark.parametrize(("options", "arguments", "error", "sentence"), BAD)
def test_bad_input_to_fit(options, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        SetClassifier(**options).fit(**{"X": X, "y": Y, **arguments})


@pytest.mark.parametrize(
    ("options", "arguments", "sentence"),
    [
        (
            {"loss": "hamming"},
            {"groups": GROUPS[:9]},
            r"groups must have shape \(60,\), got \(9,\)",
        ),
        (
            {"class_weight": {0: 1, 1: 2}},
            {"sample_weight": np.ones(9)},
            r"sample_weight must have shape \(60,\), got \(9,\)",
        ),
        (
            {"class_weight": {0: 1, 1: 2}},
            {"sample_weight": np.ones((n, 1))},
            r"sample_weight must have shape \(60,\), got \(60, 1\)",
        ),
        ({}, {"y": sparse.csr_array(Y)}, "y must be dense, got csr_array"),
    ],
)
def test_bad_input_that_is_found_late(options, arguments, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        SetClassifier(**options).fit(**{"X": X, "y": y, **arguments})


@pytest.mark.parametrize(
    ("truth", "arguments", "sentence"),
    [
        (Y, {"y": 2 * Y - 1}, r"y must hold the labels of fit, \[0, 1\], got .*-1"),
        (Y, {"y": Y[:, :2]}, r"y must have shape \(60, 3\), got \(60, 2\)"),
        (Y, {"y": y}, r"y must have shape \(60, 3\), got \(60,\)"),
        (Y, {"y": Y[:5]}, r"y must have shape \(60, 3\), got \(5, 3\)"),
        (Y, {"y": Y, "groups": GROUPS}, r"y must have shape \(n,\) when samples are grouped"),
        (Y, {"y": Y, "sample_weight": -np.ones(n)}, "sample_weight must not be negative"),
        (y, {"y": y[:5]}, r"y must have shape \(60,\), got \(5,\)"),
        (y, {"y": np.array(["a", "b"])[y]}, r"y must hold the labels of fit, \[0, 1\], got .*'"),
        (y, {"y": y, "groups": GROUPS[:5]}, r"groups must have shape \(60,\), got \(5,\)"),
    ],
)
def test_bad_input_to_score(truth, arguments, sentence):
    model = SetClassifier().fit(X, truth)
    with pytest.raises(ValueError, match=sentence):
        model.score(X, **arguments)


def test_a_score_of_groups_needs_groups():
    model = SetClassifier(sets="groups").fit(X, y, groups=GROUPS)
    with pytest.raises(ValueError, match=r"groups must be given .* set_score_request\(groups=True"):
        model.score(X, y)


def test_parameters_are_left_as_they_were_given():
    loss = Dice()
    model = SetClassifier(loss, "decomposed", C=np.float32(2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, Y)
    assert model.loss is loss
    assert type(model.C) is np.float32
