"""Two labels and pairs of any sign: cutting planes and branching are enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

import setwise as sw
from setwise.inference._map._odd_cycles import _odd_cycles
from setwise.inference._map._odd_cycles._program import CutProgram
from setwise.inference._map._odd_cycles._separation import Separation
from setwise.inference._map._odd_cycles._signed_graph import SignedGraph


def random_field(seed: int, n: int, density: float, whole: bool = False) -> sw.fields.Field:
    """Pairs of any sign, some of them Potts, some variables without a choice or unaries."""
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    edges = pairs[rng.random(len(pairs)) < density]
    edges = np.where(rng.random((len(edges), 1)) < 0.5, edges, edges[:, ::-1])
    unary, tables = rng.normal(size=(n, 2)), 2.0 * rng.normal(size=(len(edges), 2, 2))
    if whole:
        unary, tables = np.round(3.0 * unary), np.round(3.0 * tables)
    unary[rng.random(n) < 0.3] = 0.0
    unary[rng.random(n) < 0.15, rng.integers(2)] = np.inf
    field = sw.fields.Field(unary) + sw.fields.Pairwise(edges, tables)
    return field + sw.fields.Potts(edges[::3], 2.0 if whole else 0.5)


def energies_of(field: sw.fields.Field) -> np.ndarray:
    n = field.n_variables
    return field._energies(np.ascontiguousarray(np.indices((2,) * n).reshape(n, 2**n).T))


@pytest.mark.parametrize("seed", range(30))
def test_it_is_enumeration(seed):
    n = (3, 6, 9, 11)[seed % 4]
    field = random_field(seed, n, (0.2, 0.5, 1.0)[seed % 3])
    best = sw.solve_map(field, "odd_cycles")
    least = energies_of(field).min()
    assert best.exact
    assert best.value == pytest.approx(least, abs=1e-9)
    assert best.bound <= least + 1e-12
    assert (best.method, best.converged, best.interrupted) == ("odd_cycles", True, False)


@pytest.mark.parametrize("n", [1, 4])
def test_variables_without_pairs_or_without_a_choice(n):
    rng = np.random.default_rng(n)
    for unary in (np.zeros((n, 2)), rng.normal(size=(n, 2)), [[np.inf, 2.0]] * n):
        best = sw.solve_map(sw.fields.Field(unary), "odd_cycles")
        assert best.exact
        assert best.value == pytest.approx(np.min(unary, axis=1).sum())


def test_dense_spin_glasses_need_branches_and_are_solved(monkeypatch):
    """Complete graphs, whose program with odd cycles has fractional solutions."""
    branches = []
    begin = _odd_cycles._OddCycles._begin

    def listed(self, problem):
        branches.append(problem.fixed)
        begin(self, problem)

    monkeypatch.setattr(_odd_cycles._OddCycles, "_begin", listed)
    edges = np.stack(np.triu_indices(13, 1), axis=1)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        tables = rng.choice([-1.0, 1.0], (len(edges), 1, 1)) * (1.0 - np.eye(2))
        field = sw.fields.Field(np.zeros((13, 2))) + sw.fields.Pairwise(edges, tables)
        best = sw.solve_map(field, "odd_cycles")
        assert best.exact
        assert best.value == energies_of(field).min()
        assert 0.0 <= best.gap <= 1e-12
    assert any(branches)


@pytest.mark.parametrize("seed", range(12))
def test_whole_numbers_are_exact_in_rational_arithmetic(seed):
    field = random_field(seed, 10, 0.6, whole=True)
    best = sw.solve_map(field, "odd_cycles")
    least = min(Fraction(e) for e in energies_of(field) if e < np.inf)
    assert best.exact
    assert Fraction(best.value) == least
    assert 0 <= least - Fraction(best.bound) <= Fraction(1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_every_stage_has_a_true_bound_and_an_interrupt_keeps_it(seed):
    field = random_field(seed, 10, 1.0)
    least = energies_of(field).min()
    full = sw.solve_map(field, "odd_cycles")
    bounds = []
    for rounds in range(full.n_iter + 1):
        early = sw.solve_map(field, "odd_cycles", max_iter=rounds)
        bounds.append(early.bound)
        assert early.bound <= least + 1e-12 <= early.value + 1e-9
        assert early.n_iter == rounds
        assert not early.exact or early.value == pytest.approx(least, abs=1e-9)
    assert bounds == sorted(bounds)
    seen = []

    def stop(now: object) -> None:
        seen.append(now)
        if len(seen) == 2:
            raise KeyboardInterrupt

    broken = sw.solve_map(field, "odd_cycles", callback=stop)
    assert broken.interrupted == (full.n_iter >= 2 and not broken.exact)
    assert broken.bound <= least + 1e-12
    late = sw.solve_map(field, "odd_cycles", time_limit=0.0)
    assert late.bound <= least + 1e-12
    assert "time_limit" in late.reason or late.exact


def test_a_solver_that_fails_leaves_a_valid_answer(monkeypatch):
    field = random_field(1, 10, 1.0)
    monkeypatch.setattr(CutProgram, "solve", lambda self: None)
    best = sw.solve_map(field, "odd_cycles")
    assert not best.exact
    assert not best.converged
    assert best.bound <= energies_of(field).min() <= best.value + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_any_multipliers_give_a_bound_in_rational_arithmetic(seed):
    """The bound minus its own slack is below the exact Lagrangian, and that below every energy."""
    rng = np.random.default_rng(seed)
    field = random_field(seed, 8, 0.8)
    graph = SignedGraph.of(field)
    separation, program = Separation(graph), CutProgram(graph)
    for _ in range(3):
        program.add(separation.any(rng.random(len(graph.edges))))
    multipliers = rng.exponential(size=program.n_rows)
    size = len(graph.edges)
    found = program.bound(multipliers, np.zeros(size), np.ones(size))
    reduced = [Fraction(w) for w in graph.weights]
    for row, edge, sign in zip(program._rows, program._columns, program._signs, strict=True):
        reduced[edge] += Fraction(sign) * Fraction(multipliers[row])
    exact = Fraction(graph.constant) + sum(min(r, Fraction(0)) for r in reduced)
    exact -= sum(
        Fraction(m) * Fraction(b) for m, b in zip(multipliers, program._limits, strict=True)
    )
    slack = Fraction(found.sums.lost)
    assert Fraction(found.value) - slack <= exact <= Fraction(found.value) + slack
    assert exact <= Fraction(energies_of(field).min()) + Fraction(1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_graph_has_the_energies_of_the_field(seed):
    field = random_field(seed, 7, 0.7)
    graph = SignedGraph.of(field)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        sides = rng.integers(0, 2, graph.n)
        crossed = sides[graph.edges[:, 0]] != sides[graph.edges[:, 1]]
        energy = field._energies(graph.labels(sides)[None])[0]
        assert graph.constant + graph.weights @ crossed == pytest.approx(energy, abs=1e-12)
        again = graph.improved(sides)
        after = again[graph.edges[:, 0]] != again[graph.edges[:, 1]]
        assert graph.weights @ after <= graph.weights @ crossed + 1e-12
        rounded = graph.rounded(crossed.astype(float))
        np.testing.assert_array_equal(graph.labels(rounded), graph.labels(sides))


def cycles_of(graph: SignedGraph) -> list[list[int]]:
    """Return the edges of every simple cycle."""
    number = {frozenset(edge): e for e, edge in enumerate(graph.edges.tolist())}
    found = []
    for size in range(3, graph.n + 1):
        for nodes in combinations(range(graph.n), size):
            for rest in permutations(nodes[1:]):
                if rest[0] > rest[-1]:
                    continue
                around = [nodes[0], *rest, nodes[0]]
                steps = [frozenset(pair) for pair in pairwise(around)]
                if all(step in number for step in steps):
                    found.append([number[step] for step in steps])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_separation_finds_the_most_violated_cycle(seed):
    """Compared with all subsets F of all cycles; what is found is true of every cut."""
    rng = np.random.default_rng(seed)
    graph = SignedGraph.of(random_field(seed, 6, (0.5, 0.8)[seed % 2]))
    size = len(graph.edges)
    y = rng.random(size) ** 2 if seed % 3 else rng.choice([0.0, 0.5, 1.0], size)
    most = 0.0
    for cycle in cycles_of(graph):
        for count in range(1, len(cycle) + 1, 2):
            for chosen in combinations(cycle, count):
                slack = sum(1 - y[e] if e in chosen else y[e] for e in cycle)
                most = max(most, 1.0 - slack)
    separation = Separation(graph)
    found = separation.any(y)
    assert (len(found) > 0) == (most > 1e-5)
    if len(found):
        assert found.violations[0] == pytest.approx(most)
    for one in (found, separation.short(y)):
        for row in range(len(one)):
            part = slice(one.starts[row], one.starts[row + 1])
            edges, in_f = one.edges[part], one.in_f[part]
            assert len(set(edges.tolist())) == len(edges)
            assert in_f.sum() % 2 == 1
            slack = np.where(in_f, 1.0 - y[edges], y[edges]).sum()
            assert one.violations[row] == pytest.approx(1.0 - slack)
            for _ in range(20):
                sides = rng.integers(0, 2, graph.n)
                crossed = (sides[graph.edges[edges, 0]] != sides[graph.edges[edges, 1]]).astype(int)
                assert np.where(in_f, 1 - crossed, crossed).sum() >= 1


@pytest.mark.parametrize("seed", range(8))
def test_edges_between_decided_nodes_are_decided(seed):
    rng = np.random.default_rng(seed)
    graph = SignedGraph.of(random_field(seed, 7, 0.8))
    sides = rng.integers(0, 2, graph.n)
    crossed = (sides[graph.edges[:, 0]] != sides[graph.edges[:, 1]]).astype(float)
    fixed = rng.random(len(crossed)) < 0.4
    lower, upper = np.where(fixed, crossed, 0.0), np.where(fixed, crossed, 1.0)
    found = graph.settled(lower, upper)
    assert found is not None
    low, high = found
    np.testing.assert_array_equal(low[low == high], crossed[low == high])
    agree = []  # of all cuts that agree with the fixed edges
    for code in range(2 ** (graph.n - 1)):
        other = np.array([code >> k & 1 for k in range(graph.n)])
        cut = other[graph.edges[:, 0]] != other[graph.edges[:, 1]]
        if (cut[fixed] == (crossed[fixed] > 0.5)).all():
            agree.append(cut)
    same = np.all(np.array(agree) == agree[0], axis=0)
    np.testing.assert_array_equal(low == high, same)
    e = int(np.flatnonzero((low == high) & ~fixed)[0]) if ((low == high) & ~fixed).any() else -1
    if e >= 0:
        lower[e] = upper[e] = 1.0 - crossed[e]
        assert graph.settled(lower, upper) is None


def torus_field(side: int, seed: int) -> sw.fields.Field:
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    ends = [np.stack([at, np.roll(at, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    edges = np.concatenate(ends)
    tables = rng.choice([-1.0, 1.0], (len(edges), 1, 1)) * (1.0 - np.eye(2))
    field = sw.fields.Field(0.1 * rng.normal(size=(side * side, 2)))
    return field + sw.fields.Pairwise(edges, tables)


def test_auto_proves_a_torus_that_is_too_wide_for_elimination_and_messages():
    field = torus_field(16, 0)
    best = sw.solve_map(field)
    assert (best.method, best.exact) == ("odd_cycles", True)
    assert "it left a gap, and odd_cycles is cheap here" in best.reason
    small = torus_field(10, 1)
    one, other = sw.solve_map(small, "odd_cycles"), sw.solve_map(small, "elimination")
    assert one.value == pytest.approx(other.value, abs=1e-12)


def test_a_search_beside_others_ends_after_its_budget(monkeypatch):
    """Messages, which gave way to the linear program, then go on."""
    monkeypatch.setattr("setwise.inference._map._solve_map._BUDGET", 0.0)
    monkeypatch.setattr("setwise.inference._map._solve_map.is_affordable", lambda field: False)
    field = torus_field(16, 0)
    best = sw.solve_map(field)
    alone = sw.solve_map(field, "messages")
    assert best.value <= alone.value
    assert best.bound >= alone.bound - 1e-9


def test_what_it_cannot_take_is_refused():
    wide = sw.fields.Field(np.zeros((5001, 2))) + sw.fields.Pairwise([[0, 1]], -np.eye(2)[None])
    with pytest.raises(ValueError, match="odd_cycles needs at most 5000 variables, got 5001"):
        sw.solve_map(wide, "odd_cycles")
    three = sw.fields.Field(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="odd_cycles needs a field of two labels, got 3"):
        sw.solve_map(three, "odd_cycles")
    region = sw.fields.Field(np.zeros((3, 2))) + sw.fields.RegionConsistency([0, 0, 0], 1.0, 0.5)
    with pytest.raises(ValueError, match=r"odd_cycles cannot take RegionConsistency\(.*than pairs"):
        sw.solve_map(region, "odd_cycles")
