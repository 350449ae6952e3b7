"""Messages: min-marginals, bounds and labellings against brute force."""

from _thread import interrupt_main
from itertools import combinations, pairwise
from threading import Timer

import field_registry
import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from searches import messages

from setwise import _core, fields
from setwise.inference._map._messages._bound_ascent import tighten
from setwise.inference._map._messages._cycles import short_cycles
from setwise.inference._map._messages._factor_graph import factors_of
from setwise.inference._map._messages._search import message_search
from setwise.inference._map._result import MapProgress, MapResult

Rng = np.random.Generator

WITHOUT_MESSAGES = {
    "label-transitions",
    "concave-label-transitions",
    "everything",
    "hard-cliques",
}
TAKEN = [name for name in field_registry.FIELDS if name not in WITHOUT_MESSAGES]
# One sweep to the roots is dynamic programming, one factor's minimum is the field's.
EXACT = [
    "unaries-alone",
    "potts-on-a-tree",
    "tables-on-a-tree",
    "robust-pn-beyond-half",
    "any-cardinality",
    "concave-cardinality",
    "no-edges-no-regions",
    "one-label",
    "one-variable",
    "no-variables",
]


def check(field: fields.Field, result: MapResult, least: float) -> None:
    """bound <= minimum <= value, and the value is that of the labels."""
    slack = 1e-9 * max(1.0, abs(least))
    assert result.bound <= least + slack
    assert result.value >= least - slack
    assert result.bound <= result.value
    assert result.value == field.energy(result.labels)
    assert result.labels.dtype == np.int64
    assert result.method == "messages"


# ------------------------------------------------------------------------ functions of a count


def tables(rng: Rng, n: int) -> dict[str, np.ndarray]:
    steps = np.sort(rng.normal(size=n))
    spike = np.zeros(n + 1)
    spike[rng.integers(0, n + 1)] = -3.0
    return {
        "convex": np.append(0.0, np.cumsum(steps)),
        "concave": np.append(0.0, np.cumsum(steps[::-1])),
        "any": rng.normal(0.0, 2.0, n + 1),
        "spike": spike,
        "flat": np.zeros(n + 1),
    }


def min_marginals(table: np.ndarray, costs: np.ndarray) -> tuple[float, np.ndarray]:
    differences = np.empty(len(costs))
    return _core.count_min_marginals(table, costs, differences), differences


