"""Every move is the best of all answers to its offers, whatever the terms."""

from itertools import combinations

import numpy as np
import pytest
import reference
from field_registry import FIELDS, grid, of_seed
from hypothesis import given
from hypothesis import strategies as st
from move_fields import least, random_field
from searches import cut, expansion, swap

from setwise import fields
from setwise.inference._conditioning._magnitude import trivial_bound
from setwise.inference._map._moves._terms import start_moves

SEARCHES = {"cut": cut, "expansion": expansion, "swap": swap}
CASES = [pytest.param(name, seed, id=f"{name}-{seed}") for name in FIELDS for seed in range(3)]


def check_move(field, kernel, labels, move, idle=0):
    """Makes a move and compares it with all answers; returns the labels after it."""
    if len(move) == 1:
        change = kernel.expand(*move)
        offers = [sorted({int(label), *move}) for label in labels]
    else:
        change = kernel.swap(*move)
        offers = [list(move) if label in move else [int(label)] for label in labels]
    after = np.empty_like(labels)
    kernel.read(after)
    energy = field.energy(after)
    expected = least(field, offers[: len(labels) - idle], idle)
    assert energy == pytest.approx(expected, rel=1e-12, abs=1e-9)
    assert energy - field.energy(labels) == pytest.approx(change, rel=1e-9, abs=1e-9)
    assert change <= 0.0
    return after


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(2, 4), st.booleans())
def test_an_expansion_is_the_best_of_all_answers(seed, n, n_labels, is_part):
    """Where most variables are idle, an expansion is solved over a part of the field."""
    rng = np.random.default_rng(seed)
    idle = 200 if is_part else 0
    field = random_field(rng, "expansion", n, n_labels, idle)
    kernel, labels = start_moves(field, None)
    for a in rng.integers(n_labels, size=8):
        labels = check_move(field, kernel, labels, (int(a),), idle)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(2, 4))
def test_a_swap_is_the_best_of_all_answers(seed, n, n_labels):
    rng = np.random.default_rng(seed)
    field = random_field(rng, "swap", n, n_labels)
    kernel, labels = start_moves(field, None)
    pairs = list(combinations(range(n_labels), 2))
    for k in rng.integers(len(pairs), size=8):
        labels = check_move(field, kernel, labels, pairs[k])


@pytest.mark.parametrize("weight", [0.5, 1.5, 5.0])
@pytest.mark.parametrize("costs", [0.0, 3.0])
def test_expansions_of_a_grid_are_cuts_of_their_offers(weight, costs):
    """On a field too large to enumerate: two labels, own and offered, solved by `cut`."""
    rng = np.random.default_rng(int(10 * weight + costs))
    side, n_labels = 24, 5
    edges = grid(side, side)
    unary = rng.normal(size=(side * side, n_labels)) + 2.0 * (
        np.arange(side * side)[:, None] * n_labels // (side * side) != np.arange(n_labels)
    )
    weights = weight * rng.uniform(size=len(edges))
    field = fields.Field(unary) + fields.Potts(edges, weights)
    if costs:
        field += fields.LabelCost(np.full(n_labels, costs))
    kernel, labels = start_moves(field, None)
    for turn in range(3 * n_labels):
        a = turn % n_labels
        i, j = labels[edges].T
        tables = np.stack([[i != j, i != a], [a != j, np.zeros(len(i))]]).transpose(2, 0, 1)
        own = unary[np.arange(len(labels)), labels]
        offered = fields.Field(np.stack([own, unary[:, a]], axis=1))
        best = cut(offered + fields.Pairwise(edges, weights[:, None, None] * tables))
        change = kernel.expand(a)
        after = np.empty_like(labels)
        kernel.read(after)
        if costs == 0.0:
            assert field.energy(after) == pytest.approx(best.value, rel=1e-12)
        else:
            moved = np.where(best.labels == 1, a, labels)
            assert field.energy(after) <= min(field.energy(moved), field.energy(labels)) + 1e-9
        assert field.energy(after) - field.energy(labels) == pytest.approx(change, abs=1e-9)
        labels = after


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(2, 4), st.booleans())
def test_swaps_with_transitions_never_raise_the_energy(seed, n, n_labels, root):
    rng = np.random.default_rng(seed)
    field = random_field(rng, "swap", n, n_labels)
    costs = np.triu(rng.exponential(size=(n_labels, n_labels)), 1)
    edges = np.array(list(combinations(range(n), 2)))
    edges = edges[rng.random(len(edges)) < 0.6]
    field += fields.LabelTransition(edges, costs + costs.T, np.sqrt if root else None)
    kernel, labels = start_moves(field, None)
    for a, b in combinations(range(n_labels), 2):
        change = kernel.swap(a, b)
        after = np.empty_like(labels)
        kernel.read(after)
        assert change <= 0.0
        assert field.energy(after) - field.energy(labels) == pytest.approx(change, abs=1e-9)
        labels = after


