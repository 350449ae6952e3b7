"""The risk of a ranking equals the sum over its pairs, which it never lists."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from strategies import arrays

from setwise import _core
from setwise.estimators._boosting._rank_risk import RankRisk


@st.composite
def rankings(draw):
    """Levels, scores with many ties and gaps of exactly 1, weights, groups or None."""
    m = draw(st.integers(2, 9))
    levels = draw(st.lists(st.integers(0, draw(st.integers(1, 4))), min_size=m, max_size=m))
    weights = draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
    groups = draw(st.none() | st.lists(st.integers(0, 2), min_size=m, max_size=m))
    y, w = np.array(levels), np.array(weights, float)
    if not any(w[i] * w[j] for i, j in reference.ranked_pairs(y, groups)):
        levels[0], levels[1] = 0, 1
        y, w[:2] = np.array(levels), 1.0
        groups = groups and [groups[0], groups[0], *groups[2:]]
    return y, draw(arrays(m, -2.0, 2.0)), w, groups


def enumerated(y, f, w, groups):
    """Mean risk, a subgradient and concordance, pair by pair."""
    total = risk = concordant = 0.0
    slope = np.zeros(len(y))
    for i, j in reference.ranked_pairs(y, groups):
        weight = w[i] * w[j]
        total += weight
        risk += weight * max(0.0, 1.0 - (f[i] - f[j]))
        concordant += weight * ((f[i] > f[j]) + 0.5 * (f[i] == f[j]))
        if f[i] - 1.0 < f[j]:
            slope[i] -= weight
            slope[j] += weight
    return risk / total, slope / total, concordant / total


@given(rankings())
def test_value_and_subgradient_are_those_of_the_pairs(ranking):
    y, f, w, groups = ranking
    risk = RankRisk(y, w, groups)
    value, slope = risk(f)
    known, known_slope, auc = enumerated(*ranking)
    assert value == pytest.approx(known, abs=1e-12)
    np.testing.assert_allclose(slope, known_slope, atol=1e-12)
    assert risk.merit(f) == pytest.approx(auc, abs=1e-12)
    assert risk.offsets.tolist() == [0, len(y)]


@given(rankings())
def test_each_pair_has_a_risk_and_a_subgradient_and_the_mean_is_the_whole(ranking):
    y, f, w, groups = ranking
    risk = RankRisk(y, w, groups)
    values, slopes = risk.each(f)
    whole, slope = risk(f)
    assert slopes.shape == (len(values), len(y))
    assert values.mean() == pytest.approx(whole, abs=1e-12)
    np.testing.assert_allclose(slopes.mean(axis=0), slope, atol=1e-12)


@given(rankings(), st.data())
def test_it_is_convex_with_that_subgradient(ranking, data):
    y, f, w, groups = ranking
    risk = RankRisk(y, w, groups)
    value, slope = risk(f)
    other = data.draw(arrays(len(y), -2.0, 2.0))
    assert risk(other)[0] >= value + slope @ (other - f) - 1e-12


@given(rankings())
def test_a_weight_of_two_is_a_repeated_row_and_none_a_removed_one(ranking):
    y, f, w, groups = ranking
    repeats = w.astype(int)
    groups = np.zeros(len(y)) if groups is None else np.array(groups)
    rows = np.repeat(np.arange(len(y)), repeats)
    weighted, plain = RankRisk(y, w, groups), RankRisk(y[rows], None, groups[rows])
    (value, slope), (other, other_slope) = weighted(f), plain(f[rows])
    assert value == pytest.approx(other, abs=1e-12)
    np.testing.assert_allclose(slope, np.bincount(rows, other_slope, len(y)), atol=1e-12)
    assert weighted.merit(f) == pytest.approx(plain.merit(f[rows]), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_levels", [2, 3, 2000])
def test_many_rows(n_levels, weighted):
    rng = np.random.default_rng(0)
    n = 2000
    y, f = rng.integers(0, n_levels, n), np.round(rng.normal(size=n), 2)
    w = rng.random(n) if weighted else np.ones(n)
    pairs = (y[:, None] > y) * w[:, None] * w
    margins = f[:, None] - f
    active = pairs * (f[:, None] - 1 < f)
    risk = RankRisk(y, w)
    value, slope = risk(f)
    assert value == pytest.approx((pairs * np.maximum(1 - margins, 0)).sum() / pairs.sum())
    known = (active.sum(axis=0) - active.sum(axis=1)) / pairs.sum()
    np.testing.assert_allclose(slope, known, atol=1e-12)
    if n_levels == 2:
        assert risk.merit(f) == pytest.approx(roc_auc_score(y, f, sample_weight=w))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: RankRisk([1, 1]), ValueError, "y must hold two classes or levels whose sample_w"),
        (lambda: RankRisk([0, 1], [1, 0]), ValueError, "y must hold two classes or levels whose"),
        (lambda: RankRisk([0, 1], None, [0, 1]), ValueError, "is not zero in one group, got fewer"),
        (lambda: RankRisk([0, np.nan]), ValueError, "y must be finite, got nan"),
        (lambda: RankRisk([0, 1], [1.0]), ValueError, r"sample_weight must have shape \(2,\)"),
        (lambda: RankRisk([0, 1], [1, -1]), ValueError, "sample_weight must not be negative"),
        (lambda: RankRisk([0, 1], None, [0]), ValueError, r"groups must have shape \(2,\), got"),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_the_kernel_refuses_what_does_not_fit():
    levels, weights = np.array([0, 1], np.int32), np.ones(2)

    def make(levels=levels, weights=weights, offsets=(0, 2)):
        return _core.RankPairs(levels, weights, np.array(offsets, np.int64))

    for call, sentence in [
        (lambda: make(weights=np.ones(3)), "weights must have one entry a level"),
        (lambda: make(offsets=(0, 1)), "offsets must lead from 0"),
        (lambda: make(offsets=()), "offsets must lead from 0"),
        (lambda: make(offsets=(0, 2, 1, 2)), "offsets must not decrease"),
        (lambda: make(np.array([0, 2], np.int32)), "levels must lie between 0 and their number"),
        (lambda: make(np.array([0, -1], np.int32)), "levels must lie between 0 and their number"),
        (lambda: make().slopes(np.ones(3), 1.0, np.ones(2)), "scores and slopes must have one"),
        (lambda: make().slopes(np.ones(2), 1.0, np.ones(1)), "scores and slopes must have one"),
    ]:
        with pytest.raises((ValueError, TypeError), match=sentence):
            call()
