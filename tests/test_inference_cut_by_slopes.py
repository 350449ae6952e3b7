"""Large grids with functions of counts and label costs: brute force, and the usual search."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise import fields
from setwise.inference._map._moves import _cut, _cut_by_slopes

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def _any_size(monkeypatch):
    """Cut fields of every size by slopes, also those with nothing decided."""
    monkeypatch.setattr(_cut, "_LARGE", 0)
    monkeypatch.setattr(_cut_by_slopes, "_FEW_OPEN", 1)


def drawn_field(rng, shape, *, whole, regions, costs):
    """Return a field with functions of counts; whole numbers have exact sums and ties."""
    n = int(np.prod(shape))
    edges = fields.grid_edges(shape, (4, 8)[rng.integers(2)] if len(shape) == 2 else 6)
    draw = (lambda *a: rng.integers(-6, 7, a) / 2) if whole else (lambda *a: rng.normal(size=a))
    unary = draw(n, 2)
    field = fields.Field(unary) + fields.Potts(edges, np.abs(draw(len(edges))))
    for _ in range(regions):
        numbers = rng.integers(-1, 4, n)
        weight = 0.5 * rng.integers(1, 6) if whole else rng.random() * 3
        if rng.integers(2):
            own = fields.RegionConsistency(numbers, weight=weight, alpha=rng.choice([0.5, 0.8]))
        else:
            own = fields.RobustPn(numbers, weight=weight, truncation=0.4, relative=True)
        field = field + own
    for _ in range(costs):
        field = field + fields.LabelCost(list(0.5 * rng.integers(0, 30, 2)))
    return field


@given(seeds)
def test_the_answer_is_the_best_labelling(seed):
    rng = np.random.default_rng(seed)
    shape = [(3, 3), (2, 5), (2, 2, 2)][rng.integers(3)]
    field = drawn_field(
        rng,
        shape,
        whole=bool(rng.integers(2)),
        regions=int(rng.integers(1, 3)),
        costs=int(rng.integers(0, 2)),
    )
    energies = field.energy(reference.all_labelings(field.n_variables, 2))
    best = sw.solve_map(field, n_jobs=int(rng.integers(1, 3)))
    least, scale = float(energies.min()), 1.0 + float(np.abs(energies).max())
    assert best.method == "cut"
    assert best.value <= least + 1e-12 * scale
    assert best.bound <= least + 1e-12 * scale
    assert best.exact


@given(seeds)
def test_least_minimisers_of_whole_numbers(seed):
    """Among equally good labellings the one with the fewest ones is found."""
    rng = np.random.default_rng(seed)
    field = drawn_field(rng, (3, 3), whole=True, regions=1, costs=0)
    found = _cut_by_slopes.cut_by_slopes(field, 1)
    if found is None:
        return
    every = reference.all_labelings(9, 2)
    energies = field.energy(every)
    near = energies <= energies.min() + 1e-9
    assert field.energy(found.labels) <= energies.min() + 1e-9
    if (np.abs(energies[near] - energies.min()) == 0).all():
        assert found.labels.sum() <= every[near].sum(axis=1).max()


@pytest.mark.parametrize("shape", [(40, 50), (12, 13, 14)])
def test_larger_fields_agree_with_the_search_of_small_ones(shape, monkeypatch):
    rng = np.random.default_rng(0)
    for whole in (False, True):
        for _ in range(3):
            field = drawn_field(rng, shape, whole=whole, regions=2, costs=1)
            by_slopes = sw.solve_map(field, n_jobs=1)
            again = sw.solve_map(field, n_jobs=2)
            with monkeypatch.context() as patch:
                patch.setattr(_cut, "_LARGE", 10**9)
                usual = sw.solve_map(field, n_jobs=1)
            assert abs(by_slopes.value - usual.value) <= 1e-9 * abs(usual.value)
            assert again.labels.tobytes() == by_slopes.labels.tobytes()
            assert by_slopes.exact