@pytest.mark.parametrize("kind", ["convex", "concave", "any", "spike", "flat"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_min_marginals_of_a_count_are_those_of_enumeration(kind: str, n: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        table = tables(rng, n)[kind]
        for costs in (rng.normal(size=n), rng.integers(-1, 2, n).astype(float)):
            best, differences = min_marginals(table, costs)
            expected, all_differences = reference.enumerated_min_marginals(table, costs)
            assert best == pytest.approx(expected, abs=1e-12)
            assert differences == pytest.approx(all_differences, abs=1e-12)


@pytest.mark.parametrize("kind", ["convex", "concave", "any", "spike", "flat"])
def test_min_marginals_of_many_are_the_plain_ones(kind: str) -> None:
    rng = np.random.default_rng(1)
    for n in (100, 301):
        table = tables(rng, n)[kind]
        for costs in (rng.normal(size=n), rng.integers(-2, 3, n).astype(float)):
            best, differences = min_marginals(table, costs)
            expected, plain = reference.count_min_marginals(table, costs)
            assert best == pytest.approx(expected, abs=1e-9)
            assert differences == pytest.approx(plain, abs=1e-9)


@given(st.data())
def test_min_marginals_of_drawn_counts(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    table, costs = data.draw(strategies.arrays(n + 1)), data.draw(strategies.arrays(n))
    best, differences = min_marginals(table, costs)
    expected, all_differences = reference.enumerated_min_marginals(table, costs)
    assert best == pytest.approx(expected, abs=1e-12)
    assert differences == pytest.approx(all_differences, abs=1e-12)


def test_min_marginals_of_nothing() -> None:
    best, differences = min_marginals(np.array([2.5]), np.zeros(0))
    assert best == 2.5
    assert differences.shape == (0,)


@pytest.mark.parametrize("kind", ["convex", "concave", "any", "spike"])
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("forbidden", [False, True])
def test_unaries_and_one_cardinality_are_exact(kind: str, n_labels: int, forbidden: bool) -> None:
    for n in (1, 4, 6):
        rng = np.random.default_rng(n)
        unary = rng.normal(size=(n, n_labels))
        if forbidden:
            unary[rng.uniform(size=unary.shape) < 0.4] = np.inf
            unary[np.arange(n), rng.integers(0, n_labels, n)] = 0.25
        center = rng.integers(0, n_labels, n)
        field = fields.Field(unary) + fields.CardinalityPotential(center, tables(rng, n)[kind])
        result = messages(field)
        check(field, result, reference.least_energy(field))
        assert result.exact


def test_a_large_cardinality_is_exact_in_one_pass() -> None:
    rng = np.random.default_rng(0)
    n = 3000
    table, unary = tables(rng, n)["any"], rng.normal(size=(n, 2))
    field = fields.Field(unary) + fields.CardinalityPotential(np.zeros(n, int), table)
    gaps = np.append(0.0, np.cumsum(np.sort(unary[:, 1] - unary[:, 0])))
    result = messages(field)
    assert result.n_iter == 1
    assert result.exact
    assert result.value == pytest.approx(unary[:, 0].sum() + (table + gaps).min(), rel=1e-12)


# ------------------------------------------------------------------------------ whole fields


@pytest.mark.parametrize("name", TAKEN)
def test_the_minimum_lies_between_bound_and_value(name: str) -> None:
    for seed in range(3):
        field = field_registry.of_seed(name, seed)
        check(field, messages(field, rng=0), reference.least_energy(field))


@pytest.mark.parametrize("name", EXACT)
def test_trees_and_single_factors_are_exact(name: str) -> None:
    for seed in range(5):
        field = field_registry.of_seed(name, seed)
        result = messages(field)
        assert result.exact
        assert result.converged
        assert result.n_iter == 1


@given(st.data())
def test_drawn_fields(data: st.DataObject) -> None:
    n, n_labels = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    unary = data.draw(strategies.arrays(n * n_labels)).reshape(n, n_labels)
    field = fields.Field(unary)
    for _ in range(data.draw(st.integers(0, 2))):
        edges = data.draw(strategies.edges(n))
        field += fields.Potts(edges, data.draw(strategies.numbers(0.0, 3.0)))
    if data.draw(st.booleans()):
        edges = data.draw(strategies.edges(n))
        table = data.draw(strategies.arrays(n_labels**2)).reshape(n_labels, n_labels)
        field += fields.Pairwise(edges, table)
    if data.draw(st.booleans()):
        center = data.draw(st.lists(st.integers(0, n_labels - 1), min_size=n, max_size=n))
        field += fields.CardinalityPotential(center, data.draw(strategies.arrays(n + 1)))
    if data.draw(st.booleans()):
        field += fields.LabelCost(data.draw(strategies.arrays(n_labels, 0.0, 3.0)))
    if data.draw(st.booleans()):
        regions = data.draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n))
        field += fields.RobustPn(
            regions, data.draw(strategies.numbers(0.0, 3.0)), data.draw(strategies.numbers(0.5, 6))
        )
    check(field, messages(field, rng=0), reference.least_energy(field))


@pytest.mark.parametrize("seed", range(5))
def test_potts_messages_are_those_of_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = fields.grid_edges((4, 5))
    weights = rng.uniform(0.0, 2.0, len(edges))
    field = fields.Field(rng.normal(size=(20, 4)))
    # A table that is Potts but for one entry, which no labelling has use for.
    tables_ = weights[:, None, None] * (1.0 - np.eye(4))
    tables_[:, 0, 1] += 1e-7
    short = messages(field + fields.Potts(edges, weights), max_iter=5, rng=0)
    plain = messages(field + fields.Pairwise(edges, tables_), max_iter=5, rng=0)
    assert short.bound == pytest.approx(plain.bound, abs=1e-5)
    assert short.value == pytest.approx(plain.value, abs=1e-5)


def plain_bound(field: fields.Field, passes: int = 200) -> float:
    """The bound without cycles."""
    search, _ = message_search(factors_of(field), 0.5)
    for _ in range(passes):
        search.dual_pass()
    return search.bound()


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_without_cycles_is_at_most_that_of_the_relaxation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = fields.grid_edges((4, 4))
    unary = fields.Field(rng.normal(size=(16, 3)))
    potts = unary + fields.Potts(edges, rng.uniform(0.0, 1.5, len(edges)))
    any_tables = unary + fields.Pairwise(edges, rng.normal(0.0, 1.5, (len(edges), 3, 3)))
    for field, short_by in ((potts, 1e-4), (any_tables, 0.5)):
        bound, relaxed = plain_bound(field), reference.pairwise_relaxation(field)
        assert bound <= relaxed + 1e-7
        assert bound >= relaxed - short_by


def test_two_labels_reach_the_relaxation() -> None:
    """Coordinate ascent has no false ends on two labels (Kolmogorov and Wainwright, 2005)."""
    rng = np.random.default_rng(0)
    edges = fields.grid_edges((5, 5))
    for _ in range(3):
        field = fields.Field(rng.normal(size=(25, 2)))
        field += fields.Pairwise(edges, rng.normal(0.0, 2.0, (len(edges), 2, 2)))
        assert plain_bound(field) == pytest.approx(reference.pairwise_relaxation(field), abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_labels", [2, 3])
def test_cycles_pass_the_relaxation(seed: int, n_labels: int) -> None:
    """Pairs of mixed signs on a grid: the bound meets the value, the relaxation does not."""
    rng = np.random.default_rng(seed)
    edges = fields.grid_edges((4, 4))
    field = fields.Field(rng.normal(0.0, 0.1, (16, n_labels)))
    signs = rng.choice([-1.0, 1.0], len(edges))
    field += fields.Pairwise(edges, signs[:, None, None] * np.eye(n_labels))
    result = messages(field, rng=0)
    if n_labels == 2:
        labelings = reference.all_masks(16).astype(int)
        assert result.value == pytest.approx(field.energy(labelings).min(), abs=1e-9)
        assert reference.pairwise_relaxation(field) < result.value - 0.1
    assert result.relative_gap < 1e-6


def test_cycles_with_forbidden_labels_and_counts() -> None:
    rng = np.random.default_rng(0)
    edges = np.array([[i, j] for i in range(5) for j in range(i)])
    for _ in range(10):
        unary = rng.normal(0.0, 0.3, (5, 3))
        unary[rng.uniform(size=unary.shape) < 0.3] = np.inf
        unary[np.arange(5), rng.integers(0, 3, 5)] = 0.1
        field = fields.Field(unary)
        field += fields.Pairwise(edges, rng.normal(size=(len(edges), 3, 3)))
        field += fields.CardinalityPotential(rng.integers(0, 3, 5), rng.normal(size=6))
        check(field, messages(field, rng=0), reference.least_energy(field))


@given(st.data())
def test_short_cycles_are_those_of_the_graph(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 7))
    edges = data.draw(strategies.edges(n))
    linked = {frozenset(edge) for edge in edges.tolist()}
    triangles, squares = short_cycles(edges, n)
    found = {frozenset(cycle) for cycle in triangles.tolist()}
    assert len(found) == len(triangles)
    assert found == {
        frozenset(nodes)
        for nodes in combinations(range(n), 3)
        if all(frozenset(pair) in linked for pair in combinations(nodes, 2))
    }
    for cycle in squares.tolist():
        assert len(set(cycle)) == 4
        assert all(frozenset(pair) in linked for pair in pairwise([*cycle, cycle[0]]))


def test_a_grid_has_its_squares() -> None:
    triangles, squares = short_cycles(fields.grid_edges((4, 6)), 24)
    assert triangles.shape == (0, 3)
    assert len(np.unique(np.sort(squares, axis=1), axis=0)) == len(squares) == 15


def test_a_steep_convex_count_among_pairs() -> None:
    """As many pieces as variables: the largest step is found all the same."""
    rng = np.random.default_rng(0)
    n, edges = 900, fields.grid_edges((30, 30))
    field = fields.Field(rng.normal(size=(n, 2))) + fields.Potts(edges, 0.5)
    field += fields.CardinalityPotential(np.zeros(n, int), 0.1 * (np.arange(n + 1) - 225.0) ** 2)
    assert messages(field, max_iter=100).relative_gap < 1e-3


@pytest.mark.parametrize("name", ["everything-submodular", "any-tables-on-three-labels", "ties"])
def test_the_bound_only_rises_and_the_value_only_falls(name: str) -> None:
    seen: list[MapProgress] = []
    result = messages(field_registry.of_seed(name, 1), tol=0.0, max_iter=30, callback=seen.append)
    assert [progress.n_iter for progress in seen] == list(range(1, result.n_iter + 1))
    assert all(np.diff([progress.bound for progress in seen]) >= 0.0)
    assert all(np.diff([progress.value for progress in seen]) <= 0.0)
    assert (seen[-1].value, seen[-1].bound) == (result.value, result.bound)


def test_every_dual_pass_raises_the_bound_by_itself() -> None:
    """Not only the best bound: each reparametrisation is better than the one before."""
    for name in TAKEN:
        factors = factors_of(field_registry.of_seed(name, 2))
        search, order = message_search(factors, 0.5)
        bounds = [search.bound()]
        for k in range(16):
            if k == 8:
                tighten(search, factors, order)
                bounds.append(search.bound())
            search.dual_pass()
            bounds.append(search.bound())
        scale = max(1.0, max(map(abs, bounds)))
        assert all(np.diff(bounds) >= -1e-11 * scale), name


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e9])
def test_rounding_does_not_lift_the_bound_above_the_minimum(scale: float) -> None:
    for name in ("ties", "everything-submodular", "any-tables-on-three-labels"):
        for seed in range(3):
            field = field_registry.of_seed(name, seed)
            field = field.with_unary(scale * field.unary)
            least = reference.least_energy(field)
            factors = factors_of(field)
            search, order = message_search(factors, 0.5)
            tighten(search, factors, order)
            for _ in range(30):
                search.step(0.1)
                search.dual_pass()
                assert search.bound() <= least + 1e-9 * max(1.0, abs(least))


