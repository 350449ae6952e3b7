"""The Lovász relaxation: s stays in the base polytope, the gap closes, and bounds bound."""

from __future__ import annotations

import numpy as np
import pytest
from field_terms import (
    ANY,
    SUBMODULAR,
    Given,
    least_energy,
    random_field,
    random_term,
)
from reference import all_labelings, lifted, term_energy
from relaxed import lowered

from setwise.fields import RobustPn
from setwise.fields import _terms as t
from setwise.fields._field import Field
from setwise.inference._relaxation._minorants import relaxable_minorant
from setwise.inference._relaxation._paths import paths_of
from setwise.inference._relaxation._relaxation import Relaxation


def grid(shape: tuple[int, ...], *, diagonals: bool = False) -> np.ndarray:
    index = np.arange(np.prod(shape)).reshape(shape)
    parts = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    if diagonals:
        parts += [(index[:-1, :-1], index[1:, 1:]), (index[:-1, 1:], index[1:, :-1])]
    return np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in parts])


# ---------------------------------------------------------------------------- paths


def edges_of(groups) -> dict[tuple[int, int], float]:
    found: dict[tuple[int, int], float] = {}
    for group in groups:
        assert len(np.unique(group.vertices)) == len(group.vertices)
        for start, end in zip(group.starts[:-1], group.starts[1:], strict=True):
            assert group.weights[end - 1] == 0
            for k in range(start, end - 1):
                pair = tuple(sorted(group.vertices[k : k + 2].tolist()))
                assert pair not in found
                found[pair] = group.weights[k]
    return found


@pytest.mark.parametrize("seed", range(30))
def test_groups_are_disjoint_paths_that_hold_every_edge_once(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    edges = rng.integers(0, n, (int(rng.integers(0, 4 * n)), 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.random(len(edges)) + 0.1
    expected: dict[tuple[int, int], float] = {}
    for (i, j), w in zip(edges.tolist(), weights, strict=True):
        pair = (min(i, j), max(i, j))
        expected[pair] = expected.get(pair, 0.0) + w
    found = edges_of(paths_of(edges, weights, n))
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair]) for pair in expected)


@pytest.mark.parametrize("diagonals", [False, True])
def test_a_grid_comes_out_as_its_rows_columns_and_diagonals(diagonals):
    height, width = 5, 7
    edges = grid((height, width), diagonals=diagonals)
    groups = paths_of(edges, np.ones(len(edges)), height * width)
    counts = sorted(len(group.starts) - 1 for group in groups)
    # diagonals of at least two pixels: height + width - 3 each way
    assert counts == sorted([height, width] + [height + width - 3] * 2 * diagonals)
    rows = next(group for group in groups if len(group.starts) - 1 == height)
    np.testing.assert_array_equal(rows.vertices, np.arange(height * width))


def test_edges_of_weight_zero_are_left_out():
    assert paths_of(np.array([[0, 1], [1, 2]]), np.zeros(2), 3) == []


# ---------------------------------------------------------------------------- minorants


@pytest.mark.parametrize("kind", ["tables", "robust", "transition", "cardinality"])
@pytest.mark.parametrize("seed", range(25))
def test_minorants_are_below_for_every_labelling(kind, seed):
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    term = random_term(kind, n, n_labels, rng)
    field = Field(rng.normal(size=(n, n_labels))) + Given(term)
    below, equal = relaxable_minorant(field)
    for _, part in below:
        convex = isinstance(part, t.CardinalityTerm) and (np.diff(part.table, 2) >= -1e-12).all()
        assert part.is_submodular or convex
    for x in all_labelings(n, n_labels):
        true = term_energy(term, x)
        lower = sum(term_energy(part, x) for _, part in below)
        assert lower <= true + 1e-9
        assert not equal or lower == pytest.approx(true, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_tables_that_are_potts_and_unaries_come_out_equal(seed):
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(2, 5))
    tables = rng.random((1, 1, 1)) * (1 - np.eye(n_labels))[None]
    tables = tables + rng.normal(size=(1, n_labels, 1)) + rng.normal(size=(1, 1, n_labels))
    field = Field(np.zeros((2, n_labels))) + Given(t.TableTerm(np.array([[0, 1]]), tables))
    below, equal = relaxable_minorant(field)
    assert equal
    for x in all_labelings(2, n_labels):
        lower = sum(term_energy(part, x) for _, part in below)
        assert lower == pytest.approx(tables[0, x[0], x[1]], abs=1e-10)


