"""SetClassifier: weights of samples and classes, and the score."""

import numpy as np
import pytest
import reference
from set_classifier_problem import GROUPS, SMALL_X, X, Y, n, value_and_bound, y

from setwise import SetClassifier, losses
from setwise.losses import CardinalityLoss, Dice, Jaccard, get

# ----------------------------------------------------------------------------------------- weights

TIMES = np.random.default_rng(2).integers(0, 4, size=n)


@pytest.mark.parametrize("surrogate", ["lovasz", "slack", "hinge"])
@pytest.mark.parametrize("kind", ["rows", "columns", "cells", "groups", "sample"])
def test_a_weight_is_how_often_a_sample_is_there(surrogate, kind):
    truth = Y if kind in ("rows", "columns", "cells") else y
    repeated = np.repeat(np.arange(n), TIMES)
    options = {"surrogate": surrogate, "tol": 1e-5, "sets": kind}
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


@pytest.mark.parametrize("kind", ["sample", "columns", "cells"])
def test_jaccard_of_a_sample_takes_any_weight(kind):
    """It is a ratio: a common factor of the weights changes nothing."""
    weight, truth = 1.0 + TIMES, y if kind == "sample" else Y
    whole = SetClassifier(tol=1e-6, sets=kind).fit(X, truth, sample_weight=weight)
    for factor in (0.5, 0.3):
        part = SetClassifier(tol=1e-6, sets=kind).fit(X, truth, sample_weight=factor * weight)
        assert value_and_bound(part)[0] == pytest.approx(value_and_bound(whole)[0], rel=3e-6)
        assert part.certified_
        assert part.score(X, truth, sample_weight=factor * weight) == pytest.approx(
            part.score(X, truth, sample_weight=weight), rel=1e-12
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


# ---------------------------------------------------------------------- weights of labels


@pytest.mark.parametrize("kind", [Jaccard, Dice])
def test_weights_of_labels_in_the_loss_are_those_of_repeated_labels(kind):
    """A label of weight 2 is a label that is there twice, with one score."""
    counts = np.array([2, 0, 1, 1])[: Y.shape[1]]
    many = np.repeat(np.arange(Y.shape[1]), counts)
    model = SetClassifier(kind(counts), C=0.3, tol=1e-6).fit(X, Y)
    assert model.certified_
    assert model.gap_ <= 1e-6
    assert model.score(X, Y) == pytest.approx(
        1.0 - kind()(Y[:, many], model.predict(X)[:, many]).mean(), rel=1e-12
    )
    assert np.allclose(model.coef_[counts == 0], 0.0)
    same = SetClassifier(kind(7.0 * counts), C=0.3, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(same.coef_, model.coef_, atol=1e-6)
    equal = SetClassifier(kind(np.full(Y.shape[1], 3.0)), C=0.3, tol=1e-6).fit(X, Y)
    plain = SetClassifier(kind(), C=0.3, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(equal.coef_, plain.coef_, atol=2e-3)


@pytest.mark.parametrize("kind", [Jaccard, Dice, losses.Hamming])
@pytest.mark.parametrize("n", [1, 9])
def test_a_wrong_number_of_weights_is_what_the_error_is_about(kind, n):
    with pytest.raises(ValueError, match=rf"^y must have {n} elements a set, one for each weight"):
        SetClassifier(kind(np.ones(n))).fit(X, Y)


def test_class_weights_of_a_matrix_point_to_the_loss_that_takes_them():
    with pytest.raises(ValueError, match=r"weights to the labels in loss, as (\w+)\(") as caught:
        SetClassifier("jaccard", class_weight="balanced").fit(X, Y)
    name = str(caught.value).partition(", as ")[2].partition("(")[0]
    assert name == "Jaccard"
    SetClassifier(getattr(losses, name)(np.ones(Y.shape[1]))).fit(X, Y)