def test_answers_repeat() -> None:
    rng = np.random.default_rng(0)
    edges = fields.grid_edges((8, 8))
    field = fields.Field(rng.normal(size=(64, 3)))
    field += fields.Pairwise(edges, rng.normal(0.0, 2.0, (len(edges), 3, 3)))
    first, second = (messages(field, rng=3, n_jobs=jobs) for jobs in (1, 2))
    assert first.n_iter > 10
    assert np.array_equal(first.labels, second.labels)
    assert (first.value, first.bound) == (second.value, second.bound)


# ------------------------------------------------------------------------------ how it ends


def frustrated() -> fields.Field:
    """All pairs of five variables want to differ: 4 cannot, and triangles prove 10 / 3.

    A price in the last place keeps the energies from being whole numbers, whose bound would be 4.
    """
    links = np.array([[i, j] for i in range(5) for j in range(i)])
    unary = np.zeros((5, 2))
    unary[0] = 1e-15 / 3
    return fields.Field(unary) + fields.Pairwise(links, np.eye(2))


def test_it_ends_when_nothing_moves() -> None:
    result = messages(frustrated())
    assert result.converged
    assert not result.exact
    assert (result.value, result.bound) == (4.0, pytest.approx(10 / 3, abs=1e-3))


def test_max_iter_is_not_convergence() -> None:
    result = messages(frustrated(), max_iter=3)
    assert result.n_iter == 3
    assert not result.converged
    assert not result.interrupted


