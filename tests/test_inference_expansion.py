"""Expansions end where no expansion helps."""

import numpy as np
import pytest
import reference
from field_registry import grid
from hypothesis import example, given
from hypothesis import strategies as st
from move_fields import least, random_field
from searches import expansion

from setwise import fields


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(3, 4), st.booleans())
@example(263, 4, 4, False)  # two costs end together that neither alone is worth
def test_no_expansion_improves_the_answer(seed, n, n_labels, is_random):
    rng = np.random.default_rng(seed)
    field = random_field(rng, "expansion", n, n_labels)
    values = []
    best = expansion(
        field,
        rng=seed if is_random else None,
        callback=lambda progress: values.append(progress.value),
    )
    assert best.converged
    assert best.n_iter == len(values)
    assert values == sorted(values, reverse=True)
    for a in range(n_labels):
        reachable = least(field, [sorted({int(label), a}) for label in best.labels])
        assert best.value == pytest.approx(reachable, rel=1e-12, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(3, 4))
def test_potts_energies_are_at_most_twice_the_least(seed, n, n_labels):
    """Theorem 6.1 of Boykov, Veksler and Zabih; unaries not negative."""
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=2 * n)
    edges = np.stack([first, (first + rng.integers(1, n, 2 * n)) % n], axis=1)
    field = fields.Field(rng.exponential(size=(n, n_labels)))
    field += fields.Potts(edges, rng.exponential(size=len(edges)))
    energies = field.energy(reference.all_labelings(n, n_labels))
    assert expansion(field).value <= 2.0 * energies.min() + 1e-9


def test_it_starts_from_the_least_unaries_or_from_init():
    field = fields.Field([[0.0, 1.0, 2.0], [np.inf, 3.0, 1.0]])
    assert expansion(field, max_iter=0).labels.tolist() == [0, 2]
    assert expansion(field, max_iter=0, init=[2, 1]).labels.tolist() == [2, 1]
    assert expansion(field, init=[2, 1]).labels.tolist() == [0, 2]


def test_a_random_order_is_the_same_for_the_same_seed():
    rng = np.random.default_rng(0)
    field = fields.Field(rng.normal(size=(100, 6))) + fields.Potts(grid(10, 10), 1.0)
    first, again = (expansion(field, rng=3) for _ in range(2))
    assert first.labels.tolist() == again.labels.tolist()


def test_a_callback_ends_the_search():
    rng = np.random.default_rng(1)
    field = fields.Field(rng.normal(size=(400, 8))) + fields.Potts(grid(20, 20), 1.0)
    best = expansion(field, callback=lambda progress: True)
    assert best.n_iter == 1
    assert best.interrupted
    assert not best.converged
    assert expansion(field, max_iter=1).value == best.value

    def interrupt(progress):
        raise KeyboardInterrupt

    assert expansion(field, callback=interrupt).value == best.value


def test_label_costs_end_labels():
    """Two variables want label 2, by less than it costs; the four others hold on to 0."""
    unary = np.full((6, 3), 5.0)
    unary[:4, 0] = unary[4:, 2] = 0.0
    unary[4:, 0] = 1.0
    field = fields.Field(unary)
    assert expansion(field + fields.LabelCost([1.0, 1.0, 1.5])).labels.tolist() == [
        0,
        0,
        0,
        0,
        2,
        2,
    ]
    assert expansion(field + fields.LabelCost([1.0, 1.0, 2.5])).labels.tolist() == [0] * 6
