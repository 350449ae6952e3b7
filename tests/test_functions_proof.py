"""Nothing false: minimisation and maximisation against exact rationals, over 40 decades."""

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from rational_functions import exact_value, exact_values, wide_functions
from strategies import numbers, set_functions, submodular_functions

from setwise.functions import (
    Cardinality,
    Coverage,
    Cut,
    Modular,
    Oracle,
    SetFunction,
    Table,
    check,
    decompose,
    maximize,
    minimize,
)
from setwise.functions._numbers import gains_with_errors

SCALES = (1e-12, 1e7, 1e9)
UNITS = (2.0**-40, 2.0**23, 2.0**30)


def assert_nothing_false(function, result):
    """The bound is below the minimum, the set above it by no more than is said: in rationals."""
    if not result.certified:
        return
    least = min(exact_values(function))
    over = exact_value(function, result.mask) - least
    assert Fraction(result.bound) <= least
    assert over <= Fraction(result.excess)
    assert result.relative_gap <= 1e-9 or not result.converged
    if result.exact:
        assert over == 0 or over <= Fraction(result.rounding)


@given(wide_functions())
def test_a_proved_minimum_is_one_in_rationals(function):
    assert_nothing_false(function, minimize(function))


@given(wide_functions(), st.data())
def test_gains_are_within_their_errors_in_rationals(function, data):
    order = np.array(data.draw(st.permutations(range(function.n))), np.int64)
    order = order[: data.draw(st.integers(0, function.n))]
    chain = exact_chain(function, order)
    gains, errors = gains_with_errors(function, order)
    assert np.array_equal(gains, function.gains(order))
    for k, (gain, error) in enumerate(zip(gains, errors, strict=True)):
        assert abs(Fraction(gain) - (chain[k + 1] - chain[k])) <= Fraction(error)


def exact_chain(function, order):
    masks = np.zeros((len(order) + 1, function.n), bool)
    for k, element in enumerate(order):
        masks[k + 1 :, element] = True
    return [exact_value(function, mask) for mask in masks]


class Covered(SetFunction):
    """A family of a user's own, which says nothing about its numbers: what a coverage is."""

    def __init__(self, weights):
        self._set(n=len(weights) - 1, weights=np.array(weights))

    def _values(self, masks):
        pairs = np.pad(masks, ((0, 0), (0, 1))) | np.pad(masks, ((0, 0), (1, 0)))
        return np.where(pairs, self.weights, 0.0).sum(axis=1)

    def _gains(self, order):
        masks = np.tri(len(order) + 1, self.n, -1, bool)[:, np.argsort(order)]
        return np.diff(self._values(masks))

    is_submodular = is_increasing = True

    def exact(self):
        """The same function as one of the library."""
        return Coverage([[i, i + 1] for i in range(self.n)], self.weights)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([0.0, 3.0, 20.0]))
def test_nothing_false_is_said_of_a_family_of_ones_own(seed, n, decades):
    rng = np.random.default_rng(seed)
    own = Covered(rng.uniform(1.0, 9.0, n + 1) * 10.0 ** rng.uniform(-decades, decades, n + 1))
    price = Modular(-own.weights[rng.integers(0, n + 1, n)] * rng.choice([0.5, 1.0, 2.0], n))
    order = rng.permutation(n)
    chain = exact_chain(own.exact(), order)
    for gain, error, rise in zip(*gains_with_errors(own, order), np.diff(chain), strict=True):
        assert abs(Fraction(gain) - rise) <= Fraction(error)
    result, exact = minimize(own + price), own.exact() + price
    least = min(exact_values(exact))
    over = exact_value(exact, result.mask) - least
    assert Fraction(result.bound) <= least
    assert over <= Fraction(result.excess)
    assert not result.exact or over <= Fraction(result.rounding)
    assert result.exact or decades > 0.0
    largest = maximize(own + price, rng=0)
    assert Fraction(largest.bound) >= max(exact_values(exact))


@given(wide_functions(decades=1))
def test_functions_of_one_scale_are_proved(function):
    result = minimize(function)
    assert result.exact
    assert exact_value(function, result.mask) - min(exact_values(function)) <= Fraction(
        result.rounding
    )


