"""Nothing false: minimisation and maximisation against exact rationals, over 40 decades."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rational_functions import exact_value, exact_values, wide_functions
from strategies import numbers, submodular_functions

from setwise.functions import (
    Cardinality,
    ConcaveOfModular,
    Coverage,
    Cut,
    Modular,
    Oracle,
    maximize,
    minimize,
)


def assert_nothing_false(function, result):
    """The bound is below the minimum, and the set above it by no more than is said: in rationals."""
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