def test_two_labels_submodular_tables_come_out_equal():
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(40, 2, 2))
    diagonal = tables[:, 0, 0] + tables[:, 1, 1]
    tables = tables[diagonal <= tables[:, 0, 1] + tables[:, 1, 0]]
    edges = np.tile([[0, 1]], (len(tables), 1))
    below, equal = relaxable_minorant(Field(np.zeros((2, 2))) + Given(t.TableTerm(edges, tables)))
    assert equal
    assert any(isinstance(part, t.PottsTerm) for _, part in below)


# ---------------------------------------------------------------------------- the polytope


def pair_values(field: Field) -> np.ndarray:
    """F on all sets of pairs, F(empty) = 0; pair (i, j) is element i L + j."""
    n, n_labels = field.unary.shape
    sets = (np.arange(1 << (n * n_labels))[:, None] >> np.arange(n * n_labels) & 1).astype(bool)
    values = sets @ field.unary.ravel()
    for _, term in field._terms():
        if isinstance(term, t.CardinalityTerm):  # of the pairs (i, center_i) that are not chosen
            at_center = sets.reshape(-1, n, n_labels)[:, np.arange(n), term.center]
            values += term.table[n - at_center.sum(axis=1)]
        else:
            values += lifted(term, n, n_labels)
    return values - values[0]


@pytest.mark.parametrize("seed", range(20))
def test_s_stays_in_the_base_polytope(seed):
    field = random_field(["potts", "count", "label", "concave cardinality"], 4, 3, seed)
    values = pair_values(field)
    for passes, momentum in [(1, True), (6, True), (4, False)]:
        answer = lowered(Relaxation(field), 0.3, tol=0.0, max_iter=passes, momentum=momentum)
        sets = np.arange(len(values))[:, None] >> np.arange(12) & 1
        slack = values - sets @ answer.scores.ravel()
        assert slack.min() >= -1e-9
        assert slack[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_every_s_bounds_every_energy(seed):
    # also with costs of groups of labels, whose s is shared by the labels of the group
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    field = random_field(ANY, n, n_labels, seed, forbidden=0.3)
    relaxation = Relaxation.below(field)
    labelings = all_labelings(n, n_labels)
    energies = field._energies(labelings)
    for temperature in [2.0, 0.1]:
        answer = lowered(relaxation, temperature, tol=0.0, max_iter=5)
        constant = answer.bound - answer.scores.min(axis=1).sum()
        sums = answer.scores[np.arange(n), labelings].sum(axis=1) + constant
        assert (sums <= energies + 1e-8).all()
        assert answer.bound <= energies.min() + 1e-8
        assert np.isinf(answer.scores[np.isinf(field.unary)]).all()
        assert (answer.probabilities[np.isinf(field.unary)] == 0).all()


# ---------------------------------------------------------------------------- the gap


@pytest.mark.parametrize("seed", range(20))
def test_the_gap_is_the_distance_from_the_least_value_and_closes(seed):
    field = random_field(SUBMODULAR, 5, 3, seed, forbidden=0.2)
    relaxation = Relaxation(field)
    best = lowered(relaxation, 1.0, tol=1e-10, max_iter=5000)
    assert best.converged
    assert best.gap <= 1e-8
    for passes in [0, 1, 3]:
        early = lowered(relaxation, 1.0, tol=0.0, max_iter=passes)
        assert early.gap >= 0
        assert early.objective - best.objective <= early.gap + 1e-9
        assert early.objective >= best.objective - 1e-9


@pytest.mark.parametrize("seed", range(15))
def test_the_gap_closes_with_a_convex_function_of_a_count(seed):
    # its relaxation is exact in one variable: the best of all lines below the table
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(1, 6)), int(rng.integers(2, 4))
    table = np.concatenate([[0.0], np.cumsum(np.sort(rng.normal(size=n)))])
    center = rng.integers(0, n_labels, n)
    unary = rng.normal(size=(n, n_labels))
    field = Field(unary) + Given(t.CardinalityTerm(center, table))
    relaxation = Relaxation.below(field)
    assert relaxation.is_equal
    answer = lowered(relaxation, 0.02, tol=1e-8, max_iter=2000)
    assert answer.converged
    slopes = np.linspace(-4.0, 4.0, 801)
    moved = np.arange(n_labels) != center[:, None]
    lines = [
        (unary + slope * moved).min(axis=1).sum() + (table - slope * np.arange(n + 1)).min()
        for slope in slopes
    ]
    smoothing = 0.02 * n * np.log(n_labels)
    assert answer.bound == pytest.approx(max(lines), abs=smoothing + 0.02)
    assert answer.bound <= least_energy(field) + 1e-9
    early = lowered(relaxation, 0.02, tol=0.0, max_iter=1)
    assert early.objective - answer.objective <= early.gap + 1e-7


