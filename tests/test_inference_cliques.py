"""Tables of several variables and hard constraints; the best labelling by elimination."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise.fields import CliquePotential, Field
from setwise.inference._map._methods import METHODS

seeds = st.integers(0, 2**32 - 1)


def random_field(seed: int, hard: float) -> Field:
    """Up to seven variables of up to three labels, tables of up to four; some entries forbidden."""
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    unary = rng.normal(0.0, 2.0, (n, n_labels))
    unary[rng.uniform(size=unary.shape) < hard / 2] = np.inf
    unary[np.arange(n), rng.integers(0, n_labels, n)] = 0.25
    field = Field(unary)
    for _ in range(int(rng.integers(1, 5))):
        k = int(rng.integers(1, min(n, 4) + 1))
        count = int(rng.integers(1, 3))
        cliques = np.stack([rng.permutation(n)[:k] for _ in range(count)])
        tables = rng.normal(0.0, 2.0, (count, *[n_labels] * k))
        tables[rng.uniform(size=tables.shape) < hard] = np.inf
        tables[(slice(None), *[0] * k)] = 1.0
        field += CliquePotential(cliques, tables)
    return field


def energies_of(field: Field) -> np.ndarray:
    labelings = reference.all_labelings(*field.unary.shape)
    return np.array([reference.field_energy(field, labels) for labels in labelings])


@given(seeds, st.sampled_from([0.0, 0.3, 0.7]))
def test_cliques_are_what_enumeration_says(seed: int, hard: float) -> None:
    field = random_field(seed, hard)
    energies = energies_of(field)
    if np.isinf(energies).all():
        for method in ("enumerate", "elimination"):
            with pytest.raises(
                ValueError, match="must have a labelling of finite energy, got none"
            ):
                sw.solve_map(field, method)
        with pytest.raises(ValueError, match="must have a labelling of finite energy, got none"):
            sw.marginals(field, "elimination")
        return
    for method in ("auto", "enumerate", "elimination"):
        best = sw.solve_map(field, method)
        assert best.exact
        assert best.value == pytest.approx(energies.min(), abs=1e-9)
        assert best.bound <= best.value == pytest.approx(best.bound, abs=1e-9)
        assert field.energy(best.labels) == best.value
    truth = float(np.logaddexp.reduce(-energies))
    post = sw.marginals(field, "elimination")
    assert post.log_partition_lower - 1e-12 <= truth <= post.log_partition_upper + 1e-12
    weights = np.exp(-energies - truth)
    labelings = reference.all_labelings(*field.unary.shape)
    for i, label in np.ndindex(*field.unary.shape):
        share = weights[labelings[:, i] == label].sum()
        assert post.probabilities[i, label] == pytest.approx(share, abs=1e-9)
    for method in ("auto", "mean_field"):
        bounds = sw.marginals(field, method)
        assert bounds.log_partition_lower <= truth + 1e-12
        assert truth <= bounds.log_partition_upper + 1e-12


def test_mean_field_bounds_a_field_with_hard_constraints() -> None:
    """A path on which no two neighbours are on: Q ends where nothing is forbidden."""
    n = 30
    rng = np.random.default_rng(0)
    apart = np.array([[0.0, 0.0], [0.0, np.inf]])
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    field = Field(rng.normal(size=(n, 2))) + CliquePotential(path, apart)
    exact = sw.marginals(field, "elimination")
    post = sw.marginals(field, "mean_field")
    assert -np.inf < post.log_partition_lower <= exact.log_partition_upper
    assert exact.log_partition_upper - post.log_partition_lower < 6.0


@pytest.mark.parametrize("name", FIELDS)
def test_elimination_is_exact_for_every_listed_field(name: str) -> None:
    for seed in range(2):
        field = of_seed(name, seed)
        best = sw.solve_map(field, "elimination")
        least = reference.least_energy(field)
        assert best.exact
        assert best.value == pytest.approx(least, abs=1e-9 * max(1.0, abs(least)))
        assert best.bound <= best.value
        for constant, unit in ((1e9, 1.0), (-3.0, 1e-6), (0.0, 1e6)):
            moved = Field(unit * field.unary + constant)
            for potential in field.potentials:
                if not isinstance(potential, sw.fields.Potts | CliquePotential):
                    break
                given = potential.weights if isinstance(potential, sw.fields.Potts) else None
                moved += (
                    CliquePotential(potential.cliques, unit * potential.tables)
                    if given is None
                    else sw.fields.Potts(potential.edges, unit * given)
                )
            else:
                again = sw.solve_map(moved, "elimination")
                assert again.exact
                assert field.energy(again.labels) == pytest.approx(best.value, abs=1e-6)


@pytest.mark.parametrize("n_labels", [3, 20])
def test_chains_and_trees_are_exact_by_default(n_labels: int) -> None:
    rng = np.random.default_rng(1)
    n = 400
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    tree = np.stack([rng.integers(0, np.arange(1, n)), np.arange(1, n)], axis=1)
    for edges in (chain, tree):
        field = Field(rng.normal(size=(n, n_labels)))
        field += sw.fields.Pairwise(edges, rng.normal(size=(n - 1, n_labels, n_labels)))
        best = sw.solve_map(field)
        exact = sw.solve_map(field, "elimination")
        assert (exact.exact, exact.relative_gap) == (True, 0.0)
        assert exact.gap <= 1e-12 * n * abs(exact.value)  # rounding, outwards
        assert best.exact
        assert best.value == pytest.approx(exact.value, abs=1e-9)
        post = sw.marginals(field)
        assert (post.method, post.of) == ("elimination", "the field itself: they are exact")
        assert post.width <= 1e-8


def test_auto_eliminates_what_a_search_leaves_open() -> None:
    """Cycles of strong tables: messages end with a gap, which elimination closes."""
    closed = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        ends = rng.integers(0, 60, (90, 2))
        edges = ends[ends[:, 0] != ends[:, 1]]
        field = Field(rng.normal(size=(60, 4)))
        field += sw.fields.Pairwise(edges, rng.normal(0.0, 2.0, (len(edges), 4, 4)))
        best = sw.solve_map(field)
        assert best.exact
        assert best.value <= sw.solve_map(field, "messages").value + 1e-9
        if best.method == "elimination" and "left a gap" in best.reason:
            closed += 1
            loose = sw.solve_map(field, tol=np.inf)
            assert loose.method != "elimination"
    assert closed > 0


def test_wide_fields_are_not_eliminated_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = "setwise.inference._map._junction_tree.largest_memory"
    monkeypatch.setattr(largest, lambda: float(1 << 30))
    rng = np.random.default_rng(0)
    field = Field(rng.normal(size=(1600, 3)))
    field += sw.fields.Potts(sw.fields.grid_edges((40, 40)), 0.5)
    assert sw.solve_map(field, tol=np.inf).method == "expansion"
    assert sw.marginals(field, tol=1e-1).method == "trees"
    with pytest.raises(ValueError, match=r"width 16 or less with 3 labels.*, got width .* or more"):
        sw.solve_map(field, "elimination")


def test_the_labels_that_are_forbidden_make_no_table_larger() -> None:
    """Forty variables that see each other, all but eight of them sure."""
    rng = np.random.default_rng(0)
    n = 40
    unary = rng.normal(size=(n, 2))
    unary[8:, 1] = np.inf
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    tables = rng.normal(size=(len(pairs), 2, 2))
    field = Field(unary) + sw.fields.Pairwise(pairs, tables)
    best = sw.solve_map(field, "elimination")
    assert best.value == pytest.approx(sw.solve_map(field, "enumerate").value)


def test_an_interrupt_leaves_the_start() -> None:
    field = of_seed("any-tables-on-three-labels", 0)

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    best = sw.solve_map(field, "elimination", callback=stop)
    assert best.interrupted
    assert best.bound <= reference.least_energy(field) + 1e-9 <= best.value + 2e-9
    late = sw.solve_map(field, "elimination", time_limit=0.0)
    assert late.bound <= reference.least_energy(field) + 1e-9 <= late.value + 2e-9


REFUSING = ["cut", "odd_cycles", "windows", "expansion", "messages", "swap", "convex"]


@pytest.mark.parametrize("method", REFUSING)
def test_searches_by_moves_refuse_hard_constraints_and_name_those_that_take_them(method) -> None:
    field = Field(np.zeros((3, 2))) + CliquePotential([[0, 1]], [[0.0, np.inf], [0.0, 0.0]])
    sentence = rf"{method} cannot take CliquePotential\(.*: elimination, branch_and_bound take it"
    with pytest.raises(ValueError, match=sentence):
        sw.solve_map(field, method)
    assert set(REFUSING) | {"enumerate", "elimination", "branch_and_bound"} == set(METHODS)


@pytest.mark.parametrize("method", ["projection", "trees", "exact_binary", "frank_wolfe"])
def test_bounds_of_marginals_refuse_cliques_and_name_those_that_take_them(method: str) -> None:
    field = Field(np.zeros((3, 2))) + CliquePotential([[0, 1, 2]], np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match=r"elimination, mean_field and belief_propagation take it"):
        sw.marginals(field, method)


@pytest.mark.parametrize("hard", [0.0, 0.4])
def test_belief_propagation_is_exact_on_trees_of_cliques(hard: float) -> None:
    """Cliques of three along a path, two neighbours sharing one variable, and some pairs."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        field = Field(rng.normal(size=(9, 2)))
        tables = rng.normal(size=(3, 2, 2, 2))
        tables[rng.uniform(size=tables.shape) < hard] = np.inf
        tables[:, 0, 1, 0] = 0.5
        field += CliquePotential([[0, 1, 2], [4, 3, 2], [4, 5, 6]], tables)
        field += sw.fields.Pairwise([[6, 7], [7, 8]], rng.normal(size=(2, 2, 2)))
        exact = sw.marginals(field, "elimination")
        post = sw.marginals(field, "belief_propagation", tol=1e-12)
        assert post.converged
        np.testing.assert_allclose(post.probabilities, exact.probabilities, atol=1e-9)
        assert post.log_partition_lower <= exact.log_partition_upper


