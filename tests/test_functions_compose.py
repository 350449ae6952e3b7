"""Sums, restriction, contraction, complement: brute force, answers, immutability, bad input."""

import copy
import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import masks, numbers, orders, set_functions

from setwise.functions import Cardinality, Cut, Modular, Oracle, Table
from setwise.functions._families._compose import Sum

few = st.integers(0, 4)


def assert_is(function, expected, order):
    """The same values, one at a time and all at once, and the same gains."""
    np.testing.assert_allclose(reference.all_values(function), expected, atol=1e-12)
    np.testing.assert_allclose(function(reference.all_masks(function.n)), expected, atol=1e-12)
    gains = reference.gains(expected, order)
    np.testing.assert_allclose(function.gains(order), gains, atol=1e-11)


def assert_answers_are_true(function, taken_away=0.0):
    """None is always allowed; True and False must be so, up to the rounding of what is subtracted.

    A constant changes no answer: ``taken_away`` is put back, so that digits count as they did.
    """
    values = reference.all_values(function) + taken_away
    assert function.is_submodular in (reference.is_submodular(values), None)
    assert function.is_supermodular in (reference.is_supermodular(values), None)
    assert function.is_increasing in (reference.is_increasing(values), None)


@given(st.data())
def test_a_sum(data):
    n = data.draw(few)
    first, second, third = (data.draw(set_functions(n)) for _ in range(3))
    a, b = data.draw(numbers()), data.draw(numbers())
    total = a * first - (second * b + third)
    expected = (
        a * reference.all_values(first)
        - b * reference.all_values(second)
        - reference.all_values(third)
    )
    assert_is(total, expected, data.draw(orders(n)))
    assert_answers_are_true(total)


@given(st.data())
def test_a_negation(data):
    function = data.draw(set_functions())
    assert_is(-function, -reference.all_values(function), data.draw(orders(function.n)))
    assert_answers_are_true(-function)
    assert (-function).is_supermodular is function.is_submodular
    assert (-function).is_submodular is function.is_supermodular


@given(st.data())
def test_a_restriction(data):
    function = data.draw(set_functions())
    subset = data.draw(orders(function.n))
    restricted = function.restrict(subset)
    values = reference.all_values(function)
    expected = [
        values[reference.index_of(subset[mask])] for mask in reference.all_masks(len(subset))
    ]
    assert restricted.n == len(subset)
    assert_is(restricted, np.array(expected), data.draw(orders(len(subset))))
    assert_answers_are_true(restricted)


@given(st.data())
def test_a_contraction(data):
    function = data.draw(set_functions())
    subset = data.draw(orders(function.n))
    contracted = function.contract(subset)
    rest = np.setdiff1d(np.arange(function.n), subset)
    values = reference.all_values(function)
    given_subset = reference.index_of(subset)
    expected = [
        values[given_subset + reference.index_of(rest[mask])] - values[given_subset]
        for mask in reference.all_masks(len(rest))
    ]
    assert contracted.n == len(rest)
    assert_is(contracted, np.array(expected), data.draw(orders(len(rest))))
    assert_answers_are_true(contracted, float(np.abs(reference.all_values(function)).max()))


@given(st.data())
def test_a_complement(data):
    function = data.draw(set_functions())
    # Bit order read backwards: the index of V - A is that of V less that of A.
    expected = reference.all_values(function)[::-1]
    assert_is(function.complement(), expected, data.draw(orders(function.n)))
    assert_answers_are_true(function.complement())


@given(st.data())
def test_compositions_of_compositions(data):
    function = data.draw(set_functions(4))
    keep = data.draw(masks(4))
    twice = (2.0 * function.complement()).restrict(keep).complement().contract([])
    values = reference.all_values(function)
    kept = np.flatnonzero(keep)
    whole = reference.index_of(range(4))
    expected = np.array(
        [
            2.0 * values[whole - reference.index_of(kept[~mask])]
            for mask in reference.all_masks(len(kept))
        ]
    )
    assert_is(twice, expected - expected[0], data.draw(orders(len(kept))))
    assert_answers_are_true(twice, float(np.abs(expected).max()))


@given(st.data())
def test_a_restriction_and_a_contraction_split_the_function(data):
    """F(A) = F(A & S) + what A adds to it, for A that contains S: the chain rule."""
    function = data.draw(set_functions())
    subset = np.flatnonzero(data.draw(masks(function.n)))
    inside, outside = function.restrict(subset), function.contract(subset)
    whole = np.ones(function.n, bool)
    total = inside(np.ones(inside.n, bool)) + outside(np.ones(outside.n, bool))
    assert total == pytest.approx(function(whole), abs=1e-12)


def test_a_sum_of_sums_is_one_sum():
    first, second = Modular([1.0, 2.0]), Cardinality([0.0, 1.0, 1.0])
    total = 2.0 * (first + 3.0 * second) - first
    assert total.terms == (first, second, first)
    assert total.coefficients.tolist() == [2.0, 6.0, -1.0]