def test_tol_is_relative() -> None:
    assert messages(frustrated(), tol=1.0).n_iter == 1


def test_a_callback_ends_it() -> None:
    result = messages(frustrated(), callback=lambda progress: progress.n_iter == 2)
    assert result.n_iter == 2
    assert result.interrupted
    assert not result.converged


def test_ctrl_c_keeps_what_was_found() -> None:
    def interrupt(progress: MapProgress) -> None:
        if progress.n_iter == 2:
            raise KeyboardInterrupt

    result = messages(frustrated(), callback=interrupt)
    assert result.interrupted
    assert (result.value, result.n_iter) == (4.0, 2)
    assert result.bound == pytest.approx(0.0, abs=1e-9)


def test_ctrl_c_reaches_the_kernel() -> None:
    """Within a pass that takes long: what was found before it is returned."""
    rng = np.random.default_rng(0)
    edges = fields.grid_edges((150, 150))
    field = fields.Field(rng.normal(size=(150**2, 4)))
    field += fields.Pairwise(edges, rng.normal(0.0, 2.0, (len(edges), 4, 4)))

    def soon(progress: MapProgress) -> None:
        if progress.n_iter == 1:
            Timer(0.05, interrupt_main).start()

    result = messages(field, callback=soon, rng=0)
    assert result.interrupted
    assert not result.converged
    assert result.n_iter >= 1
    assert result.bound <= result.value == field.energy(result.labels)


def test_init_is_no_worse_than_the_answer() -> None:
    field = field_registry.of_seed("any-tables-on-three-labels", 0)
    best = min(
        reference.all_labelings(6, 3), key=lambda labels: reference.field_energy(field, labels)
    )
    result = messages(field, init=best, max_iter=1)
    assert result.value == pytest.approx(reference.field_energy(field, best))


# ------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("name", sorted(WITHOUT_MESSAGES))
def test_a_potential_without_messages_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=r"messages cannot take (LabelTransition|CliquePot\w+)\("):
        messages(field_registry.of_seed(name, 0))


def test_the_kernel_checks_cycles() -> None:
    search, _ = message_search(factors_of(frustrated()), 0.5)
    for starts, variables, says in (
        ([0, 2], [0, 1], "three variables at least"),
        ([0, 3], [0, 1, 7], "variables must be those of the graph"),
        ([0, 4], [0, 1, 2], "starts must cover"),
        ([0, 3], [0, 1, 1], "must be pairs"),
    ):
        with pytest.raises(ValueError, match=says):
            search.add_cycles(np.array(starts), np.array(variables))
    search.add_cycles(np.array([0, 3]), np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="added once"):
        search.add_cycles(np.array([0, 3]), np.array([0, 1, 3]))
    search.dual_pass()
    assert search.bound() == pytest.approx(1.0)


def test_the_kernel_checks_sizes() -> None:
    with pytest.raises(ValueError, match="table must have an entry more than costs"):
        _core.count_min_marginals(np.zeros(3), np.zeros(3), np.zeros(3))
