"""Decisions where a set is empty with a given probability, against sums over all truths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_registry import LOSSES
from reference import expected_loss, law_of_presence, subsets, weighted_ratio

import setwise as sw
from setwise.decisions._enumeration import expected_losses
from setwise.decisions._presence import LEAST_PRESENCE, Law, believed
from setwise.decisions._samples import Sampler

SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)


def law_of(p: np.ndarray, presence: float) -> Law:
    found, scale, there = believed(p, np.zeros(len(p), np.intp), np.array([presence]))
    return Law(found, float(scale[0]), float(1 - there[0]))


def case(n: int, seed: int, share: float) -> tuple[np.ndarray, float]:
    """Probabilities, and a presence between the largest of them and their sum."""
    rng = np.random.default_rng(seed)
    p = rng.random(n) ** rng.choice([0.3, 1.0, 4.0])
    if n > 1 and seed % 2:
        p[1] = p[0]
    low, high = p.max(), min(p.sum(), 1.0)
    return p, float(low + share * (high - low))


@pytest.mark.parametrize("name", LOSSES)
def test_is_the_best_of_all_sets(name):
    listed = LOSSES[name]
    for n in listed.sizes:
        for seed, share in enumerate(SHARES):
            if n == 0:
                continue
            p, presence = case(n, seed, share)
            law = law_of_presence(p, presence)
            decision = sw.decide(p, listed.loss, presence=presence)
            risks = [expected_loss(listed.definition, p, z, law) for z in subsets(n)]
            own = expected_loss(listed.definition, p, decision.mask, law)
            assert decision.exact
            assert own == pytest.approx(decision.expected, abs=1e-10)
            assert own <= min(risks) + 1e-10
            assert decision.bound <= min(risks) + 1e-11


@given(
    st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=4),
    st.floats(0.0, 1.0),
    st.sampled_from([None, 0.5, 1.0, 2.0]),
)
def test_overlap_of_any_probabilities(values, share, beta):
    p = np.array(values)
    presence = p.max() + share * (min(p.sum(), 1.0) - p.max())
    loss = sw.losses.Jaccard() if beta is None else sw.losses.FBeta(beta)
    definition = weighted_ratio(np.ones(len(p)), None if beta is None else beta**2)
    law = law_of_presence(p, presence)
    least = min(expected_loss(definition, p, z, law) for z in subsets(len(p)))
    decision = sw.decide(p, loss, presence=presence)
    assert expected_loss(definition, p, decision.mask, law) <= least + 1e-10
    assert decision.expected == pytest.approx(least, abs=1e-10)
    assert decision.bound <= least + 1e-12


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.floats(0.0, 1.0))
def test_the_law_has_the_presence_and_the_probabilities(values, presence):
    p = np.array(values)
    law = law_of(p, presence)
    there = presence if p.any() and presence >= LEAST_PRESENCE else 0.0
    r = law.chances
    some = -np.expm1(np.log1p(-np.minimum(r, 1 - 1e-16)).sum()) / law.scale
    if there:
        assert some == pytest.approx(there, rel=1e-9)
    assert 1 - law.empty == pytest.approx(there)
    assert np.all(law.p <= there + 1e-12)
    capped = np.minimum(p, there)
    if capped.sum() >= there:
        assert np.allclose(law.p, capped, atol=0, rtol=1e-12)
    else:
        assert law.p.sum() == pytest.approx(there)


@pytest.mark.parametrize("loss", ["jaccard", "hamming", "face_track_4"])
def test_the_least_numbers_there_are(loss):
    """Probabilities whose sum has no reciprocal are raised in proportion as others are."""
    tiny = np.nextafter(0.0, 1.0)
    raised = sw.decide(np.full(4, tiny), loss, presence=1.0)
    known = sw.decide(np.full(4, 0.25), loss, presence=1.0)
    assert raised.expected == pytest.approx(known.expected)
    for presence in (tiny, 1e-308):
        never = sw.decide([0.5, 0.25, tiny], loss, presence=presence)
        assert not never.mask.any()
        assert never.expected == pytest.approx(0.0, abs=1e-11)


def test_independence_is_a_scale_of_one():
    p = np.array([0.3, 0.6, 0.05, 0.2])
    presence = 1 - np.prod(1 - p)
    assert law_of(p, presence).scale == pytest.approx(1.0, abs=1e-12)
    for name in ("jaccard", "dice", "hamming", "exponential"):
        plain, told = sw.decide(p, name), sw.decide(p, name, presence=presence)
        assert np.array_equal(plain.mask, told.mask)
        assert plain.expected == pytest.approx(told.expected, abs=1e-12)


def test_counts_and_samples_agree_with_integrals_and_enumeration():
    p, presence = case(14, 3, 0.3)

    dice = sw.losses.CountsLoss(lambda n, q, m, r: (n + q) / np.maximum(2 * m - n + q, 1e-9))
    by_counts = sw.decide(p, dice, presence=presence)
    known = sw.decide(p, "dice", presence=presence)
    assert by_counts.method == "counts"
    assert by_counts.expected == pytest.approx(known.expected, abs=1e-9)
    assert np.array_equal(by_counts.mask, known.mask)
    loss = LOSSES["jaccard + hamming"].loss
    for share in (0.05, 0.9):
        p, presence = case(8, 2, share)
        law = law_of(p, presence)
        risks, _ = expected_losses(loss, law)
        answer = Sampler(4000).decide(loss, law)
        number = int(answer.mask @ (1 << np.arange(8)))
        assert answer.expected[0] == pytest.approx(risks[number], abs=0.1)
        assert answer.bound[0] <= risks.min()
        draws = law.draws(np.random.default_rng(1), 40_000)
        assert np.allclose(draws.mean(axis=0), law.p, atol=0.012)
        assert draws.any(axis=1).mean() == pytest.approx(presence, abs=0.012)


def test_rows_that_are_never_empty_get_an_element_each():
    p = np.array([[0.3, 0.2, 0.1], [0.05, 0.02, 0.01], [0.9, 0.8, 0.1]])
    assert not sw.decide(p[:2], "jaccard").mask.any()
    sure = sw.decide(p, "jaccard", presence=np.ones(3))
    assert sure.mask.any(axis=1).all()
    assert sure.mask[0].tolist() == [True, False, False]
    # Raised in proportion to a sum of 1: exactly one element is there.
    assert sure.expected[1] == pytest.approx(1 - 5 / 8)
    absent = sw.decide(p, "jaccard", presence=np.zeros(3))
    assert not absent.mask.any()
    assert not absent.expected.any()


def test_batches_groups_and_columns_are_decided_alike():
    rng = np.random.default_rng(0)
    p, q = rng.random((6, 5)), rng.random(6)
    rows = sw.decide(p, "dice", presence=q)
    for i in range(6):
        one = sw.decide(p[i], "dice", presence=q[i])
        assert np.array_equal(one.mask, rows.mask[i])
        assert one.expected == pytest.approx(rows.expected[i], abs=1e-14)
    columns = sw.decide(p.T, "dice", presence=q, sets="columns")
    assert np.array_equal(columns.mask.T, rows.mask)
    groups = sw.decide(p.ravel(), "dice", presence=q, groups=np.repeat(np.arange(6), 5))
    assert np.array_equal(groups.mask, rows.mask.ravel())


def test_many_elements():
    """The equation for c, and the expectation, of a set of many elements."""
    p = np.random.default_rng(0).random(20_000) * 1e-3
    for presence in (0.01, 0.5, 0.9, 0.99995):
        law = law_of(p, presence)
        some = -np.expm1(np.log1p(-law.chances).sum()) / law.scale
        assert some == pytest.approx(presence, rel=1e-12)
        decision = sw.decide(p, "jaccard", presence=presence)
        assert decision.exact
        assert decision.expected <= presence + decision.error


def test_bad_presence_gets_a_sentence():
    p = np.full((2, 3), 0.5)
    with pytest.raises(ValueError, match="presence"):
        sw.decide(p, "jaccard", presence=[0.5])
    with pytest.raises(ValueError, match="presence"):
        sw.decide(p, "jaccard", presence=[0.5, 1.5])
    with pytest.raises(ValueError, match="presence"):
        sw.decide(p, "jaccard", presence=[0.5, np.nan])
    with pytest.raises(ValueError, match="presence"):
        sw.decide(p, "jaccard", presence=[0.5, 0.5], weights=np.ones((2, 3)))
    with pytest.raises((TypeError, ValueError), match="presence"):
        sw.decide(p, "jaccard", presence="often")
