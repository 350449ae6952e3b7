"""The risks of whole lists equal the largest of all rankings, enumerated in exact fractions."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from setwise import _core
from setwise.estimators._boosting._list_risk import AveragePrecisionRisk, GainRisk

RISKS = [AveragePrecisionRisk, GainRisk]


@st.composite
def lists(draw, most=3):
    """Levels, scores on a coarse grid so that many tie, queries or None."""
    m = draw(st.integers(2, 5))
    y = np.array(draw(st.lists(st.integers(0, most), min_size=m, max_size=m)), float)
    f = np.array(draw(st.lists(st.integers(-8, 8), min_size=m, max_size=m)), float)
    f /= draw(st.sampled_from([1.0, 4.0, 32.0]))
    groups = draw(st.none() | st.lists(st.integers(0, 1), min_size=m, max_size=m))
    y[:2] = 0, 1
    groups = groups and np.array([groups[0], groups[0], *groups[2:]])
    return y, f, groups


def queries(y, groups):
    """The rows of each query in which something can be ranked."""
    groups = np.zeros(len(y), int) if groups is None else groups
    parts = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    return [rows for rows in parts if len(set(y[rows])) > 1]


def worst_precision(y, f):
    """The largest loss + psi - psi* in the terms of Yue et al., exactly."""
    high, low = np.flatnonzero(y > 0).tolist(), np.flatnonzero(y == 0).tolist()
    apart = {(i, j): Fraction(f[i]) - Fraction(f[j]) for i in high for j in low}
    best = Fraction(0)
    for place in permutations(range(len(y))):
        found = sorted(place[i] for i in high)
        merit = sum(Fraction(k + 1, at + 1) for k, at in enumerate(found)) / len(high)
        wrong = sum(apart[i, j] for i, j in apart if place[i] > place[j])
        best = max(best, 1 - merit - 2 * wrong / len(apart))
    return float(best)


def worst_gain(y, f, k=None):
    """The same with discounts, of the first k places, psi* the mean over the ideal rankings."""
    D = 1 / np.log2(np.arange(len(y)) + 2.0)
    D[k or len(y) :] = 0.0
    rankings = np.array(list(permutations(range(len(y)))))
    gains, psi = y[rankings] @ D, f[rankings] @ D
    ideal = (np.diff(y[rankings], axis=1) <= 0).all(axis=1)
    return (1 - gains / gains[ideal][0] + psi).max() - psi[ideal].mean()


def enumerated(worst, y, f, groups):
    return np.mean([worst(y[rows], f[rows]) for rows in queries(y, groups)])


@given(lists(most=1))
def test_average_precision_is_the_worst_of_all_rankings(case):
    y, f, groups = case
    value, slope = AveragePrecisionRisk(y, groups=groups)(f)
    assert value == pytest.approx(enumerated(worst_precision, y, f, groups), abs=1e-12)
    assert slope.sum() == pytest.approx(0.0, abs=1e-12)


@given(lists())
def test_discounted_gain_is_the_worst_of_all_rankings(case):
    y, f, groups = case
    value, slope = GainRisk(y, groups=groups)(f)
    assert value == pytest.approx(enumerated(worst_gain, y, f, groups), abs=1e-12)
    assert slope.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("risk", RISKS)
@given(lists(most=1), st.data())
def test_it_is_convex_with_that_subgradient_and_bounds_the_loss(risk, case, data):
    y, f, groups = case
    risk = risk(y, groups=groups)
    value, slope = risk(f)
    m = len(y)
    other = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=m, max_size=m)), float)
    assert risk(other)[0] >= value + slope @ (other - f) - 1e-12
    assert value >= 1 - risk.merit(f) - 1e-12
    values, slopes = risk.each(f)
    assert values.mean() == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(slopes.mean(axis=0), slope, atol=1e-12)


@pytest.mark.parametrize("risk", RISKS)
@given(lists(most=1), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_decides_nothing(risk, case, random):
    y, f, groups = case
    order = random.sample(range(len(y)), len(y))
    value, slope = risk(y, groups=groups)(f)
    mixed = risk(y[order], groups=None if groups is None else groups[order])
    again, slope_again = mixed(f[order])
    assert again == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(slope_again, slope[order], atol=1e-12)


@given(lists(), st.integers(1, 6))
def test_the_first_places_alone_are_the_worst_of_all_rankings(case, k):
    y, f, groups = case
    risk = GainRisk(y, groups=groups, k=k)
    value, slope = risk(f)
    worst = [worst_gain(y[rows], f[rows], k) for rows in queries(y, groups)]
    assert value == pytest.approx(np.mean(worst), abs=1e-12)
    assert risk(f[::-1])[0] >= value + slope @ (f[::-1] - f) - 1e-12
    assert value >= 1 - risk.merit(f) - 1e-12
    known = np.mean([ndcg_score([y[r]], [f[r]], k=k) for r in queries(y, groups)])
    assert risk.merit(f) == pytest.approx(known)


@given(lists())
def test_merits_are_scikit_learns(case):
    y, f, groups = case
    rows = queries(y, groups)
    known = np.mean([ndcg_score([y[r]], [f[r]]) for r in rows])
    assert GainRisk(y, groups=groups).merit(f) == pytest.approx(known)
    two = (y > 0).astype(float)
    known = np.mean([average_precision_score(two[r], f[r]) for r in queries(two, groups)])
    assert AveragePrecisionRisk(two, groups=groups).merit(f) == pytest.approx(known)


def test_long_lists_are_interleaved_as_place_by_place():
    """Beyond what can be enumerated: each irrelevant row takes its own best place."""
    random = np.random.default_rng(0)
    for p, n in ((40, 70), (3, 200), (150, 2)):
        y = np.repeat([1.0, 0.0], [p, n])
        f = random.normal(size=p + n) + 0.5 * y
        high, low = np.sort(f[:p])[::-1], np.sort(f[p:])[::-1]
        i, j = np.arange(1, p + 1)[None, :], np.arange(1, n + 1)[:, None]
        terms = (i / (i + j - 1) - i / (i + j)) / p - 2 * (high[None, :] - low[:, None]) / (p * n)
        tails = np.hstack([np.cumsum(terms[:, ::-1], axis=1), np.zeros((n, 1))])
        assert AveragePrecisionRisk(y)(f)[0] == pytest.approx(tails.max(axis=1).sum(), abs=1e-12)


@pytest.mark.parametrize("risk", RISKS)
def test_weights_are_those_of_queries(risk):
    y, f = np.array([0.0, 1, 1, 0, 1]), np.array([1.0, 0.5, 2.0, 2.5, 0.0])
    groups = np.array([0, 0, 1, 1, 1])
    values = [risk(y[groups == g])(f[groups == g])[0] for g in (0, 1)]
    weighted = risk(y, np.where(groups == 0, 3.0, 1.0), groups)
    assert weighted(f)[0] == pytest.approx(0.75 * values[0] + 0.25 * values[1])
    without = risk(y, [1, 1, 1, 1, 0], groups)
    assert without(f)[0] == pytest.approx(risk(y[:4], groups=groups[:4])(f[:4])[0])
    assert without(f)[1][4] == 0
    with pytest.raises(ValueError, match="sample_weight must be the same for all rows of a query"):
        risk(y, [1, 2, 1, 1, 1], groups)
    with pytest.raises(ValueError, match=r"y must hold two classes or levels .* in one group"):
        risk([0, 0, 1, 1, 1], groups=groups)


def test_bad_levels():
    with pytest.raises(ValueError, match="y must hold two classes with loss='average_precision'"):
        AveragePrecisionRisk([0, 1, 2])
    with pytest.raises(ValueError, match=r"y must hold gains that are not negative .* got -1"):
        GainRisk([-1, 0, 2])
    kernel = _core.AveragePrecisionRisk(np.ones(2, np.uint8), np.array([0, 2]))
    with pytest.raises(ValueError, match="losses must have one entry a query"):
        kernel.plane(np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="offsets must lead from 0 to the number of rows"):
        _core.AveragePrecisionRisk(np.ones(2, np.uint8), np.array([0, 3]))