@given(submodular_functions(), st.sampled_from(SCALES), numbers())
def test_a_unit_and_a_constant_change_no_minimum(function, scale, shift):
    """1e-12, 1e7, 1e9 times F, and a constant a thousand times larger than F."""
    plain = minimize(function)
    constant = Cardinality(np.full(function.n + 1, 1000.0 * scale * (shift + 5.0)))
    for other, unit in ((scale * function, scale), (scale * function + constant, scale)):
        result = minimize(other)
        assert result.exact == plain.exact
        assert result.excess <= 1e-9 * max(result.gap_scale, 1e-3 * unit)
        over = function(result.mask) - plain.value
        assert over <= 1e-9 * max(1.0, abs(plain.value))


@given(wide_functions(), st.data())
def test_a_proved_maximum_is_one_in_rationals(function, data):
    k = data.draw(st.none() | st.integers(0, function.n))
    result = maximize(function, k, rng=0)
    if not result.certified:
        return
    sizes = [bin(index).count("1") for index in range(1 << function.n)]
    allowed = function.n if k is None else k
    values = zip(exact_values(function), sizes, strict=True)
    best = max(value for value, size in values if size <= allowed)
    short = best - exact_value(function, result.mask)
    assert best <= Fraction(result.bound)
    assert short <= Fraction(result.excess)
    if result.exact:
        assert short == 0 or short <= Fraction(result.rounding)


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 1, 2]))
def test_no_number_of_a_table_hides_behind_a_maximum(seed, k):
    """However large F(empty) beside it: an exact answer is the best, to the last digit."""
    rng = np.random.default_rng(seed)
    values = rng.choice([-1.0, 0.0, 1.0], 4) * 10.0 ** rng.uniform(-20, 20, 4)
    values[3] = min(values[3], values[1] + values[2] - values[0])
    table = Table(values)
    if table.is_submodular:
        result = maximize(table, k)
        assert not result.exact or result.value == max(values[:3] if k == 1 else values)


def test_a_bend_that_is_lost_in_a_sum_is_counted():
    """In floats the tables cancel and seem to leave a modular function, in rationals not."""
    line = 7e15 * np.arange(5.0)
    small = Cardinality([0.0, -0.3, 0.1, 0.2, 0.2])
    function = Cardinality(-line) + Modular([2.0, 3.0, -3.0, 3.0]) + small + Cardinality(line)
    assert function.is_submodular
    assert_nothing_false(function, minimize(function))
    assert not minimize(function).exact
    plain = 3.0 * Cardinality([0.0, 2.0, 3.0]) - Cardinality([0.0, 0.5, 1.25])
    assert minimize(plain).exact


def test_a_fall_that_is_lost_in_a_sum_is_counted():
    """10^16 - 1 is no float: the sum looks increasing, and the set of all is not the best."""
    function = 1e7 * Cardinality([0.0, 1e9, 1e9]) + Cardinality([0.0, 0.0, -1.0])
    assert function.is_increasing
    for k in (None, 1, 2):
        result = maximize(function, k)
        assert Fraction(result.bound) >= 10**16
        assert result.excess >= 10**16 - exact_value(function, result.mask)
    assert not maximize(function).exact
    hidden = Modular([1e16]) + Modular([-1.0]) + Modular([-1e16])
    assert not maximize(hidden).exact
    level = (Cardinality([1.0, 1.0]) + Cardinality([0.0, 1e-17])).complement()
    assert level.is_increasing
    assert maximize(level).excess >= Fraction(1e-17)
    steep = Cardinality([0.0, 1e14, 1e14 - 1.0])
    assert steep.is_increasing
    for k in (None, 1, 2):
        result = maximize(steep, k)
        assert result.excess >= 10**14 - exact_value(steep, result.mask)


@given(submodular_functions(), st.sampled_from(UNITS), st.sampled_from(["greedy", "double"]))
def test_a_unit_and_a_constant_change_no_maximum(function, scale, method):
    """Powers of two, which round nothing: a tie that rounding breaks may lead to another set."""
    plain = maximize(function, method=method)
    constant = Cardinality(np.full(function.n + 1, 7000.0 * scale))
    for other in (scale * function, scale * function + constant):
        result = maximize(other, method=method)
        assert result.exact == plain.exact
        assert result.relative_gap == pytest.approx(plain.relative_gap, abs=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        Modular([1e15, -1.0]),
        Modular([-1e20, -1e-20]),
        Modular([1e20, -1e-20, 1.0]),
        Cut([[0, 1]], 1e20, n=3) + Modular([0.0, 0.0, -1e-20]),
    ],
)
def test_what_is_small_is_not_lost_beside_what_is_large(function):
    result = minimize(function)
    assert exact_value(function, result.mask) == min(exact_values(function))
    assert result.exact
    assert result.excess == 0.0


