"""Swaps end where no swap helps."""

from itertools import combinations

import numpy as np
import pytest
from field_registry import grid
from hypothesis import given
from hypothesis import strategies as st
from move_fields import least, random_field
from searches import swap

from setwise import fields


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(3, 4), st.booleans())
def test_no_swap_improves_the_answer(seed, n, n_labels, is_random):
    rng = np.random.default_rng(seed)
    field = random_field(rng, "swap", n, n_labels)
    values = []
    best = swap(
        field,
        rng=seed if is_random else None,
        callback=lambda progress: values.append(progress.value),
    )
    assert best.converged
    assert values == sorted(values, reverse=True)
    for pair in combinations(range(n_labels), 2):
        offers = [list(pair) if label in pair else [int(label)] for label in best.labels]
        assert best.value == pytest.approx(least(field, offers), rel=1e-12, abs=1e-9)


def test_a_swap_may_open_a_label():
    field = fields.Field([[1.0, 1.0, 0.0]] * 3)
    assert swap(field, init=[0, 1, 0]).labels.tolist() == [2, 2, 2]


def test_squares_of_label_differences():
    """Not a metric: swaps take them, expansions do not."""
    rng = np.random.default_rng(0)
    squares = np.subtract.outer(np.arange(5.0), np.arange(5.0)) ** 2
    field = fields.Field(rng.normal(0.0, 3.0, (64, 5))) + fields.Pairwise(grid(8, 8), squares)
    best = swap(field)
    assert best.converged
    assert best.value < field.energy(np.argmin(field.unary, axis=1))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_transitions_are_paid_once(n_labels):
    """Many edges between two labels cost as much as one: the swap sees through the lines."""
    rng = np.random.default_rng(n_labels)
    side = 12
    unary = rng.normal(0.0, 0.3, (side * side, n_labels))
    unary[: side * side // 2, 0] -= 1.0
    unary[side * side // 2 :, 1] -= 1.0
    field = fields.Field(unary)
    costs = 5.0 * (1.0 - np.eye(n_labels))
    field += fields.LabelTransition(grid(side, side), costs)
    best = swap(field)
    assert best.converged
    assert best.bound <= best.value <= field.energy(np.argmin(unary, axis=1))
    assert set(best.labels) == {0, 1}
