"""SetClassifier: the problem it says it solves, solved."""

import numpy as np
import pytest
import reference
from set_classifier_problem import (
    GROUPS,
    SMALL_GROUPS,
    SMALL_X,
    SMALL_Y,
    SURROGATES,
    X,
    Y,
    n,
    objective,
    p,
    value_and_bound,
    y,
)
from sklearn.base import clone
from sklearn.svm import LinearSVC

from setwise import SetClassifier
from setwise.functions import decompose
from setwise.losses import Hamming, get


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


def column_sets(X, Y):
    """Scores of column k are linear in its row of weights."""
    full = np.column_stack([X, np.ones(len(X))])
    p = Y.shape[1]
    return [(Y[:, k], np.kron(np.eye(p)[k], full)) for k in range(p)]


def cell_sets(X, Y):
    """All rows of the matrix as one set."""
    truths, scores = zip(*row_sets(X, Y), strict=True)
    return [(np.concatenate(truths), np.concatenate(scores))]


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


@each_pair([("jaccard", "lovasz"), ("jaccard", "slack"), ("dice", "decomposed"), PAIRS[4]])
@pytest.mark.parametrize(("kind", "sets"), [("columns", column_sets), ("cells", cell_sets)])
def test_columns_and_cells_reach_the_minimum_over_all_sets_and_vertices(
    loss, surrogate, kind, sets
):
    """Columns of four elements, cells of a matrix of three rows and two columns."""
    some = slice(4 if kind == "columns" else 3)
    small_X, small_Y = SMALL_X[some], SMALL_Y[some, :2]
    model = SetClassifier(loss, surrogate, C=2.0, tol=1e-4, sets=kind).fit(small_X, small_Y)
    minimum = least(loss, surrogate, sets(small_X, small_Y), C=2.0)
    value, bound = value_and_bound(model)
    assert bound - 1e-5 <= minimum <= value + 1e-5
    assert value - minimum <= 1e-4 * max(1.0, value) + 1e-5
    assert model.coef_.shape == (2, 2)
    assert model.certified_


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_columns_are_a_fit_a_label(surrogate):
    """The objective falls apart into one a label, each of which is that of a sample."""
    whole = SetClassifier("jaccard", surrogate, tol=1e-5, sets="columns").fit(X, Y)
    each = [SetClassifier("jaccard", surrogate, tol=1e-5).fit(X, Y[:, k]) for k in range(p)]
    value = sum(value_and_bound(model)[0] for model in each)
    assert value_and_bound(whole)[0] == pytest.approx(value, rel=3e-5)


def test_one_column_is_the_sample_and_so_are_its_cells():
    sample = SetClassifier().fit(X, y)
    for sets in ("columns", "cells"):
        model = SetClassifier(sets=sets).fit(X, y[:, None])
        assert np.array_equal(model.coef_, sample.coef_)
        assert model.score(X, y[:, None]) == sample.score(X, y)


def test_a_modular_loss_does_not_ask_what_a_set_is():
    rows = SetClassifier("hamming").fit(X, Y)
    weight = np.random.default_rng(6).random(n)
    weighted = SetClassifier("hamming").fit(X, Y, sample_weight=weight)
    for sets in ("columns", "cells"):
        model = SetClassifier("hamming", sets=sets).fit(X, Y)
        assert np.array_equal(model.coef_, rows.coef_)
        assert model.score(X, Y) == pytest.approx(rows.score(X, Y), rel=1e-12)
        model.fit(X, Y, sample_weight=weight)
        assert np.array_equal(model.coef_, weighted.coef_)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("kind", ["rows", "columns", "cells", "groups", "sample"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_gap_is_honest(surrogate, kind, intercept):
    """The last primal is the objective of the fitted arrays, and a finer fit is within the gap."""
    truth = Y if kind in ("rows", "columns", "cells") else y
    groups = GROUPS if kind == "groups" else None
    model = SetClassifier("jaccard", surrogate, tol=0.05, fit_intercept=intercept, sets=kind)
    fine = clone(model).set_params(tol=1e-4).fit(X, truth, groups=groups)
    model.fit(X, truth, groups=groups)
    value, bound = value_and_bound(model)
    assert value == pytest.approx(objective(model, X, truth, groups), rel=1e-9)
    gap_scale = min(model.history_.primal[0] - bound, value)  # the fit starts at w = 0
    assert model.gap_ == pytest.approx((value - bound) / gap_scale, rel=1e-12)
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