@pytest.mark.parametrize("seed", range(10))
def test_momentum_reaches_the_plain_optimum_and_the_objective_never_rises(seed):
    field = random_field(SUBMODULAR, 6, 3, seed)
    relaxation = Relaxation(field)
    fast = lowered(relaxation, 0.5, tol=1e-9, max_iter=5000)
    plain = lowered(relaxation, 0.5, tol=1e-9, max_iter=20_000, momentum=False)
    assert fast.converged
    assert plain.converged
    assert fast.objective == pytest.approx(plain.objective, abs=1e-6)
    np.testing.assert_allclose(fast.probabilities, plain.probabilities, atol=1e-3)
    assert (np.diff(fast.history) <= 1e-12).all()
    assert (np.diff(plain.history) <= 1e-12).all()


def test_a_start_goes_on_where_the_other_stopped():
    field = random_field(["potts", "count"], 8, 3, 1)
    relaxation = Relaxation(field)
    first = lowered(relaxation, 1.0, tol=1e-8, max_iter=2000)
    again = lowered(relaxation, 1.0, tol=1e-8, init=first.blocks)
    assert again.n_iter == 0
    assert again.objective == pytest.approx(first.objective)


def test_the_objective_bounds_log_z():
    field = random_field(SUBMODULAR, 5, 3, 3)
    energies = field._energies(all_labelings(5, 3))
    answer = lowered(Relaxation(field), 1.0, tol=1e-9, max_iter=5000)
    assert answer.objective >= np.log(np.exp(-energies).sum())


def test_answers_do_not_depend_on_threads_to_the_last_bit():
    rng = np.random.default_rng(0)
    height, width, n_labels = 24, 31, 5
    n = height * width
    edges = grid((height, width))
    regions = (np.arange(n) // width // 6) * 4 + np.arange(n) % width // 8
    sizes = np.bincount(regions)
    tables = [-((np.arange(size + 1) / size) ** 2) for size in sizes]
    starts = np.concatenate([[0], np.cumsum(sizes + 1)])
    field = Field(rng.normal(size=(n, n_labels))) + Given(
        t.PottsTerm(edges, rng.random(len(edges))),
        t.CountTerm(regions, starts, np.concatenate(tables)),
        t.LabelTerm(3.0, np.arange(n_labels) == 1),
        t.LabelTerm(2.0, np.arange(n_labels) < 2),
        t.CardinalityTerm(np.zeros(n, np.int64), np.sqrt(np.arange(n + 1.0))),
    )
    one, two, many = (
        lowered(Relaxation(field), 0.5, tol=0.0, max_iter=7, n_threads=n_jobs)
        for n_jobs in (1, 2, 5)
    )
    for other in (two, many):
        np.testing.assert_array_equal(one.scores, other.scores)
        assert one.history == other.history
        assert one.gap == other.gap


# ---------------------------------------------------------------------------- edges of the domain


def test_a_field_without_potentials_is_solved_at_once():
    unary = np.array([[1.0, 0.5, np.inf], [0.0, 2.0, 1.0]])
    answer = lowered(Relaxation(Field(unary)), 1.0)
    np.testing.assert_array_equal(answer.scores, unary)
    assert answer.n_iter == 0
    assert answer.converged
    assert answer.gap == 0
    assert answer.bound == 0.5


def test_no_variables_and_one_label():
    nothing = Field(np.zeros((0, 3))) + Given(
        t.ConstantTerm(2.0), t.CardinalityTerm(np.zeros(0, np.int64), np.array([1.5]))
    )
    answer = lowered(Relaxation(nothing), 1.0)
    assert answer.bound == 3.5
    assert answer.scores.shape == (0, 3)
    single = Field([[1.0], [2.0]]) + Given(
        t.PottsTerm(np.array([[0, 1]]), np.ones(1)), t.LabelTerm(4.0, np.array([True]))
    )
    answer = lowered(Relaxation(single), 1.0)
    assert answer.bound == pytest.approx(least_energy(single))
    assert answer.converged


def test_a_field_that_is_not_submodular_is_refused():
    field = Field(np.zeros((4, 4))) + RobustPn([0, 0, 0, 0], 1.0, 3.0)
    with pytest.raises(ValueError, match="is submodular in the pairs"):
        Relaxation(field)
