"""Sparse probabilities and labels give what dense ones give, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import setwise as sw

LOSSES = [
    "jaccard",
    sw.losses.FBeta(2.0),
    2.0 * sw.losses.Dice(),
    "hamming",
    "exponential",
    sw.losses.CardinalityLoss(lambda k, p: np.sqrt(k / p)),
    sw.losses.Jaccard() + sw.losses.Hamming(),
]
FORMATS = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(LOSSES),
    st.sampled_from(FORMATS),
    st.sampled_from(["auto", "rows", "columns", "cells"]),
    st.booleans(),
)
def test_decisions(seed, loss, kind, sets, gated):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(0, 9, 2)
    dense = rng.random((n, p)) * (rng.random((n, p)) < 0.5)
    there = None
    if gated:
        there = rng.random({"cells": (), "columns": p}.get(sets, n))
    known = sw.decide(dense, loss, sets=sets, presence=there)
    found = sw.decide(kind(dense), loss, sets=sets, presence=there)
    assert found.mask.format == "csr"
    assert found.mask.dtype == np.bool_
    assert found.mask.data.all()
    assert np.array_equal(found.mask.toarray(), known.mask)
    for name in ("expected", "bound", "error", "exact"):
        assert np.array_equal(getattr(found, name), getattr(known, name)), name
    assert (found.method, found.law) == (known.method, known.law)
    assert repr(found) == repr(known)


@given(st.integers(0, 2**32 - 1), st.sampled_from(LOSSES), st.sampled_from(FORMATS))
def test_losses(seed, loss, kind):
    rng = np.random.default_rng(seed)
    loss = sw.losses.get(loss)
    y, z = rng.random((2, *rng.integers(0, 9, 2))) < 0.3
    known = loss(y, z)
    for a, b in ((kind(y), kind(z.astype(float))), (kind(y.astype(np.int8)), z), (y, kind(z))):
        assert np.array_equal(loss(a, b), known)


def test_unsorted_and_repeated_entries_are_summed_and_left_as_they_were():
    data, indices = np.array([0.2, 0.3, 0.4]), np.array([2, 0, 2])
    messy = sp.csr_array((data, indices, [0, 3]), shape=(1, 3))
    found = sw.decide(messy, "jaccard")
    assert found.mask.toarray().tolist() == sw.decide([[0.3, 0.0, 0.6]], "jaccard").mask.tolist()
    assert messy.indices.tolist() == [2, 0, 2]


def test_refusals():
    p = sp.csr_array([[0.5, 0.0]])
    with pytest.raises(ValueError, match="offsets must be None for a sparse matrix"):
        sw.decide(p, "jaccard", offsets=[0, 1])
    with pytest.raises(ValueError, match="weights must be None for a sparse matrix"):
        sw.decide(p, "jaccard", weights=[[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"probabilities must lie in \[0, 1\], got 1.5"):
        sw.decide(3 * p, "jaccard")
    with pytest.raises(ValueError, match="must have the shape of y_true"):
        sw.losses.Jaccard()(sp.csr_array((2, 3)), sp.csr_array((3, 2)))
    with pytest.raises(ValueError, match=r"y_true must hold labels in \{0, 1\} when it is sparse"):
        sw.losses.Jaccard()(-sp.eye_array(2, format="csr"), np.eye(2))


class Candidates(ClassifierMixin, BaseEstimator):
    """One-vs-rest with the small probabilities set to 0, in CSR format or not."""

    def __init__(self, sparse=True):
        self.sparse = sparse

    def fit(self, X, y):
        self.model_ = OneVsRestClassifier(LogisticRegression()).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        p = self.model_.predict_proba(X)
        p = np.where(p < 0.15, 0.0, p)
        return sp.csr_matrix(p) if self.sparse else p


@pytest.mark.parametrize("sets", ["rows", "columns", "cells"])
def test_set_decision(sets):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    Y = (X @ rng.normal(size=(4, 6)) + rng.normal(size=(200, 6)) > 1).astype(int)
    options = {"loss": "dice", "sets": sets, "calibrate": None}
    known = sw.SetDecision(Candidates(sparse=False), **options).fit(X[:120], Y[:120])
    found = sw.SetDecision(Candidates(), **options).fit(X[:120], Y[:120])
    predicted = found.predict(X[120:])
    assert predicted.format == "csr"
    assert np.array_equal(predicted.toarray(), known.predict(X[120:]))
    assert np.array_equal(found.expected_loss(X[120:]), known.expected_loss(X[120:]))
    assert found.score(X[120:], Y[120:]) == known.score(X[120:], Y[120:])
    assert np.array_equal(found.predict_proba(X).toarray(), known.predict_proba(X))
    with pytest.raises(ValueError, match="calibrate must be None or 'auto'"):
        sw.SetDecision(Candidates(), sets=sets, calibrate="sigmoid").fit(X, Y)