@pytest.mark.parametrize(
    "function",
    [
        Cut([[0, 1]], 1e20, n=2) + Modular([-1e-20, -1.0]),
        Modular([1e20]) + Modular([-1e-3]) + Modular([-1e20]),
    ],
)
def test_what_rounding_swallows_is_not_called_exact(function):
    """Both sums cancel 1e20 before the small number is seen; the bound says what is not known."""
    result = minimize(function)
    assert not result.exact
    assert_nothing_false(function, result)


def test_integers_with_a_gap_of_one_are_never_exact():
    """2^50 and 1 in one function: a gap is a multiple of the unit or there is none."""
    function = Modular([2.0**50, 2.0**50]) + Cut([[0, 1]], 2.0**50, n=2) + Modular([-1.0, 0.0])
    first = minimize(function, max_iter=1)
    assert first.exact is (first.excess == 0.0)
    assert minimize(function).exact


def test_a_table_within_its_tolerance_is_no_proof():
    """Called submodular, for what it breaks is 1e-13 of its largest value, which is a million."""
    values = np.array([0.0, 1e19, -1.0, 1e19, -1.0, 1e19, 1e6, 1e19])
    table = Table(values)
    assert table.is_submodular
    assert not minimize(table).exact
    assert_nothing_false(table, minimize(table))


@pytest.mark.parametrize("answer", [True, 1, np.True_, "yes", [0]])
def test_any_true_value_of_a_callback_stops(answer):
    function = Cut([[0, 1], [1, 2], [2, 3]], n=4) + Modular([-2.5, 1.0, -1.0, 1.2])
    result = minimize(function, callback=lambda _: answer)
    assert result.n_iter == 1
    assert result.interrupted is not result.converged
    assert minimize(function, callback=lambda _: 0).exact


def interrupting(function, at):
    """A function that meets Ctrl-C at a value."""
    calls = []

    def value(mask):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return function(mask)

    known = {"submodular": True, "increasing": function.is_increasing}
    return Oracle(value, function.n, **known), calls


@pytest.mark.parametrize("solve", [minimize, lambda F: maximize(F, 3), maximize])
def test_ctrl_c_gives_the_best_so_far(solve):
    ring = np.stack([np.arange(9), (np.arange(9) + 1) % 9], axis=1)
    function = Cut(ring, np.arange(1.0, 10.0), n=9) + Modular(np.linspace(-6.0, 5.5, 9))
    oracle, calls = interrupting(function, -1)
    solve(oracle)
    ends = set()
    for at in range(1, len(calls) + 1, 2):
        oracle, seen = interrupting(function, at)
        try:
            result = solve(oracle)
        except KeyboardInterrupt:
            ends.add("raised")
            continue
        ends.add("flagged" if result.interrupted else "done")
        assert result.value == function(result.mask)
        assert result.gap >= 0
        assert len(seen) <= at + 1  # no more than the value that is reported
    assert ends >= {"raised", "flagged"}


@given(set_functions(), st.sampled_from(SCALES), st.sampled_from([0.0, 3.0]))
def test_a_unit_and_a_constant_change_no_check(function, scale, shift):
    """But those of ``normalized`` and ``nonnegative``, which are about the constant."""
    plain = check(function)
    constant = Cardinality(np.full(function.n + 1, scale * shift * 1e3))
    other = check(scale * function + constant)
    for name in ("submodular", "supermodular", "increasing"):
        assert getattr(other, name) is getattr(plain, name)


def test_a_constant_does_not_hide_a_violation():
    """1e-4 too high beside 1, and still so with 1e9 added to all of it."""
    table = np.array([0.0, 1.0, 1.0, 2.0001])
    for constant in (0.0, 1e7, 1e9):
        assert not Table(table + constant).is_submodular
        assert not Cardinality(table[[0, 1, 3]] + constant).is_submodular
        assert check(Table(table + constant)).submodular is False
        larger = np.arange(19.0) + 1e-4 * (np.arange(19) == 9)
        assert check(Cardinality(larger + constant), rng=0).submodular is False


@given(set_functions(), st.sampled_from(SCALES))
def test_a_unit_and_a_constant_change_no_decomposition(function, scale):
    plain = decompose(function)
    constant = Cardinality(np.full(function.n + 1, 1e3 * scale))
    sets = reference.all_masks(function.n)
    for other in (decompose(scale * function), decompose(scale * function + constant)):
        assert other.exact is plain.exact
        # The least sum is one number; which g has it need not be one function.
        assert other.g(sets).sum() == pytest.approx(scale * plain.g(sets).sum(), abs=1e-6 * scale)
