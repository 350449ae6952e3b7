"""Functions of counts kept as they are: sums over counts, exact alone, a bound among pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from marginals_cases import close
from strategies import arrays, edges, numbers

import setwise as sw
from setwise.fields import CardinalityPotential, Field, LabelCost, Pairwise, Potts
from setwise.inference._marginals._counts._count_factors import Counted, CountFunction, count_laws
from setwise.inference._marginals._methods import METHODS


def marginals_of(field: Field, temperature: float = 1.0) -> np.ndarray:
    labelings = reference.all_labelings(field.n_variables, field.n_labels)
    energies = field._energies(labelings) / temperature
    weights = np.exp(energies.min() - energies)
    return np.stack([weights @ (labelings == j) for j in range(field.n_labels)], 1) / weights.sum()


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1e4])
def test_sums_over_counts_are_those_over_all_choices(scale):
    """At 1e4 the plain sums vanish, and logarithms take their place."""
    rng = np.random.default_rng(0)
    sizes = [1, 2, 3, 5, 8]
    ones = np.array([False, True])
    factors = [CountFunction(np.arange(m), np.tile(ones, (m, 1)), np.zeros(m + 1)) for m in sizes]
    counted = Counted.of(factors, np.zeros((8, 2)))
    logits, heights = scale * rng.normal(size=19), scale * rng.normal(size=24)
    for n_threads in (1, 2):
        laws = count_laws(counted, logits, heights, n_threads)
        at, high = 0, 0
        for f, m in enumerate(sizes):
            choices = np.array(list(product([0, 1], repeat=m)))
            counts = choices.sum(axis=1)
            logs = choices @ logits[at : at + m] - heights[high : high + m + 1][counts]
            truth = np.logaddexp.reduce(logs)
            weights = np.exp(logs - truth)
            assert abs(laws.logs[f] - truth) <= laws.slack + 1e-15 * abs(truth)
            close_to = {"atol": 1e-11, "rtol": 1e-11}
            np.testing.assert_allclose(laws.q[at : at + m], weights @ choices, **close_to)
            both = (weights * counts) @ choices
            np.testing.assert_allclose(laws.with_count[at : at + m], both, **close_to)
            law = np.bincount(counts, weights, m + 1)
            np.testing.assert_allclose(laws.counts[high : high + m + 1], law, **close_to)
            at, high = at + m, high + m + 1


def test_many_elements_and_a_strong_function_of_their_count():
    """All alike is all that counts, though it is one choice of 2^1200."""
    n = 1200
    field = Field(np.zeros((n, 2)))
    k = np.arange(n + 1.0)
    field += CardinalityPotential(np.zeros(n, int), 40.0 * np.minimum(k, n - k))
    post = sw.marginals(field)
    assert (post.method, post.converged) == ("counts", True)
    truth = np.log(2.0) + np.log1p(n * np.exp(-40.0))
    assert post.log_partition_lower <= truth <= post.log_partition_upper
    assert post.width < 1e-6
    np.testing.assert_allclose(post.probabilities, 0.5, atol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_one_count_without_pairs_is_exact(seed, n_labels):
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(6, n_labels))
    unary[0, 0] = unary[3, 1] = np.inf
    field = Field(unary)
    if seed % 2:
        field += LabelCost(np.where(np.arange(n_labels) == 1, 2.0, 0.0))
    else:
        field += CardinalityPotential(rng.integers(0, n_labels, 6), 2.0 * rng.normal(size=7))
    for temperature in (0.3, 1.0):
        post = sw.marginals(field, "counts", temperature=temperature)
        truth = reference.log_partition(field, temperature)
        assert post.log_partition_lower <= truth + 1e-12 <= post.log_partition_upper + 2e-12
        assert post.width < 1e-10
        np.testing.assert_allclose(post.probabilities, marginals_of(field, temperature), atol=1e-12)


def test_unaries_far_apart_overflow_nowhere():
    """Labels 2e4 above the others have probability 0, whether they count or not."""
    field = Field([[0.0, 2e4], [2e4, 0.0], [0.0, 1.0]]) + LabelCost([1.0, 0.5])
    with np.errstate(all="raise", under="ignore"):
        post = sw.marginals(field, "counts")
    np.testing.assert_allclose(post.probabilities, marginals_of(field), atol=1e-12)
    assert close(post.log_partition_upper, reference.log_partition(field, 1.0))


def test_a_result_of_counts_is_no_start_of_blocks():
    """Among pairs there are its probabilities to go on from; else "auto" begins afresh."""
    rng = np.random.default_rng(0)
    field = Field(rng.normal(size=(40, 2)))
    one = field + sw.fields.RegionConsistency(np.arange(40) // 8, 0.5, 0.6)
    two = one + sw.fields.RegionConsistency(np.arange(40) // 20, 0.5, 0.6)
    for alone in (one, two):
        post = sw.marginals(alone, "counts")
        again = sw.marginals(alone, init=post)
        assert again.log_partition_upper == sw.marginals(alone).log_partition_upper
        with pytest.raises(ValueError, match="result of projection, got one without its blocks"):
            sw.marginals(alone, "projection", init=post)
    pairs = one + Potts(sw.fields.grid_edges((8, 5)), 0.5)
    assert sw.marginals(pairs, init=sw.marginals(pairs, "counts")).method == "trees"
    with pytest.raises(ValueError, match="init must be for a field of shape"):
        sw.marginals(Field(np.zeros((3, 2))) + LabelCost([1.0, 1.0]), init=post)


def test_auto_leaves_large_counts_to_trees_unless_one_pass_is_all():
    n = 2500
    alone = Field(np.zeros((n, 2))) + LabelCost([1.0, 1.0])
    among_pairs = alone + Potts(sw.fields.grid_edges((50, 50)), 0.5)
    assert METHODS.choose(alone)[0] == "counts"
    assert METHODS.choose(among_pairs)[0] == "trees"


def test_regions_label_costs_and_a_cardinality_around_one_label_are_counts_of_disjoint_variables():
    rng = np.random.default_rng(1)
    field = Field(rng.normal(size=(8, 2)))
    layers = field + sw.fields.RegionConsistency([0, 0, 0, 1, 1, 1, 1, -1], 0.8, 0.5)
    whole = field + CardinalityPotential(np.ones(8, int), rng.normal(size=9))
    whole += LabelCost([1.0, 0.5])
    for one in (layers, whole):
        post = sw.marginals(one, "counts")
        assert post.width < 1e-10
        assert close(post.log_partition_upper, reference.log_partition(one, 1.0))
        np.testing.assert_allclose(post.probabilities, marginals_of(one), atol=1e-12)


@st.composite
def fields_of_counts(draw: st.DrawFn) -> Field:
    n = draw(st.integers(1, 7))
    field = Field(draw(arrays(2 * n)).reshape(n, 2))
    ends = draw(edges(n))
    if len(ends):
        if draw(st.booleans()):
            field += Potts(ends, draw(arrays(len(ends), 0.0, 3.0)))
        else:
            field += Pairwise(ends, draw(arrays(4 * len(ends))).reshape(-1, 2, 2))
    if draw(st.booleans()):
        regions = np.array(draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
        field += sw.fields.RegionConsistency(regions, draw(numbers(0.0, 3.0)), 0.6)
    if draw(st.booleans()):
        field += LabelCost([draw(numbers(0.0, 4.0)), draw(numbers(0.0, 4.0))])
    center = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return field + CardinalityPotential(center, draw(arrays(n + 1)))


@given(fields_of_counts(), st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from([0, 1, 4, None]))
def test_the_bound_encloses_log_z_and_the_gap_is_not_negative(field, temperature, max_iter):
    truth = reference.log_partition(field, temperature)
    post = sw.marginals(field, "counts", temperature=temperature, max_iter=max_iter)
    assert post.log_partition_lower <= truth + 1e-12 * max(1.0, abs(truth))
    assert truth <= post.log_partition_upper + 1e-12 * max(1.0, abs(truth))
    assert min(post.history) >= truth - 1e-12 * max(1.0, abs(truth))
    assert post.gap >= 0
    np.testing.assert_allclose(post.probabilities.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("pairs", [0.3, 1.0])
def test_counts_kept_are_narrower_than_counts_relaxed(pairs):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        field = Field(rng.normal(size=(9, 2))) + Potts(sw.fields.grid_edges((3, 3)), pairs)
        field += sw.fields.RegionConsistency([0, 0, 0, 0, 1, 1, 1, 1, 1], 1.0, 0.5)
        truth = reference.log_partition(field, 1.0)
        kept, relaxed = (sw.marginals(field, m, tol=1e-6) for m in ("counts", "trees"))
        assert kept.log_partition_upper >= truth
        assert kept.log_partition_upper - truth <= 0.8 * (relaxed.log_partition_upper - truth)


def test_large_images_move_their_parts_on_the_way_and_threads_have_no_bearing():
    rng = np.random.default_rng(0)
    shape = (120, 100)
    field = Field(rng.normal(size=(12_000, 2))) + Potts(sw.fields.grid_edges(shape), 0.4)
    regions = (np.arange(120)[:, None] // 10 * 10 + np.arange(100) // 10).ravel()
    field += sw.fields.RegionConsistency(regions, 0.6, 0.7)
    one, two = (sw.marginals(field, n_jobs=k) for k in (1, 2))
    assert (one.method, one.converged) == ("counts", True)
    assert (one.probabilities == two.probabilities).all()
    assert one.log_partition_upper == two.log_partition_upper
    relaxed = sw.marginals(field, "trees")
    assert one.log_partition_upper < relaxed.log_partition_upper
    assert one.width < relaxed.width


def test_auto_takes_trees_where_steps_of_counts_get_stuck():
    """Cold, strong regions: the search of counts ends far from its least bound."""
    rng = np.random.default_rng(0)
    field = Field(rng.normal(size=(400, 2))) + Potts(sw.fields.grid_edges((20, 20)), 0.5)
    field += CardinalityPotential(rng.integers(0, 2, 400), 0.3 * np.sqrt(np.arange(401.0)))
    field += LabelCost([1.0, 1.0])
    field += sw.fields.RegionConsistency(np.arange(400) // 20, 30.0, 0.96)
    kept, relaxed, best = (
        sw.marginals(field, m, temperature=0.1) for m in ("counts", "trees", "auto")
    )
    assert not kept.converged
    assert best.log_partition_upper == relaxed.log_partition_upper < kept.log_partition_upper
    assert (best.method, best.converged, best.width) == ("trees", True, relaxed.width)
    assert best.reason == "counts did not converge: trees have the lower bound"


def test_what_counts_cannot_take_is_said():
    field = Field(np.zeros((4, 3))) + LabelCost([1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="counts needs two labels, or one count and no pairs"):
        sw.marginals(field, "counts")
    cliques = Field(np.zeros((3, 2))) + sw.fields.CliquePotential([[0, 1, 2]], np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="neither a pair nor a function of one count"):
        sw.marginals(cliques, "counts")
    wide = Field(np.zeros((40_000, 2))) + LabelCost([1.0, 1.0])
    with pytest.raises(ValueError, match=r"squared sizes sum to at most 1e[+]09, got"):
        sw.marginals(wide, "counts")
    assert sw.marginals(wide, max_iter=1).method == "projection"
