"""Two labels: the best labelling, with its proof."""

import numpy as np
import pytest
import reference
from field_registry import grid
from hypothesis import example, given
from hypothesis import strategies as st
from move_fields import random_field
from searches import cut

from setwise import fields, solve_map
from setwise.inference._conditioning._magnitude import trivial_bound


@given(st.integers(0, 2**32 - 1), st.integers(1, 11))
@example(65535, 1)  # the sums are exact, and few digits are spare
def test_a_cut_is_the_best_labelling(seed, n):
    rng = np.random.default_rng(seed)
    field = random_field(rng, "cut", n, 2)
    energies = field.energy(reference.all_labelings(n, 2))
    allowed = np.flatnonzero(np.isfinite(energies))
    init = reference.all_labelings(n, 2)[rng.choice(allowed)] if rng.random() < 0.5 else None
    best = cut(field, init=init)
    assert best.value == pytest.approx(energies.min(), rel=1e-12, abs=1e-9)
    assert best.exact
    assert best.converged
    assert field.energy(best.labels) == best.value


def test_powers_of_counts_take_few_cuts():
    """A power has a breakpoint at each of 200 counts; a few of them are enough."""
    rng = np.random.default_rng(0)
    n = 400
    field = fields.Field(rng.normal(size=(n, 2)))
    field += fields.Potts(grid(20, 20), 0.3)
    field += fields.RegionConsistency(np.arange(n) // 200, 0.5, 0.7)
    steps = []
    best = cut(field, callback=steps.append)
    assert best.exact
    assert best.n_iter == len(steps) < 30
    bounds = [step.bound for step in steps]
    assert bounds == sorted(bounds)
    assert all(step.bound <= best.value + 1e-9 <= step.value + 2e-9 for step in steps)


def test_edges_alone_take_one_cut():
    rng = np.random.default_rng(1)
    field = fields.Field(rng.normal(size=(30, 2))) + fields.Potts(grid(5, 6), 1.0)
    assert cut(field).n_iter == 1


def test_the_rounds_can_be_cut_short():
    rng = np.random.default_rng(2)
    n = 100
    field = fields.Field(rng.normal(size=(n, 2)))
    field += fields.RegionConsistency(np.zeros(n, int), 2.0, 0.5)
    init = np.zeros(n, int)
    whole = cut(field)
    assert whole.n_iter > 1
    for best in (
        cut(field, max_iter=1, init=init),
        cut(field, callback=lambda progress: True, init=init),
    ):
        assert best.n_iter == 1
        assert not best.converged
        assert best.bound <= whole.value <= best.value <= field.energy(init)
    none = cut(field, max_iter=0, init=init)
    assert none.labels.tolist() == init.tolist()
    assert none.bound == trivial_bound(field)


def test_ctrl_c_gives_the_best_so_far():
    def interrupt(progress):
        raise KeyboardInterrupt

    field = fields.Field([[0.0, 1.0], [1.0, 0.0]]) + fields.Potts([[0, 1]], 0.25)
    best = cut(field, callback=interrupt)
    assert best.interrupted
    assert best.value == 0.25


@pytest.mark.parametrize("start", [[0, 1, 0], [1, 0, 1]])
def test_a_callback_of_a_start_that_pays_much_is_told_what_holds(start):
    field = fields.Field([[0.0, 0.3], [0.2, 0.0], [0.0, 0.6]])
    field += fields.Potts([[0, 1], [1, 2]], 1e15)
    told = []
    best = solve_map(field, "cut", init=start, callback=lambda round: told.append(round.bound))
    assert (best.value, best.exact) == (0.2, True)
    assert max(told) <= 0.2
