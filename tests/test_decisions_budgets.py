"""Budgets of labels against all choices, and the laws of their bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw

LOSSES = ["jaccard", "dice", sw.losses.FBeta(2.0), "coverage"]


def loss_of(loss, p, mask, weights):
    """The weighted mean over the labels, from the definitions."""
    scores = []
    for chances, chosen in zip(p.T, mask.T, strict=True):
        m, k, a = chances.sum(), chosen.sum(), chances[chosen].sum()
        if loss == "coverage":
            scores.append(1 - np.prod(1 - chances[chosen]))
        elif k == 0:
            scores.append(0.0)
        elif loss == "jaccard":
            scores.append(a / (m + k - a))
        else:
            b = 1.0 if loss == "dice" else 4.0
            scores.append((1 + b) * a / (k + b * m))
    return 1 - float(np.average(scores, weights=weights))


def choices(row, k, at_most):
    """All masks of a row with k labels of positive probability, or with all of them."""
    some = np.flatnonzero(row)
    sizes = range(min(k, len(some)) + 1) if at_most else [min(k, len(some))]
    for size in sizes:
        for chosen in itertools.combinations(some, size):
            yield np.isin(np.arange(len(row)), chosen)


def chances(rng, n, p):
    found = rng.random((n, p)) ** rng.choice([0.5, 2.0, 6.0]) * (rng.random((n, p)) < 0.8)
    if rng.random() < 0.3:
        found[rng.integers(n), rng.integers(p)] = 1.0
    return found


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("at_most", [False, True])
def test_against_all_choices(loss, at_most):
    rng = np.random.default_rng(0)
    optimal, cases, gaps = 0, 40, []
    for _ in range(cases):
        n, p, k = rng.integers(1, 4), rng.integers(1, 5), rng.integers(0, 3)
        q, weights = chances(rng, n, p), rng.random(p) + 0.1
        found = sw.decide_at_k(q, loss, k, weights=weights, at_most=at_most)
        every = [
            loss_of(loss, q, np.array(rows), weights)
            for rows in itertools.product(*(list(choices(row, k, at_most)) for row in q))
        ]
        assert found.expected == pytest.approx(loss_of(loss, q, found.mask, weights), abs=1e-12)
        assert found.bound <= min(every) + 1e-12
        assert any(np.allclose(found.expected, value, atol=1e-12) for value in every)
        assert np.average(found.of_labels, weights=weights) == pytest.approx(found.expected)
        close = found.expected <= min(every) + 1e-9
        assert close or not found.exact
        optimal += close
        gaps.append(found.regret_bound)
        sizes = found.mask.sum(1)
        most = np.minimum(k, np.count_nonzero(q, axis=1))
        assert np.all(sizes <= most if at_most else sizes == most)
    assert optimal >= 0.8 * cases
    assert np.mean(gaps) < 0.1


@given(st.integers(0, 2**32 - 1), st.sampled_from(LOSSES), st.booleans())
def test_sparse_is_dense_and_names_do_not_matter(seed, loss, at_most):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 30), rng.integers(2, 12)
    q, k = chances(rng, n, p), int(rng.integers(1, 4))
    known = sw.decide_at_k(q, loss, k, at_most=at_most)
    found = sw.decide_at_k(sp.csr_array(q), loss, k, at_most=at_most, n_jobs=1)
    assert found.mask.format == "csr"
    assert np.array_equal(found.mask.toarray(), known.mask)
    assert (found.expected, found.bound) == (known.expected, known.bound)
    assert repr(found) == repr(known)
    names = rng.permutation(p)
    other = sw.decide_at_k(q[:, names], loss, k, at_most=at_most)
    assert other.expected == pytest.approx(known.expected, abs=1e-9)
    assert other.bound <= known.expected + 1e-9
    twice = sw.decide_at_k(q, loss, k, at_most=at_most, weights=np.full(p, 7.0))
    assert twice.expected == pytest.approx(known.expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_beats_the_most_probable_labels_with_a_small_gap(loss):
    rng = np.random.default_rng(1)
    frequency = 1 / np.arange(1, 301) ** 0.7
    q = rng.beta(0.3, 2.0, (400, 300)) * (rng.random((400, 300)) < 20 * frequency / frequency.sum())
    found = sw.decide_at_k(q, loss, 3)
    top = np.zeros(q.shape, bool)
    np.put_along_axis(top, np.argsort(-q, axis=1, kind="stable")[:, :3], True, axis=1)
    top &= q > 0
    assert found.expected < loss_of(loss, q, top, np.ones(300)) - 0.01
    assert 0 <= found.regret_bound < 0.01
    assert sw.decide_at_k(q, loss, 3, at_most=True).expected <= found.expected + 1e-9


def test_edges_and_refusals():
    assert sw.decide_at_k(np.zeros((3, 2)), "dice", 1).mask.sum() == 0
    assert sw.decide_at_k(np.ones((3, 2)), "jaccard", 2).exact
    for shape in ((0, 3), (3, 0), (0, 0)):
        assert sw.decide_at_k(np.zeros(shape), "coverage", 2).mask.shape == shape
        assert sw.decide_at_k(sp.csr_matrix(shape), "dice", 2).mask.shape == shape
    with pytest.raises(ValueError, match="loss must be Jaccard, Dice, F-beta or 'coverage'"):
        sw.decide_at_k([[0.5]], "hamming", 1)
    with pytest.raises(ValueError, match=r"probabilities must have shape \(n, p\)"):
        sw.decide_at_k([0.5], "dice", 1)
    with pytest.raises(ValueError, match=r"probabilities must lie in \[0, 1\]"):
        sw.decide_at_k([[1.5]], "dice", 1)
    with pytest.raises(ValueError, match="weights must not all be 0"):
        sw.decide_at_k([[0.5]], "dice", 1, weights=[0.0])
    with pytest.raises(ValueError, match="k must"):
        sw.decide_at_k([[0.5]], "dice", -1)