def test_what_a_sum_can_know():
    cut, square = Cut([[0, 1]], n=2), Cardinality([0.0, 1.0, 4.0])
    assert (cut + Modular([1.0, -1.0])).is_submodular is True
    assert (cut + square).is_submodular is None
    assert (-1.0 * square).is_submodular is True
    assert (2.0 * square).is_submodular is False
    assert (0.0 * square).is_submodular is True
    assert (cut + 0.0 * square).is_submodular is True
    assert (square + Modular([1.0, 0.0])).is_increasing is True
    assert (square - Modular([1.0, 0.0])).is_increasing is None


def test_a_mask_chooses_a_subset():
    function = Modular([1.0, 2.0, 4.0])
    assert function.restrict([True, False, True]).gains([0, 1]).tolist() == [1.0, 4.0]
    assert function.contract([True, False, True]).gains([0]).tolist() == [2.0]


def compositions():
    function = Modular([1.0, 2.0, 4.0]) + Cardinality([1.0, 3.0, 4.0, 4.0])
    return [
        function,
        -function,
        function.restrict([2, 0]),
        function.contract([1]),
        function.complement(),
    ]


@pytest.mark.parametrize("function", compositions(), ids=repr)
def test_immutable_and_copied_by_reference(function):
    with pytest.raises(AttributeError, match="is immutable: n cannot be set"):
        function.n = 5
    with pytest.raises(AttributeError, match="is immutable: n cannot be deleted"):
        del function.n
    assert copy.copy(function) is function
    assert copy.deepcopy(function) is function


@pytest.mark.parametrize("function", compositions(), ids=repr)
def test_pickle(function):
    restored = pickle.loads(pickle.dumps(function))
    assert repr(restored) == repr(function)
    np.testing.assert_array_equal(reference.all_values(restored), reference.all_values(function))


def test_pickle_names_the_callable_it_cannot_store():
    with pytest.raises(pickle.PicklingError, match="Oracle holds the callable function"):
        pickle.dumps(2.0 * Oracle(lambda mask: 0.0, 2))


def test_repr():
    function = Modular([1.0, 2.0])
    assert repr(function + 2.0 * function) == "Modular(n=2) + 2 * Modular(n=2)"
    assert repr(-function) == "-1 * Modular(n=2)"
    assert repr(function.restrict([0])) == "Modular(n=2).restrict(1 of 2 elements)"
    assert repr(function.contract([0])) == "Modular(n=2).contract(1 of 2 elements)"
    assert repr(function.complement()) == "Modular(n=2).complement()"


def test_no_element():
    nothing = Table([2.0])
    assert nothing.complement()([]) == 2.0
    assert nothing.complement().complement()([]) == 2.0
    assert nothing.contract([])([]) == 0.0
    assert nothing.restrict([]).gains([]).tolist() == []
    assert (nothing + nothing)([]) == 4.0


@pytest.mark.parametrize(
    ("act", "error", "sentence"),
    [
        (lambda F: Sum([]), ValueError, "terms must hold at least one set function, got none"),
        (lambda F: Sum([F, 1.0]), TypeError, "terms must be set functions, got float"),
        (lambda F: F + Modular([1.0]), ValueError, "terms must have one ground set, got 3 and 1"),
        (lambda F: Sum([F], [1.0, 2.0]), ValueError, r"coefficients must have shape \(1\)"),
        (lambda F: F + 1.0, TypeError, "unsupported operand"),
        (lambda F: 1.0 - F, TypeError, "unsupported operand"),
        (lambda F: F * "a", TypeError, "scale must be a real number, got str"),
        (lambda F: F * np.inf, ValueError, "scale must be finite, got inf"),
        (lambda F: F.restrict([0, 0]), ValueError, "subset must hold distinct elements, got 0"),
        (lambda F: F.restrict([3]), ValueError, "subset must lie between 0 and 2, got 3"),
        (lambda F: F.contract([0.5]), TypeError, "subset must hold integers, got dtype float64"),
        (lambda F: F.contract([True]), ValueError, r"subset must have shape \(3,\) when boolean"),
        (lambda F: F([True]), ValueError, r"mask must have shape \(3,\) or \(m, 3\), got \(1,\)"),
        (lambda F: F([0, 1, 1]), TypeError, "mask must be boolean, got dtype int64"),
        (lambda F: F.gains([0, 0]), ValueError, "order must hold distinct elements, got 0 more"),
        (lambda F: F.gains([[0]]), ValueError, "order must be one-dimensional"),
        (lambda F: F.gains([-1]), ValueError, "order must lie between 0 and 2, got -1"),
        (lambda F: F.gains([0.0]), TypeError, "order must hold integers, got dtype float64"),
    ],
)
def test_bad_input(act, error, sentence):
    with pytest.raises(error, match=sentence):
        act(Modular([1.0, 2.0, 4.0]))