def test_finite_tables_of_one_and_two_variables_are_unaries_and_pairs() -> None:
    potts = 0.5 * (1.0 - np.eye(2))
    field = Field([[0.0, 1.0], [2.0, 0.0]]) + CliquePotential([[0, 1]], potts)
    field += CliquePotential([[1]], [0.0, 0.25])
    assert field.is_submodular
    assert sw.solve_map(field).method == "cut"


@pytest.mark.parametrize(
    ("cliques", "tables", "error", "match"),
    [
        ([[0, 0]], np.zeros((2, 2)), ValueError, "clique 0 has 0 twice"),
        ([0, 1], np.zeros((2, 2)), ValueError, r"cliques must have shape \(C, k\)"),
        ([[0.5, 1.0]], np.zeros((2, 2)), TypeError, "cliques must hold integers"),
        ([[-1, 1]], np.zeros((2, 2)), ValueError, "numbered from 0, got -1"),
        ([[0, 1]], np.zeros((2, 3)), ValueError, r"tables must have shape \(C, L, L\) or"),
        ([[0, 1]], np.full((2, 2), np.inf), ValueError, "a finite entry each, got none in table 0"),
        ([[0, 1]], [[0.0, -np.inf], [0.0, 0.0]], ValueError, r"numbers or \+inf, got -inf"),
        ([[0, 1]], np.zeros((2, 2, 2)), ValueError, "one for each of 1 cliques, got 2"),
        ([[0, 5]], np.zeros((2, 2)), ValueError, "the field's 3 variables, numbered from 0, got 5"),
        ([[0, 1]], np.zeros((3, 3)), ValueError, "each of the field's 2 labels, got 3"),
    ],
)
def test_bad_cliques(cliques, tables, error, match) -> None:
    with pytest.raises(error, match=match):
        Field(np.zeros((3, 2))) + CliquePotential(cliques, tables)


