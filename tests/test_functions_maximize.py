"""Greedy maximisation: guarantees and bounds against brute force, laziness, bad input."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import increasing_functions, numbers, set_functions, submodular_functions

from setwise.functions import Cardinality, Coverage, Cut, Modular, Oracle, Table, maximize


def assert_bound(function, result, best):
    scale = max(1.0, np.abs(reference.all_values(function)).max())
    assert result.certified
    assert result.value == pytest.approx(function(result.mask), abs=1e-12 * scale)
    assert result.gap == result.bound - result.value >= 0
    assert 0 <= result.excess <= min(result.gap + 1e-12 * scale, result.gap_scale)
    proved = result.excess <= result.rounding
    assert result.relative_gap == (0.0 if proved else result.excess / result.gap_scale)
    assert best - 1e-10 * scale <= result.bound
    assert result.value <= best + 1e-12 * scale
    if result.exact:
        assert result.value == pytest.approx(best, rel=2e-9, abs=2e-9)
    if result.guarantee is not None and "expectation" not in result.assumes:
        assert result.value >= result.guarantee * best - 1e-10 * scale
    assert sorted(result.order.tolist()) == np.flatnonzero(result.mask).tolist()


@given(st.data())
def test_greedy_reaches_its_share_of_increasing_functions(data):
    function = data.draw(increasing_functions())
    k = data.draw(st.integers(0, function.n + 1))
    result = maximize(function, k)
    assert result.guarantee >= 1 - np.exp(-1)
    assert result.mask.sum() <= k
    assert_bound(function, result, reference.maximum(reference.all_values(function), k))


@given(st.data())
def test_the_bound_of_greedy_holds_for_every_submodular_function(data):
    function = data.draw(submodular_functions())
    function = function + Cardinality(np.full(function.n + 1, data.draw(numbers())))
    k = data.draw(st.integers(0, function.n))
    result = maximize(function, k)
    assert_bound(function, result, reference.maximum(reference.all_values(function), k))


def plain_greedy(function, k):
    mask, order = np.zeros(function.n, bool), []
    while len(order) < k:
        gains = np.full(function.n, -np.inf)
        for i in np.flatnonzero(~mask):
            mask[i] = True
            gains[i] = function(mask)
            mask[i] = False
        if not len(gains) or gains.max() <= function(mask):
            break
        order.append(int(gains.argmax()))
        mask[order[-1]] = True
    return order


def test_laziness_changes_nothing_but_the_number_of_evaluations():
    rng = np.random.default_rng(0)
    for _ in range(20):
        function = Coverage(
            [rng.integers(0, 40, size=6) for _ in range(30)], rng.integers(1, 9, size=40)
        )
        calls = []
        oracle = Oracle(
            lambda mask, F=function, seen=calls: seen.append(1) or F(mask),
            30,
            submodular=True,
            increasing=True,
        )
        result = maximize(oracle, 8)
        assert result.order.tolist() == plain_greedy(function, 8)
        # A full evaluation of every step would take 30 + 29 + ... + 23, and 22 for the bound.
        assert len(calls) < 150


@given(set_functions(), st.integers(0, 4))
def test_functions_of_unknown_kind_get_the_plain_greedy(function, k):
    oracle = Oracle(function, function.n)
    result = maximize(oracle, k)
    assert result.order.tolist() == plain_greedy(oracle, k)
    assert not result.certified
    assert not result.exact
    assert result.guarantee is None


def test_greedy_stops_when_no_gain_is_positive():
    result = maximize(Modular([3.0, -1.0, 2.0, 0.0]), 4)
    assert result.order.tolist() == [0, 2]
    assert result.n_iter == 2
    assert result.exact


def test_greedy_without_a_limit():
    result = maximize(Modular([3.0, -1.0, 2.0]), method="greedy")
    assert result.method == "greedy"
    assert result.value == 5.0
    assert result.exact


def test_the_guarantee_needs_its_assumptions():
    concave = Cardinality([0.0, 2.0, 3.0, 3.5])
    assert maximize(concave, 1).guarantee == 1.0
    assert maximize(concave, 2).guarantee == 0.75
    assert maximize(concave, 3).guarantee == 1.0
    below_zero = concave + Cardinality([-1.0] * 4)
    assert maximize(below_zero, 2).guarantee is None
    assert maximize(Cardinality([0.0, 2.0, 1.0]), 1).guarantee is None
    assert "increasing" in maximize(concave, 2).assumes


@given(submodular_functions(), numbers())
def test_the_double_greedy_reaches_a_third(function, shift):
    function = function + Cardinality(np.full(function.n + 1, shift))
    values = reference.all_values(function)
    result = maximize(function, method="double")
    assert result.method == "double"
    assert (result.guarantee is not None) or values[0] + values[-1] <= 1e-9
    assert_bound(function, result, reference.maximum(values))


@given(submodular_functions(), numbers(), st.integers(0, 2**32 - 1))
def test_the_bound_of_the_random_double_greedy(function, shift, seed):
    function = function + Cardinality(np.full(function.n + 1, shift))
    result = maximize(function, method="double_random", rng=seed)
    assert_bound(function, result, reference.maximum(reference.all_values(function)))


def test_the_random_double_greedy_reaches_a_half_in_expectation():
    rng = np.random.default_rng(0)
    for _ in range(10):
        ends = rng.integers(0, 8, size=(16, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        cut = Cut(ends, rng.random(len(ends)), n=8, directed=True)
        best = reference.maximum(reference.all_values(cut))
        runs = [maximize(cut, method="double_random", rng=rng) for _ in range(40)]
        assert {run.guarantee for run in runs} == {0.5}
        assert np.mean([run.value for run in runs]) >= 0.5 * best


def test_rng_makes_a_run_repeatable():
    ring = np.stack([np.arange(30), (np.arange(30) + 1) % 30], axis=1)
    cut = Cut(ring, n=30)
    masks = [
        maximize(cut, method="double_random", rng=seed).mask.tolist()
        for seed in (1, 1, np.random.default_rng(1), 2)
    ]
    assert masks[0] == masks[1] == masks[2] != masks[3]


@given(increasing_functions())
def test_an_increasing_function_is_largest_on_everything(function):
    result = maximize(function)
    assert result.method == "whole"
    assert result.mask.all()
    assert result.exact
    assert_bound(function, result, reference.maximum(reference.all_values(function)))


def test_increasing_is_enough_without_a_limit():
    assert maximize(Cardinality([0.0, 1.0, 4.0])).exact
    with pytest.raises(ValueError, match="function must be submodular to be maximised, got"):
        maximize(Cardinality([0.0, 1.0, 4.0]), 1)


@pytest.mark.parametrize("method", ["auto", "greedy", "double", "double_random"])
def test_no_element(method):
    result = maximize(Table([-2.0]), method=method)
    assert (result.value, result.bound) == (-2.0, -2.0)
    assert result.order.shape == result.mask.shape == (0,)


def test_more_elements_than_fit_a_batch():
    n = 3000
    result = maximize(Modular(np.arange(n) - 10.0), 5)
    assert result.order.tolist() == [2999, 2998, 2997, 2996, 2995]
    assert result.exact


def test_a_result_cannot_be_changed():
    result = maximize(Modular([1.0, -1.0]))
    with pytest.raises(AttributeError):
        result.value = 0.0
    with pytest.raises(ValueError, match="read-only"):
        result.mask[0] = True


@pytest.mark.parametrize(
    ("arguments", "options", "error", "sentence"),
    [
        ((-1,), {}, ValueError, "k must be at least 0, got -1"),
        ((1.0,), {}, TypeError, "k must be an integer, got float"),
        ((), {"method": "best"}, ValueError, "method must be one of 'auto', .*, got 'best'"),
        ((1,), {"method": "double"}, ValueError, "method must be 'greedy' or 'auto' when k is"),
        ((), {"rng": 1.5}, TypeError, "rng must be None, an integer .* float"),
        ((), {"rng": -1}, ValueError, "rng must not be negative, got -1"),
    ],
)
def test_bad_input(arguments, options, error, sentence):
    with pytest.raises(error, match=sentence):
        maximize(Modular([1.0]), *arguments, **options)
