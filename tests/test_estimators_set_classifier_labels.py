"""SetClassifier: labels and features in any encoding."""

import numpy as np
import pytest
from scipy import sparse
from set_classifier_problem import GROUPS, X, Y, d, n, value_and_bound, y
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from setwise import SetClassifier


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


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["sample", "groups"])
@pytest.mark.parametrize("classes", [("ham", "spam"), (-1, 1), (False, True), (1.0, 2.0)])
def test_the_second_class_is_the_positive_one(classes, groups):
    labels = np.array(classes)[y]
    model = SetClassifier("jaccard").fit(X, labels, groups=groups)
    plain = SetClassifier("jaccard").fit(X, y, groups=groups)
    assert model.classes_.tolist() == list(classes)
    assert np.array_equal(model.coef_, plain.coef_)
    assert np.array_equal(model.predict(X) == classes[1], plain.predict(X) == 1)
    assert roc_auc_score(labels, model.decision_function(X)) > 0.8
    assert model.score(X, labels, groups=groups) == plain.score(X, y, groups=groups)


@pytest.mark.parametrize(
    "kind", ["csr_matrix", "csr_array", "csc_array", "coo_array", "lil_array", "dok_matrix"]
)
@pytest.mark.parametrize("sets", ["rows", "columns", "cells"])
def test_a_sparse_matrix_of_labels_is_the_dense_one(kind, sets):
    thin = getattr(sparse, kind)(Y)
    model, plain = (SetClassifier(sets=sets, tol=0.01).fit(X, truth) for truth in (thin, Y))
    assert np.array_equal(model.coef_, plain.coef_)
    assert model.classes_.tolist() == [0, 1]
    predicted = model.predict(X)
    assert type(predicted) is np.ndarray
    assert np.array_equal(predicted, plain.predict(X))
    assert model.score(X, thin) == plain.score(X, Y)
    assert plain.score(X, sparse.csr_array(Y.astype(bool))) == plain.score(X, Y)


def test_stored_zeros_are_zeros_and_other_encodings_have_no_sparse_form():
    stored = sparse.csr_array(np.ones_like(Y))
    stored.data = Y.ravel().copy()
    assert np.array_equal(SetClassifier().fit(X, stored).coef_, SetClassifier().fit(X, Y).coef_)
    model = SetClassifier().fit(X, 2 * Y - 1)
    with pytest.raises(ValueError, match=r"y must hold the labels of fit, \[-1, 1\], got .*0"):
        model.score(X, sparse.csr_array(Y))


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