def test_auto_eliminates_what_no_search_takes_at_any_cost():
    # a constraint with more entries than elimination is chosen for beside searches
    k = 20
    table = np.full((2,) * k, np.inf)
    table[tuple(np.eye(k, dtype=np.int64))] = 0.0  # exactly one is on
    unary = np.random.default_rng(0).normal(size=(k, 2))
    field = sw.fields.Field(unary) + sw.fields.CliquePotential([np.arange(k)], table)
    best = sw.solve_map(field)
    assert (best.method, best.exact, best.labels.sum()) == ("elimination", True, 1)
    assert best.value == pytest.approx(unary[:, 0].sum() + (unary[:, 1] - unary[:, 0]).min())


def test_no_cliques_are_no_energy(tmp_path):
    none, tables = np.zeros((0, 3), np.int64), np.zeros((0, 2, 2, 2))
    field = Field([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="tables must have one for each of 1 cliques, got 0"):
        CliquePotential([[0, 1, 2]], tables)

    class Bare(sw.fields.Potential):
        n_labels = None
        is_submodular = True

        def terms(self, n_variables, n_labels):
            return (sw.fields.CliqueTerm(none, tables),)

    for one in (
        CliquePotential(none, tables),
        CliquePotential(none, tables[:0].sum(axis=0)),
        Bare(),
    ):
        more = field + one
        assert more.energy([0, 1, 0]) == 0.0
        assert sw.solve_map(more).value == 0.0
        truth = reference.log_partition(field, 1.0)
        for method in ("auto", "elimination", "mean_field"):
            post = sw.marginals(more, method)
            assert post.log_partition_lower <= truth + 1e-12 <= post.log_partition_upper + 2e-12
        assert sw.sample(more, 5, rng=0).labelings.shape == (5, 3)
    sw.fields.write_uai(field + CliquePotential(none, tables), tmp_path / "none.uai")
    assert sw.fields.read_uai(tmp_path / "none.uai").energy([0, 1, 0]) == pytest.approx(0.0)


def least_of(field: Field) -> float:
    return float(field._energies(reference.all_labelings(field.n_variables, field.n_labels)).min())


@pytest.mark.parametrize("n_labels", [2, 3])
def test_messages_bound_fields_of_tables_from_below_and_find_the_best_of_most(n_labels):
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        unary = rng.normal(size=(8, n_labels))
        unary[2, 0] = np.inf
        cliques = np.array([rng.permutation(8)[:3] for _ in range(5)])
        field = Field(unary)
        field += CliquePotential(cliques, rng.normal(size=(5, *[n_labels] * 3)))
        field += CliquePotential([[0, 3, 5, 7]], rng.normal(size=[n_labels] * 4))
        field += sw.fields.Potts(sw.fields.grid_edges((2, 4)), 0.3)
        field += sw.fields.LabelCost(np.full(n_labels, 0.5))
        least = least_of(field)
        best = sw.solve_map(field, "messages")
        assert best.bound <= least + 1e-9
        assert best.value >= least - 1e-9
        assert best.value == pytest.approx(field.energy(best.labels))
        short = sw.solve_map(field, "messages", max_iter=1)
        assert short.bound <= best.bound + 1e-9
        found += best.value == pytest.approx(least)
    assert found >= 10


def test_messages_are_exact_for_trees_of_tables():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        field = Field(rng.normal(size=(7, 3)))
        tables = 2 * rng.normal(size=(3, 3, 3, 3))
        field += CliquePotential([[0, 1, 2], [2, 3, 4], [4, 5, 6]], tables)
        best = sw.solve_map(field, "messages")
        assert best.value == pytest.approx(least_of(field))
        assert best.gap <= 1e-6


def test_messages_take_tables_of_fewer_labels_than_the_field(tmp_path):
    path = tmp_path / "short.uai"
    entries = " ".join(str(k % 5 + 1) for k in range(12))
    path.write_text(f"MARKOV 4  2 3 2 4  2  3 0 1 2  1 3  12 {entries}  4 1 2 3 4")
    field = sw.fields.read_uai(path)
    best = sw.solve_map(field, "messages")
    assert best.value == pytest.approx(least_of(field))
    assert best.bound <= best.value


@pytest.mark.parametrize("sides", [(4, 6), (30, 30)])
def test_marginals_of_hard_tables_are_exact_or_messages_by_default(sides):
    """No two neighbours on: a lower bound all the same, of a labelling that is allowed."""
    never = np.zeros((2, 2))
    never[1, 1] = np.inf
    n = sides[0] * sides[1]
    field = Field(np.random.default_rng(0).normal(size=(n, 2)))
    field += CliquePotential(sw.fields.grid_edges(sides), never)
    post = sw.marginals(field)
    assert post.method == ("elimination" if n == 24 else "belief_propagation")
    assert np.isfinite(post.log_partition_lower)
    if n == 24:
        assert post.width < 1e-9


def test_a_field_without_labellings_is_refused_or_its_answer_says_so():
    other = np.full((2, 2), np.inf)
    other[0, 1] = other[1, 0] = 0.0
    odd = CliquePotential([[0, 1], [1, 2], [0, 2]], other)  # three cannot all differ
    for method in ("auto", "mean_field", "belief_propagation", "elimination"):
        with pytest.raises(ValueError, match="must have a labelling of finite energy, got none"):
            sw.marginals(Field(np.zeros((3, 2))) + odd, method)
    wide = Field(np.zeros((900, 2))) + odd
    wide += CliquePotential(sw.fields.grid_edges((30, 30)), np.where(other > 0, 0.5, np.inf))
    for method in ("auto", "mean_field", "belief_propagation"):
        post = sw.marginals(wide, method, max_iter=5)
        assert post.reason.endswith("no labelling of finite energy is known, and there may be none")
        assert not post.converged
        assert post.log_partition_lower == -np.inf
