"""Decisions against sums over all truths, for every listed loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_registry import LOSSES, balanced
from reference import expected_loss, subsets, weighted_ratio

import setwise as sw
from setwise.decisions._enumeration import expected_losses
from setwise.decisions._presence import Law
from setwise.decisions._samples import Sampler

CHANCES = st.sampled_from([0.0, 1.0, 0.5, 0.25, 1e-3]) | st.floats(0.0, 1.0)


def chances(n: int, seed: int) -> np.ndarray:
    """Probabilities of all kinds, certain ones and ties among them."""
    rng = np.random.default_rng(seed)
    p = rng.random(n) ** rng.choice([0.3, 1.0, 4.0])
    if n and seed % 3 == 0:
        p[rng.integers(n)] = rng.choice([0.0, 1.0])
    if n > 1 and seed % 3 == 1:
        p[1] = p[0]
    return p


@pytest.mark.parametrize("name", LOSSES)
def test_is_the_best_of_all_sets(name):
    listed = LOSSES[name]
    for n in listed.sizes:
        for seed in range(4):
            p = chances(n, seed)
            decision = sw.decide(p, listed.loss)
            risks = [expected_loss(listed.definition, p, z) for z in subsets(n)]
            own = expected_loss(listed.definition, p, decision.mask)
            assert decision.exact
            assert decision.method in ("integrals", "majority", "enumeration")
            assert own == pytest.approx(decision.expected, abs=1e-11)
            assert own <= min(risks) + 1e-11
            assert decision.bound <= min(risks) + 1e-12
            assert decision.regret_bound <= 1e-11


@given(st.lists(CHANCES, max_size=4), st.sampled_from([None, 0.5, 1.0, 2.0]))
def test_overlap_of_any_probabilities(p, beta):
    p = np.array(p)
    loss = sw.losses.Jaccard() if beta is None else sw.losses.FBeta(beta)
    definition = weighted_ratio(np.ones(len(p)), None if beta is None else beta**2)
    decision = sw.decide(p, loss)
    least = min(expected_loss(definition, p, z) for z in subsets(len(p)))
    assert expected_loss(definition, p, decision.mask) <= least + 1e-11
    assert decision.expected == pytest.approx(least, abs=1e-11)
    assert decision.bound <= least + 1e-15


@given(
    st.lists(st.tuples(CHANCES, st.floats(0.01, 50.0) | st.just(0.0)), max_size=4),
    st.sampled_from([None, 0.5, 1.0, 3.0]),
)
def test_weights_have_a_bound_over_all_sets(pairs, beta):
    p, weights = np.array(pairs).reshape(-1, 2).T
    loss = sw.losses.Jaccard() if beta is None else sw.losses.FBeta(beta)
    definition = weighted_ratio(weights, None if beta is None else beta**2)
    decision = sw.decide(p, loss, weights=weights)
    risks = [expected_loss(definition, p, z) for z in subsets(len(p))]
    own = expected_loss(definition, p, decision.mask)
    assert own == pytest.approx(decision.expected, abs=1e-10)
    assert decision.bound <= min(risks) + 1e-12
    if decision.exact:
        assert own <= min(risks) + 2 * decision.error
    if len(set(weights.tolist())) <= 1:
        assert decision.exact


def test_a_weighted_best_set_need_not_be_a_prefix():
    """The case of the notes: the best set is {0, 1}, and no prefix of the order by probability."""
    weights, p = np.array([3.146, 0.516, 6.905, 0.054]), np.array([0.759, 0.402, 0.409, 0.067])
    definition = weighted_ratio(weights, None)
    decision = sw.decide(p, "jaccard", weights=weights)
    best = min(subsets(4), key=lambda z: expected_loss(definition, p, z))
    assert best.tolist() == [True, True, False, False]
    assert not decision.exact
    assert expected_loss(definition, p, best) < decision.expected
    assert decision.bound <= expected_loss(definition, p, best)


def plain_expectations(p: np.ndarray, beta: float | None) -> np.ndarray:
    """The expected loss of the first k in order, by the distributions of both counts: O(n^3)."""
    n, b = len(p), 1.0 if beta is None else beta**2
    p = np.sort(p)[::-1]

    def distribution(q):
        d = np.ones(1)
        for x in q:
            d = np.convolve(d, [1 - x, x])
        return d

    risks = [1 - np.prod(1 - p)]
    for k in range(1, n + 1):
        hits, others = distribution(p[:k]), distribution(p[k:])
        h, g = np.arange(k + 1)[:, None], np.arange(n - k + 1)
        score = h / (k + g) if beta is None else (1 + b) * h / (k + b * (h + g))
        risks.append(1 - hits @ score @ others)
    return np.array(risks)


@pytest.mark.parametrize("beta", [None, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [30, 80])
def test_integrals_equal_distributions_of_the_counts(beta, n):
    for seed in range(6):
        p = chances(n, seed)
        loss = sw.losses.Jaccard() if beta is None else sw.losses.FBeta(beta)
        decision = sw.decide(p, loss)
        risks = plain_expectations(p, beta)
        assert decision.expected == pytest.approx(risks.min(), abs=1e-11)
        assert risks[np.count_nonzero(decision.mask)] == pytest.approx(risks.min(), abs=1e-11)


@pytest.mark.parametrize("loss", ["jaccard", "dice"])
def test_large_sets_lie_between_moments(loss):
    """At 200,000 elements the law of large numbers leaves no room: the plug-in is near."""
    p = np.random.default_rng(0).random(200_000) ** 4
    decision = sw.decide(p, loss)
    k, hit = np.count_nonzero(decision.mask), p[decision.mask].sum()
    plug_in = hit / (k + p.sum() - hit) if loss == "jaccard" else 2 * hit / (k + p.sum())
    assert 1 - decision.expected == pytest.approx(plug_in, abs=1e-5)
    assert decision.exact
    assert decision.error <= 1e-9
    # The best threshold of F1 is half of its best score.
    if loss == "dice":
        cut = (1 - decision.expected) / 2
        assert p[decision.mask].min() == pytest.approx(cut, abs=1e-3)


def test_counts_equal_enumeration_and_integrals():
    p = chances(9, 5)
    loss = sw.losses.CountsLoss(balanced)
    larger = np.concatenate([p, np.zeros(5)])
    by_counts = sw.decide(larger, loss)
    assert by_counts.method == "counts"
    assert by_counts.exact
    risks, _ = expected_losses(loss, Law(larger[:0]))
    assert risks.tolist() == [0.0]
    dice = sw.losses.CountsLoss(lambda n, q, m, r: (n + q) / np.maximum(2 * m - n + q, 1e-9))
    for seed in range(3):
        p = chances(14, seed)
        found, known = sw.decide(p, dice), sw.decide(p, "dice")
        assert found.method == "counts"
        assert found.expected == pytest.approx(known.expected, abs=1e-9)


def test_a_loss_that_falls_is_never_called_exact_without_a_proof():
    """The case of the notes: no prefix is best for this loss of the number of mistakes."""
    table = np.array([0.0, 0.99, 0.22, 0.82, 0.12, 0.01])
    loss = sw.losses.CardinalityLoss(lambda k, p: table[np.minimum(k, 5).astype(int)])
    p = np.array([0.33, 1.0, 0.17, 0.02, 0.5])
    decision = sw.decide(p, loss)
    assert decision.method == "enumeration"
    assert decision.exact
    beyond = sw.decide(np.resize(p, 30), loss)
    assert beyond.method == "samples"
    assert not beyond.exact
    assert beyond.bound == -np.inf


def test_samples_bracket_the_truth():
    """Where enumeration knows the answer, samples keep within their stated errors."""
    loss = LOSSES["jaccard + hamming"].loss
    p = chances(8, 2)
    risks, _ = expected_losses(loss, Law(p))
    answer = Sampler(4000).decide(loss, Law(p))
    number = int(answer.mask @ (1 << np.arange(8)))
    assert answer.expected[0] == pytest.approx(risks[number], abs=0.1)
    assert risks[number] <= risks.min() + 0.05
    assert answer.bound[0] <= risks.min()


def test_expectation_of_a_large_increasing_loss_by_samples():
    loss = sw.losses.ItemsetLoss(np.arange(1.0, 41.0))
    p = chances(40, 1)
    decision = sw.decide(p, loss)
    assert decision.exact
    assert np.array_equal(decision.mask, p > 0.5)
    rng = np.random.default_rng(1)
    draws = rng.random((50_000, 40)) < np.minimum(p, 1 - p)
    mean = np.sqrt(draws @ np.arange(1.0, 41.0)).mean()
    assert abs(decision.expected - mean) <= decision.error


def test_order_and_threads_do_not_matter():
    rng = np.random.default_rng(3)
    p = rng.random((40, 30))
    turn = rng.permutation(30)
    one, two = (sw.decide(p, "jaccard", n_jobs=k) for k in (1, 2))
    moved = sw.decide(p[:, turn], "jaccard")
    assert np.array_equal(one.mask, two.mask)
    assert np.array_equal(one.expected, two.expected)
    assert np.array_equal(one.mask[:, turn], moved.mask)
    assert np.array_equal(one.expected, moved.expected)


@pytest.mark.parametrize("loss", ["jaccard", "f_beta", "hamming", "exponential", "face_track_4"])
def test_layouts_agree(loss):
    p = np.random.default_rng(0).random((5, 6))
    rows = sw.decide(p, loss)
    assert rows.mask.shape == p.shape
    assert rows.expected.shape == (5,)
    assert rows.exact.all()
    flat = sw.decide(p.ravel(), loss, offsets=np.arange(6) * 6)
    turn = np.random.default_rng(1).permutation(30)
    grouped = sw.decide(p.ravel()[turn], loss, groups=np.repeat(list("abcde"), 6)[turn])
    for i in range(5):
        one = sw.decide(p[i], loss)
        assert np.array_equal(one.mask, rows.mask[i])
        assert one.expected == rows.expected[i] == flat.expected[i]
        assert isinstance(one.exact, bool)
    assert np.array_equal(flat.mask.reshape(5, 6), rows.mask)
    assert np.array_equal(grouped.mask, rows.mask.ravel()[turn])
    assert grouped.expected == pytest.approx(rows.expected, abs=1e-12)


def test_columns_and_cells():
    p = np.random.default_rng(0).random((5, 6))
    whole = sw.decide(p, "dice", sets="cells")
    assert whole.mask.shape == p.shape
    assert whole.expected == sw.decide(p.ravel(), "dice").expected
    columns = sw.decide(p, "dice", sets="columns", weights=np.ones((5, 6)))
    across = sw.decide(p.T, "dice")
    assert np.array_equal(columns.mask, across.mask.T)
    assert columns.expected == pytest.approx(across.expected, abs=1e-14)


def test_float32_and_integers():
    p = np.random.default_rng(0).random(20).astype(np.float32)
    assert sw.decide(p, "dice").expected == sw.decide(p.astype(float), "dice").expected
    assert sw.decide([1, 0, 1], "jaccard").mask.tolist() == [True, False, True]


def test_empty_sets():
    nothing = sw.decide([], "jaccard")
    assert nothing.mask.shape == (0,)
    assert nothing.expected == 0
    ragged = sw.decide([0.9], "dice", offsets=[0, 0, 1, 1])
    assert ragged.expected == pytest.approx([0.0, 0.1, 0.0])
    assert sw.decide(np.zeros((0, 3)), "dice").expected.shape == (0,)
    assert sw.decide(np.zeros((0, 3)), "face_track_4").expected.shape == (0,)


def test_a_scale_scales_all_but_the_set():
    p = chances(7, 4)
    one, five = sw.decide(p, "dice"), sw.decide(p, 5.0 * sw.losses.Dice())
    assert np.array_equal(one.mask, five.mask)
    assert five.expected == pytest.approx(5 * one.expected)


# ------------------------------------------------------------------------------ answers of fields


FIELD = sw.fields.Field(np.random.default_rng(0).normal(size=(9, 3))) + sw.fields.Potts(
    sw.fields.grid_edges((3, 3)), 0.5
)


def test_marginals_are_decided_as_their_product():
    post = sw.marginals(FIELD)
    decision = sw.decide(post, "jaccard", label=2)
    plain = sw.decide(post.probabilities[:, 2], "jaccard")
    assert np.array_equal(decision.mask, plain.mask)
    assert decision.law == "the product of the marginals"
    assert plain.law == "independent elements"


@pytest.mark.parametrize("loss", ["jaccard", "hamming", "dice"])
def test_a_list_is_decided_among_its_items(loss):
    six = sw.diverse(FIELD, 6, sw.diversities.DivMBest(1.0))
    decision = sw.decide(six, loss, label=2, temperature=0.7)
    masks = six.labelings == 2
    chances_of = np.exp(-(six.values - six.values.min()) / 0.7)
    chances_of /= chances_of.sum()
    judge = sw.losses.get(loss)
    risks = [sum(c * judge(y, z) for c, y in zip(chances_of, masks, strict=True)) for z in masks]
    assert decision.expected == pytest.approx(min(risks))
    assert any(np.array_equal(decision.mask, z) for z in masks)
    # Over all sets, those outside the list too.
    for z in subsets(9):
        risk = sum(c * judge(y, z) for c, y in zip(chances_of, masks, strict=True))
        assert decision.bound <= risk + 1e-12
    assert decision.law == "the list at temperature 0.7"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"probabilities": [0.5, 1.5]}, r"probabilities must lie in \[0, 1\], got 1.5"),
        ({"probabilities": [0.5, np.nan]}, r"probabilities must lie in \[0, 1\], got nan"),
        ({"probabilities": np.zeros((1, 2, 3))}, "probabilities must have shape"),
        ({"sets": "rows"}, r"must have shape \(n, p\) for rows"),
        ({"sets": "cells"}, r"must have shape \(n, p\) for cells"),
        ({"offsets": [0, 2], "groups": [0, 0]}, "groups must be None when offsets"),
        ({"offsets": [0, 1]}, "offsets must go from 0 to 2"),
        ({"groups": [0]}, "groups must have shape"),
        ({"groups": [0.0, np.nan]}, "groups must name a set"),
        ({"loss": "hamming", "weights": [1.0, 2.0]}, "weights must be None for"),
        ({"weights": [1.0, -2.0]}, "weights must not be negative"),
        ({"temperature": 0.0}, "temperature must be positive"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments, words):
    call = {"probabilities": [0.5, 0.25], "loss": "jaccard"} | arguments
    with pytest.raises(ValueError, match=words):
        sw.decide(**call)


def test_fields_take_no_layout():
    with pytest.raises(ValueError, match="groups must be None for the answer of a field"):
        sw.decide(sw.marginals(FIELD), "jaccard", groups=[0] * 9)
    with pytest.raises(ValueError, match="label"):
        sw.decide(sw.marginals(FIELD), "jaccard", label=3)


@pytest.mark.parametrize("kind", ["weights", "table", "sampled"])
def test_a_term_that_falls_in_a_sum_that_does_not(kind):
    """The range of samples is that of a function that increases: a falling term has another."""
    n = 25
    rng = np.random.default_rng(0)
    p, falls = rng.random(n), -rng.random(n)
    function = {
        "weights": sw.functions.Modular(falls),
        "table": sw.functions.Cardinality(-0.5 * np.arange(n + 1)),
        "sampled": sw.functions.Modular(falls)
        + sw.functions.Coverage([[i // 2] for i in range(n)]),
    }[kind]
    decision = sw.decide(p, sw.losses.SetLoss(function) + sw.losses.Hamming())
    assert decision.method == "majority"
    assert decision.error >= 0
    wrong = np.minimum(p, 1 - p)
    expected = {
        "weights": (1 + falls) @ wrong,
        "table": 0.5 * wrong.sum(),
        "sampled": (1 + falls) @ wrong
        + sum(1 - np.prod(1 - wrong[k : k + 2]) for k in range(0, n, 2)),
    }[kind]
    assert decision.expected == pytest.approx(expected, abs=decision.error)
    assert decision.bound <= expected