@pytest.mark.parametrize(("name", "seed"), CASES)
@pytest.mark.parametrize("method", SEARCHES)
def test_a_search_is_refused_or_keeps_its_promises(method, name, seed):
    field = of_seed(name, seed)
    search = SEARCHES[method]
    try:
        best = search(field)
    except ValueError as error:
        said = str(error)
    else:
        said = ""
    if said:
        known = [f"{method} cannot take {potential!r}: " for potential in field.potentials]
        known.append("cut needs a field of at most two labels")
        assert said.startswith(tuple(known))
        return
    energies = field.energy(reference.all_labelings(field.n_variables, field.n_labels))
    lowest = energies.min() if len(energies) else field.energy(best.labels)
    assert best.labels.dtype == np.int64
    assert best.value == field.energy(best.labels)
    assert best.value >= lowest - 1e-9
    assert best.bound <= lowest + 1e-9
    assert best.bound <= best.value
    assert best.converged
    assert not best.interrupted
    assert best.method == method
    assert trivial_bound(field) <= lowest + 1e-9
    transitions = any(isinstance(p, fields.LabelTransition) for p in field.potentials)
    if field.n_labels <= 2 and not transitions:
        assert best.exact
        assert best.value == pytest.approx(lowest, abs=1e-9)


@pytest.mark.parametrize("method", SEARCHES)
def test_no_variables_and_one_label(method):
    search = SEARCHES[method]
    empty = search(fields.Field(np.zeros((0, 2))))
    assert empty.labels.shape == (0,)
    assert empty.value == 0.0
    one = search(fields.Field([[1.0], [2.0]]) + fields.Potts([[0, 1]], 1.0))
    assert one.labels.tolist() == [0, 0]
    assert one.value == 3.0
    assert one.exact


def test_refusals_name_the_potential_and_the_reason():
    field = fields.Field(np.zeros((4, 3)))
    steps = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])  # (a - b)^2
    mixed = field + fields.Pairwise([[0, 1], [2, 3]], np.stack([1.0 - np.eye(3), steps]))
    with pytest.raises(
        ValueError,
        match=r"expansion cannot take Pairwise\(.*\): its table is not submodular in every "
        r"expansion on edge \(2, 3\)",
    ):
        expansion(mixed)
    assert swap(field + fields.Pairwise([[2, 3]], steps)).converged
    with pytest.raises(ValueError, match=r"not submodular in every swap on edge \(0, 1\)"):
        swap(field + fields.Pairwise([[0, 1]], -steps))
    two = fields.Field(np.zeros((4, 2)))
    with pytest.raises(
        ValueError, match=r"cut cannot take .*: its table is not submodular on edge"
    ):
        cut(two + fields.Pairwise([[0, 1]], [[0.0, -1.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="cut needs a field of at most two labels, got 3"):
        cut(field)
    six = fields.Field(np.zeros((6, 3))) + fields.RobustPn(np.zeros(6, int), 1.0, 5.0)
    with pytest.raises(ValueError, match="its truncation is above half of a region"):
        expansion(six)
    with pytest.raises(ValueError, match="its center must be the same label for all variables"):
        swap(field + fields.CardinalityPotential([0, 0, 0, 1], np.zeros(5)))
    with pytest.raises(ValueError, match="its table is not concave"):
        cut(two + fields.CardinalityPotential(np.zeros(4, int), np.arange(5.0) ** 2))
    for search in (cut, expansion):
        with pytest.raises(ValueError, match=r"cannot take LabelTransition\(.*for swaps alone"):
            search(two + fields.LabelTransition([[0, 1]], 1.0 - np.eye(2)))
