"""Branch and bound over tables of any kind: against enumeration, and at every stage."""

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise.fields import CliquePotential, Field, Pairwise, Potts

NONE = "field must have a labelling of finite energy, got none"


def random_field(seed, *, hard=0.0, whole=False, most=7):
    """Pairs and tables of up to three variables, some entries and labels forbidden."""
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(2, most + 1)), int(rng.integers(1, 5))

    def draw(*shape):
        return rng.integers(-3, 4, shape).astype(float) if whole else rng.normal(size=shape)

    unary = draw(n, n_labels)
    unary[rng.random(unary.shape) < hard / 2] = np.inf
    unary[np.arange(n), rng.integers(0, n_labels, n)] = 0.25 * (not whole)
    field = Field(unary)
    for _ in range(int(rng.integers(1, 9))):
        k = int(rng.integers(2, min(n, 3) + 1))
        cliques = np.stack([rng.permutation(n)[:k] for _ in range(2)])
        if k == 2 and rng.random() < 0.5:
            field += Potts(cliques, np.abs(draw(2)))
            continue
        tables = draw(2, *[n_labels] * k)
        tables[rng.random(tables.shape) < hard] = np.inf
        tables[(slice(None), *[0] * k)] = 1.0
        field += CliquePotential(cliques, tables)
    return field


def energies_of(field):
    return field._energies(np.ascontiguousarray(reference.all_labelings(*field.unary.shape)))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.6]), st.booleans())
def test_it_is_enumeration(seed, hard, whole):
    field = random_field(seed, hard=hard, whole=whole)
    energies = energies_of(field)
    if np.isinf(energies).all():
        with pytest.raises(ValueError, match=NONE):
            sw.solve_map(field, "branch_and_bound")
        return
    best = sw.solve_map(field, "branch_and_bound")
    assert best.exact
    assert best.converged
    assert best.value == field.energy(best.labels) == pytest.approx(energies.min(), abs=1e-12)
    assert energies.min() - 1e-9 <= best.bound <= best.value
    if whole:
        assert Fraction(best.value) == Fraction(float(energies.min()))
        assert 0 <= Fraction(best.value) - Fraction(best.bound) <= Fraction(1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_every_stage_has_a_true_bound(seed):
    """Tables of any sign on a dense graph: many open problems, whatever ends the search."""
    rng = np.random.default_rng(seed)
    edges = np.stack(np.triu_indices(9, 1), axis=1)
    field = Field(rng.normal(size=(9, 3))) + Pairwise(edges, rng.normal(size=(len(edges), 3, 3)))
    energies = energies_of(field)
    full = sw.solve_map(field, "branch_and_bound")
    assert full.value == pytest.approx(energies.min(), abs=1e-12)
    for limit in (0, 1):
        early = sw.solve_map(field, "branch_and_bound", max_iter=limit)
        assert early.bound <= energies.min() + 1e-12 <= early.value + 2e-12
    late = sw.solve_map(field, "branch_and_bound", time_limit=0.0)
    assert late.bound <= energies.min()
    assert "time_limit" in late.reason


def pigeons(n, holes):
    """n variables that must all have different labels."""
    edges = np.stack(np.triu_indices(n, 1), axis=1)
    return Field(np.zeros((n, holes))) + CliquePotential(edges, np.diag(np.full(holes, np.inf)))


def planted(seed, n=150, n_labels=5, factor=3):
    """Random forbidden pairs that leave a hidden labelling allowed, and whole-number unaries."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_labels, n)
    ends = rng.integers(0, n, (factor * n, 2))
    edges = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    tables = np.where(rng.random((len(edges), n_labels, n_labels)) < 0.4, np.inf, 0.0)
    tables[np.arange(len(edges)), hidden[edges[:, 0]], hidden[edges[:, 1]]] = 0.0
    unary = rng.integers(0, 10, (n, n_labels)).astype(float)
    return Field(unary) + CliquePotential(edges, tables)


@pytest.mark.parametrize("seed", range(3))
def test_wide_fields_with_hard_constraints_are_solved_by_default(seed):
    field = planted(seed)
    best = sw.solve_map(field)
    assert (best.method, best.exact) == ("branch_and_bound", True)
    assert np.isfinite(best.value)
    assert best.value == field.energy(best.labels) == pytest.approx(best.bound, abs=1e-9)
    again = sw.solve_map(field, n_jobs=2)
    np.testing.assert_array_equal(best.labels, again.labels)


def test_a_field_without_an_allowed_labelling_is_refused_or_left_open():
    with pytest.raises(ValueError, match=NONE):
        sw.solve_map(pigeons(7, 6), "branch_and_bound")
    field, seen = pigeons(13, 12), []

    def stop(now):
        seen.append(now)
        return len(seen) == 2

    open_ = sw.solve_map(field, "branch_and_bound", callback=stop)
    assert (open_.value, open_.exact, open_.interrupted) == (np.inf, False, True)
    assert open_.bound <= 0.0
    assert open_.relative_gap == np.inf
    assert "no allowed labelling was found" in open_.reason


def test_a_start_is_never_worsened_and_a_start_that_is_best_is_proved():
    field = random_field(5, most=6)
    labels = reference.all_labelings(*field.unary.shape)[int(np.argmin(energies_of(field)))]
    best = sw.solve_map(field, "branch_and_bound", init=labels)
    assert best.exact
    assert best.value == field.energy(labels)


def test_a_network_that_does_not_fit_into_memory_is_refused():
    edges = np.stack([np.arange(10**6), np.arange(1, 10**6 + 1)], axis=1)
    field = Field(np.zeros((10**6 + 1, 40))) + Potts(edges, 1.0)
    with pytest.raises(ValueError, match="branch_and_bound needs at most 67108864 numbers"):
        sw.solve_map(field, "branch_and_bound")
    region = Field(np.zeros((3, 2))) + sw.fields.RegionConsistency([0, 0, 0], 1.0, 0.5)
    with pytest.raises(ValueError, match=r"branch_and_bound cannot take RegionConsistency\("):
        sw.solve_map(region, "branch_and_bound")
