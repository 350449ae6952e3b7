"""Abstention: the loss that the Lovász hinge is consistent for, and the link to it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import setwise as sw
from setwise.surrogates._lovasz import abstains

LOSSES = {
    "jaccard": sw.losses.Jaccard(),
    "exponential": sw.losses.Exponential(),
    "truncated": sw.losses.TruncatedModular(1.5),
    "hamming": sw.losses.Hamming(),
}


def loss_with_abstention(loss: sw.losses.Loss, y: np.ndarray, v: np.ndarray) -> float:
    """l_abs(v) = f({v y < 0}) + f({v y <= 0})."""
    function = loss.set_function(y)
    return float(function(v * y < 0) + function(v * y <= 0))


def linked(u: np.ndarray) -> np.ndarray:
    """v in {-1, 0, 1}^p of scores."""
    return np.where(abstains(u, np.array([0, len(u)])), 0, np.sign(u))


@pytest.mark.parametrize("name", LOSSES)
@given(st.data())
def test_the_hinge_of_clipped_scores_is_a_mean_of_losses_with_abstention(name, data):
    p = data.draw(st.integers(1, 4))
    number = st.floats(-1.0, 1.0)
    u = np.array(data.draw(st.lists(number, min_size=p, max_size=p)))
    y = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=p, max_size=p)))
    loss = LOSSES[name]
    order = np.argsort(-np.abs(u), kind="stable")
    levels = np.concatenate([[1.0], np.abs(u)[order], [0.0]])
    total = 0.0
    for j, gap in enumerate(-np.diff(levels)):
        prefix = np.zeros(p)
        prefix[order[:j]] = np.sign(u[order[:j]])
        total += gap * loss_with_abstention(loss, y, prefix)
    hinge = sw.surrogates.LovaszHinge(loss)(y, u)
    assert hinge == pytest.approx(total, abs=1e-9)


def least_expected_hinge(loss, truths, chances, turn):
    """A minimiser of E Lhinge(u) over u in [-1, 1]^p, with ties broken by a small push.

    The hinge is a maximum of linear functions: gains along an order of 1 - u y.
    """
    from itertools import permutations

    p, m = truths.shape[1], len(truths)
    cost = np.concatenate([turn * 1e-7, chances])
    rows, limits = [], []
    for k, y in enumerate(truths):
        function = loss.set_function(y)
        for order in permutations(range(p)):
            gains = function.gains(np.array(order))
            slope = np.zeros(p)
            slope[list(order)] = gains
            # sum_i gain_i (1 - u_i y_i) <= t_k
            row = np.zeros(p + m)
            row[:p] = -slope * y
            row[p + k] = -1.0
            rows.append(row)
            limits.append(-slope.sum())
    bounds = [(-1.0, 1.0)] * p + [(None, None)] * m
    answer = linprog(cost, A_ub=np.array(rows), b_ub=np.array(limits), bounds=bounds)
    assert answer.status == 0
    return answer.x[:p], float(chances @ answer.x[p:])


@pytest.mark.parametrize("name", LOSSES)
def test_what_minimises_the_hinge_abstains_best(name):
    """The consistency theorem on discrete distributions: link(argmin) is a best answer."""
    loss, p = LOSSES[name], 3
    rng = np.random.default_rng(0)
    answers = np.array([*product([-1, 0, 1], repeat=p)])
    truths = np.array([*product([-1, 1], repeat=p)])
    for _ in range(6):
        chances = rng.dirichlet(np.full(len(truths), 0.4))
        risks = np.array(
            [
                sum(
                    c * loss_with_abstention(loss, y, v)
                    for c, y in zip(chances, truths, strict=True)
                )
                for v in answers
            ]
        )
        u, value = least_expected_hinge(loss, truths, chances, rng.normal(size=p))
        assert value == pytest.approx(risks.min(), abs=1e-6)
        found = linked(u)
        own = risks[(answers == found).all(axis=1)][0]
        assert own == pytest.approx(risks.min(), abs=1e-5)


def test_certain_scores_never_abstain_and_no_scores_always_do():
    assert not abstains(np.array([2.0, -1.0, 5.0]), np.array([0, 3])).any()
    assert abstains(np.zeros(4), np.array([0, 4])).all()
    assert abstains(np.array([0.9, 0.1, -0.8]), np.array([0, 3])).tolist() == [False, True, False]
    assert abstains(np.zeros(0), np.array([0, 0])).shape == (0,)


def test_the_classifier_abstains_by_sets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.normal(size=(80, 3)) > 0).astype(int)
    model = sw.SetClassifier(C=0.1).fit(X, Y)
    labels, open_ = model.predict(X, abstain=True)
    assert np.array_equal(labels, model.predict(X))
    scores = model.decision_function(X)
    for i in range(80):
        assert np.array_equal(open_[i], abstains(scores[i], np.array([0, 3])))
    columns = sw.SetClassifier(C=0.1, sets="columns").fit(X, Y)
    _, open_ = columns.predict(X, abstain=True)
    scores = columns.decision_function(X)
    assert np.array_equal(open_[:, 1], abstains(scores[:, 1], np.array([0, 80])))
    groups = rng.integers(0, 9, 80)
    grouped = sw.SetClassifier(sets="groups").fit(X, Y[:, 0], groups=groups)
    _, open_ = grouped.predict(X, abstain=True, groups=groups)
    here = groups == 4
    scores = grouped.decision_function(X)[here]
    assert np.array_equal(open_[here], abstains(scores, np.array([0, len(scores)])))
    with pytest.raises(ValueError, match="groups must be given"):
        grouped.predict(X, abstain=True)
