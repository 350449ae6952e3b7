"""Searches in windows, and the messages around them: the sum of the parts equals the whole."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise._core import BranchAndBound
from setwise.fields import Field, Pairwise, Potts, grid_edges
from setwise.inference._map._branching import _windows

seeds = st.integers(0, 2**32 - 1)


def random_field(seed, *, shape=(2, 4), n_labels=3, whole=False):
    """A grid with Potts weights on some edges and tables of any sign on others."""
    rng = np.random.default_rng(seed)

    def draw(*sides):
        return rng.integers(-4, 5, sides).astype(float) if whole else rng.normal(size=sides)

    edges = grid_edges(shape)
    is_potts = rng.random(len(edges)) < 0.5
    unary = draw(shape[0] * shape[1], n_labels)
    unary[rng.random(unary.shape) < 0.1] = np.inf
    unary[np.arange(len(unary)), rng.integers(0, n_labels, len(unary))] = 0.0
    field = Field(unary) + Potts(edges[is_potts], np.abs(draw(int(is_potts.sum()))))
    return field + Pairwise(edges[~is_potts], draw(int((~is_potts).sum()), n_labels, n_labels))


def energies_of(field):
    labelings = np.ascontiguousarray(reference.all_labelings(*field.unary.shape))
    return labelings, field._energies(labelings)


def network_of(field, gain=0.0):
    _, unary, terms = field._folded()
    tree = BranchAndBound(np.ascontiguousarray(unary))
    for _, term in terms:
        if isinstance(term, sw.fields.PottsTerm):
            tree.add_potts(np.ascontiguousarray(term.edges), term.weights)
        else:
            tables = np.ascontiguousarray(term.tables).reshape(len(term.tables), -1)
            tree.add_tables(np.ascontiguousarray(term.edges), np.full(2, field.n_labels), tables)
    tree.begin(gain)
    return tree, field._folded().constant


@given(seeds, st.booleans())
def test_messages_and_pushes_keep_every_energy_and_every_better_labelling(seed, whole):
    """The bound plus what a labelling pays is its energy, whatever was moved before."""
    rng = np.random.default_rng(seed)
    field = random_field(seed, shape=(2, 3), whole=whole)
    labelings, energies = energies_of(field)
    tree, constant = network_of(field)
    known = labelings[rng.choice(np.flatnonzero(np.isfinite(energies)))]
    limit = field.energy(known)
    if rng.random() < 0.5:
        tree.offer(np.ascontiguousarray(known))
    else:
        limit = np.inf
    for _ in range(4):
        if rng.random() < 0.5:
            is_open = tree.settle_root(int(rng.integers(1, 4)))
        else:
            is_open = tree.push((rng.random(len(known)) < 0.5).astype(np.uint8))
        if not is_open:  # no labelling is better than the known one
            assert limit == pytest.approx(energies.min(), abs=1e-12)
            return
        sizes = np.empty(len(known), np.int64)
        tree.sizes(sizes)
        inside = (rng.random(len(known)) < 0.6).astype(np.uint8)
        costs = np.empty(field.unary.shape)
        tree.window(inside, costs)
        kept = np.isfinite(costs)
        assert (kept.sum(axis=1) == sizes).all()
        some = np.union1d(
            rng.integers(0, len(energies), 20), np.flatnonzero(energies <= limit)[:20]
        )
        some = np.union1d(some, np.flatnonzero(energies == energies.min()))
        for labels, energy in zip(labelings[some], energies[some], strict=True):
            is_kept = kept[np.arange(len(labels)), labels].all()
            if energy < limit - 1e-12:
                assert is_kept
            if not is_kept:
                continue
            mine, paid = labels.copy(), np.empty(len(labels))
            tree.pays(mine, paid)
            np.testing.assert_array_equal(mine, labels)
            assert paid.min() >= 0.0
            assert tree.bound() + constant <= energy + 1e-12


@given(seeds, st.booleans())
def test_the_least_cost_of_a_window_adds_to_the_bound(seed, whole):
    """For any window: the bound plus its least cost is below the least energy."""
    rng = np.random.default_rng(seed)
    field = random_field(seed, shape=(2, 3), whole=whole)
    labelings, energies = energies_of(field)
    tree, constant = network_of(field)
    tree.settle_root(int(rng.integers(1, 4)))
    inside = rng.random(6) < 0.6
    assert tree.push(inside.astype(np.uint8))
    costs = np.empty(field.unary.shape)
    below = tree.window(inside.astype(np.uint8), costs)
    window = np.zeros(len(labelings))
    for i in np.flatnonzero(inside):
        window += costs[i, labelings[:, i]]
    for _, term in field._folded().terms:
        part = term.edges[inside[term.edges].all(axis=1)]
        kept = inside[term.edges].all(axis=1)
        if isinstance(term, sw.fields.PottsTerm):
            window += sw.fields.PottsTerm(part, term.weights[kept])._energies(labelings, 3)
        else:
            window += sw.fields.TableTerm(part, term.tables[kept])._energies(labelings, 3)
    least = float(window.min()) - below
    assert least >= -1e-12
    assert tree.bound() + least + constant <= energies.min() + 1e-11
    if inside.all():
        assert tree.bound() + least + constant == pytest.approx(energies.min(), abs=1e-11)


@given(seeds, st.booleans(), st.sampled_from([(2, 4), (3, 3), (1, 7)]))
def test_they_are_enumeration(seed, whole, shape):
    field = random_field(seed, shape=shape, whole=whole)
    _, energies = energies_of(field)
    best = sw.solve_map(field, "windows")
    assert best.bound <= energies.min() + 1e-12 <= best.value + 2e-12
    assert best.exact
    assert best.value == field.energy(best.labels) == pytest.approx(energies.min(), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_windows_close_what_few_passes_leave_open(seed, monkeypatch):
    """With two passes the gap is wide: windows grow until the border agrees."""
    monkeypatch.setattr(_windows, "_PASSES", 1)
    monkeypatch.setattr(_windows, "_LOOK", 1)
    field = random_field(seed, shape=(6, 7))
    truth = sw.solve_map(field, "elimination")
    seen = []
    best = sw.solve_map(field, "windows", callback=lambda now: seen.append(now))
    assert best.exact
    assert best.value == pytest.approx(truth.value, abs=1e-11)
    assert len(seen) >= 2
    for now in seen:
        assert now.bound <= truth.value + 1e-9 <= now.value + 2e-9
    for rounds in range(best.n_iter + 1):
        early = sw.solve_map(field, "windows", max_iter=rounds)
        assert early.bound <= truth.value + 1e-9 <= early.value + 2e-9
        assert not early.exact or early.value == pytest.approx(truth.value, abs=1e-9)


def test_a_search_that_is_left_early_gives_a_bound(monkeypatch):
    """Nothing is left for the windows: the bound is that of the searches as far as they went."""
    monkeypatch.setattr(_windows, "_ALL", 0.0)
    rng = np.random.default_rng(0)
    edges = grid_edges((8, 8))
    field = Field(rng.normal(size=(64, 4)))
    field += Pairwise(edges, rng.normal(0.0, 2.0, (len(edges), 4, 4)))
    truth = sw.solve_map(field, "branch_and_bound")
    monkeypatch.setattr(_windows, "is_cheap", lambda _: False)
    monkeypatch.setattr(_windows, "is_affordable", lambda _: False)
    left = sw.solve_map(field, "windows")
    assert truth.exact
    assert left.bound <= truth.value <= left.value


def test_photographs_of_several_labels_are_proved_by_default():
    """A picture whose relaxation has a gap: the default is exact, and never worse than convex."""
    rng = np.random.default_rng(3)
    n_exact = 0
    for _ in range(4):
        unary = rng.integers(0, 6, (100, 3)).astype(float)
        field = Field(unary) + Potts(grid_edges((10, 10)), 1.0 + rng.integers(0, 3, 180))
        best = sw.solve_map(field)
        n_exact += best.exact
        assert best.value <= sw.solve_map(field, "convex").value
    assert n_exact == 4
