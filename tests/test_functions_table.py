"""Tables: bit order, the exact answers, tabulation, bad input."""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, orders, set_functions, submodular_functions, tables

from setwise.functions import Cardinality, Modular, Table, tabulate
from setwise.functions._families._table import masks_of, worst_exchange, worst_fall

few = st.integers(0, 4)


@given(few.flatmap(tables))
def test_values_are_in_bit_order(table):
    for index, mask in enumerate(reference.all_masks(table.n)):
        assert table(mask) == table.values[index]
    np.testing.assert_array_equal(table(reference.all_masks(table.n)), table.values)


@given(st.data())
def test_gains_are_differences_of_values(data):
    table = data.draw(few.flatmap(tables))
    order = data.draw(orders(table.n))
    np.testing.assert_array_equal(table.gains(order), reference.gains(table.values, order))


def assert_answers(table):
    assert table.is_submodular is reference.is_submodular(table.values)
    assert table.is_supermodular is reference.is_supermodular(table.values)
    assert table.is_increasing is reference.is_increasing(table.values)


@given(few.flatmap(tables))
def test_answers_about_any_table(table):
    assert_answers(table)


@given(submodular_functions(), st.booleans())
def test_answers_about_submodular_and_supermodular_tables(function, negate):
    table = tabulate(-function if negate else function)
    assert table.is_supermodular if negate else table.is_submodular
    assert_answers(table)


@given(few.flatmap(lambda n: arrays(1 << n)))
def test_the_worst_exchange_and_fall_are_the_worst(values):
    n = reference.size_of(values)
    exchanges, falls = [-np.inf], [-np.inf]
    for index in range(1 << n):
        for i in range(n):
            exchanges += [
                exchange(values, index, i, j)
                for j in range(i + 1, n)
                if not index & (1 << i | 1 << j)
            ]
            if not index & 1 << i:
                falls.append(values[index] - values[index | 1 << i])
    worst, index, i, j = worst_exchange(values)
    assert worst == pytest.approx(max(exchanges), abs=1e-12)
    assert n < 2 or worst == pytest.approx(exchange(values, index, i, j), abs=1e-12)
    fall, index, i = worst_fall(values)
    assert fall == max(falls)
    assert n < 1 or fall == values[index] - values[index | 1 << i]


def exchange(values, index, i, j):
    joined = values[index | 1 << i | 1 << j] + values[index]
    return joined - values[index | 1 << i] - values[index | 1 << j]


@given(set_functions())
def test_tabulate(function):
    table = tabulate(function)
    np.testing.assert_allclose(table.values, reference.all_values(function), atol=1e-12)


def test_tabulate_in_chunks():
    table = tabulate(Cardinality(np.arange(16.0)))
    np.testing.assert_array_equal(table.values, np.bitwise_count(np.arange(1 << 15)))


def test_tabulate_returns_a_table_as_it_is():
    table = Table([0.0, 1.0])
    assert tabulate(table) is table


def test_no_element_and_one():
    nothing, single = Table([3.0]), Table([3.0, 1.0])
    assert nothing.n == 0
    assert nothing([]) == 3.0
    assert nothing.gains([]).tolist() == []
    assert (nothing.is_submodular, nothing.is_increasing) == (True, True)
    assert (single.is_submodular, single.is_supermodular, single.is_increasing) == (
        True,
        True,
        False,
    )


def test_rounding_is_forgiven_relative_to_the_largest_value():
    modular = tabulate(Modular([0.1, 0.2, 0.3, 0.7]))
    assert modular.is_submodular
    assert modular.is_supermodular
    assert not Table([0.0, 1.0, 1.0, 2.0 + 1e-9]).is_submodular
    assert Table([0.0, 1e6, 1e6, 2e6 + 1e-7]).is_submodular


def test_answers_are_remembered_and_left_out_of_a_pickle():
    table = Table([0.0, 1.0, 1.0, 2.0])
    assert table.is_submodular
    assert vars(table)["_memo"]
    copy = pickle.loads(pickle.dumps(table))
    assert "_memo" not in vars(copy)
    assert copy.is_submodular


def test_masks_of_indices():
    np.testing.assert_array_equal(masks_of(np.arange(8), 3), reference.all_masks(3))


@pytest.mark.parametrize(
    ("values", "error", "sentence"),
    [
        ([], ValueError, "values must have a length that is a power of 2, got 0"),
        ([1.0, 2.0, 3.0], ValueError, "values must have a length that is a power of 2, got 3"),
        ([[1.0, 2.0]], ValueError, r"values must have shape \(any\), got \(1, 2\)"),
        ([1.0, np.nan], ValueError, "values must be finite, got nan"),
        (["a", "b"], TypeError, "values must hold real numbers"),
        (np.zeros(1 << 25, np.int8), ValueError, r"at most 2\*\*24 entries, got 2\*\*25"),
    ],
    ids=["empty", "length", "shape", "nan", "strings", "size"],
)
def test_bad_input(values, error, sentence):
    with pytest.raises(error, match=sentence):
        Table(values)


def test_too_many_elements_to_tabulate():
    with pytest.raises(ValueError, match="at most 20 elements to be tabulated, got 21"):
        tabulate(Modular(np.ones(21)))
