"""Oracles: any callable as a set function, what it may declare, what it must return."""

import copy
import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import orders, tables

from setwise.functions import Oracle


def size_squared(mask):
    return int(mask.sum()) ** 2


@given(st.data())
def test_an_oracle_of_a_table_is_that_table(data):
    table = data.draw(st.integers(0, 4).flatmap(tables))
    oracle = Oracle(table, table.n)
    order = data.draw(orders(table.n))
    np.testing.assert_array_equal(reference.all_values(oracle), table.values)
    np.testing.assert_array_equal(oracle(reference.all_masks(table.n)), table.values)
    np.testing.assert_array_equal(oracle.gains(order), table.gains(order))


def test_a_pass_over_m_elements_is_m_plus_1_calls():
    calls = []
    oracle = Oracle(lambda mask: calls.append(mask) or 0.0, 5)
    oracle.gains([3, 1])
    assert [np.flatnonzero(mask).tolist() for mask in calls] == [[], [3], [1, 3]]


def test_a_callable_may_write_into_its_mask():
    def spoil(mask):
        total = mask.sum()
        mask[:] = True
        return total

    given_mask = np.array([True, False, False])
    assert Oracle(spoil, 3)(given_mask) == 1.0
    assert given_mask.tolist() == [True, False, False]
    assert Oracle(spoil, 3).gains([2, 0]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("result", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0), np.uint64(2)])
def test_any_real_number_will_do(result):
    value = Oracle(lambda mask: result, 2)([True, False])
    assert value == 2.0
    assert type(value) is float


def test_truth_is_a_number():
    assert Oracle(np.any, 2).gains([0, 1]).tolist() == [1.0, 0.0]


def test_what_is_declared_is_answered():
    silent = Oracle(size_squared, 3)
    assert (silent.is_submodular, silent.is_supermodular, silent.is_increasing) == (None,) * 3
    told = Oracle(size_squared, 3, submodular=False, supermodular=True, increasing=np.bool_(True))
    assert (told.is_submodular, told.is_supermodular, told.is_increasing) == (False, True, True)


def test_pickle_of_a_function_of_a_module():
    oracle = pickle.loads(pickle.dumps(Oracle(size_squared, 3, supermodular=True)))
    assert oracle([True, True, False]) == 4.0
    assert oracle.is_supermodular is True


def test_a_lambda_cannot_be_pickled_and_is_copied_by_reference():
    oracle = Oracle(lambda mask: 0.0, 3)
    with pytest.raises(pickle.PicklingError, match="Oracle holds the callable function"):
        pickle.dumps(oracle)
    assert copy.deepcopy(oracle) is oracle


def test_repr():
    assert repr(Oracle(size_squared, 3)) == "Oracle(size_squared, n=3)"
    assert (
        repr(Oracle(size_squared, 3, submodular=False, increasing=True))
        == "Oracle(size_squared, n=3, submodular=False, increasing=True)"
    )


@pytest.mark.parametrize(
    ("arguments", "options", "error", "sentence"),
    [
        ((3.0, 2), {}, TypeError, "function must be callable, got float"),
        ((np.any, 2.0), {}, TypeError, "n must be an integer, got float"),
        ((np.any, -1), {}, ValueError, "n must be at least 0, got -1"),
        ((np.any, 2), {"submodular": 1}, TypeError, "submodular must be True, False or None"),
        ((np.any, 2), {"increasing": "no"}, TypeError, "increasing must be .*, got 'no'"),
    ],
)
def test_bad_input(arguments, options, error, sentence):
    with pytest.raises(error, match=sentence):
        Oracle(*arguments, **options)


@pytest.mark.parametrize(
    ("result", "error", "sentence"),
    [
        (None, TypeError, "function must return a real number, got dtype object"),
        ("1", TypeError, "function must return a real number, got dtype <U1"),
        (1j, TypeError, "function must return a real number, got dtype complex128"),
        (np.ones(1), TypeError, r"function must return a real number, got shape \(1,\)"),
        (np.nan, ValueError, r"function must return a finite number, got nan for the set \[1\]"),
        (np.inf, ValueError, r"function must return a finite number, got inf for the set \[1\]"),
    ],
)
def test_bad_results(result, error, sentence):
    with pytest.raises(error, match=sentence):
        Oracle(lambda mask: result, 2)([False, True])
