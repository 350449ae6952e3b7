"""The bound of tree-reweighted messages: true, what slow code gives, ended where its rise ends."""

import field_registry
import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise import fields
from setwise.inference._map._bound_extrapolation import AT_LIMIT, BoundExtrapolation
from setwise.inference._map._convex import certify
from setwise.inference._map._messages._factor_graph import factors_of
from setwise.inference._map._messages._tree_sweeps import TreeSweeps, has_pairs_only
from setwise.inference._map._moves._expansion import expansion
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress

OF_PAIRS = [
    name
    for name in field_registry.FIELDS
    if all(has_pairs_only(field_registry.of_seed(name, seed)) for seed in range(3))
]


def sweep_slowly(field: fields.Field, passes: int) -> tuple[list[float], np.ndarray]:
    """The bounds of passes, and the labels decoded after the last, pair by pair as it is written.

    theta_i = u_i + sum of all messages to i; its least value and that of every message are taken
    out and added up. A message is min_x (theta_i / max(ahead, behind) - reverse message + energy).
    """
    factors = factors_of(field)
    pairs, (n, n_labels) = factors.pairs, factors.unary.shape
    energy = pairs.energies()
    message = np.zeros((len(pairs.low), n_labels))
    ahead, behind = (np.bincount(ends, minlength=n) for ends in (pairs.low, pairs.high))
    share = 1.0 / np.maximum(np.maximum(ahead, behind), 1)
    bounds = []
    for k in range(2 * passes):
        forward, bound = k % 2 == 0, factors.constant
        here, there = (pairs.low, pairs.high) if forward else (pairs.high, pairs.low)
        for i in range(n) if forward else range(n - 1, -1, -1):
            own = (here == i) | (there == i)
            total = factors.unary[i] + message[own].sum(axis=0)
            bound += total.min()
            for e in np.flatnonzero(here == i):
                held = share[i] * (total - total.min()) - message[e]
                table = energy[e] if forward else energy[e].T
                message[e] = (held[:, None] + table).min(axis=0)
                bound += message[e].min()
                message[e] -= message[e].min()
        bounds.append(bound)
    labels = np.zeros(n, np.int64)
    for i in range(n):
        total = factors.unary[i] + message[pairs.low == i].sum(axis=0)
        for e in np.flatnonzero(pairs.high == i):
            total = total + energy[e, labels[pairs.low[e]]]
        labels[i] = total.argmin()
    return bounds[1::2], labels


def noise(side: int, n_labels: int, weight: float, seed: int = 0) -> fields.Field:
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(side**2, n_labels))
    return fields.Field(unary) + fields.Potts(fields.grid_edges((side, side)), weight)


def steps(side: int, n_labels: int, seed: int = 0) -> fields.Field:
    """Truncated linear tables, the same for all edges."""
    rng = np.random.default_rng(seed)
    apart = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels)))
    unary = rng.uniform(0.0, 4.0, (side**2, n_labels))
    edges = fields.grid_edges((side, side))
    return fields.Field(unary) + fields.Pairwise(edges, np.minimum(apart, 2.0))


@pytest.mark.parametrize("name", OF_PAIRS)
def test_every_pass_bounds_every_labeling_and_does_what_slow_code_does(name: str) -> None:
    for seed in range(6):
        field = field_registry.of_seed(name, seed)
        least, sweeps = reference.least_energy(field), TreeSweeps(field, np.inf)
        bounds = [sweeps.advance() for _ in range(6)]
        size = 1e-12 * (1.0 + sweeps.magnitude())
        assert max(bounds) <= least + size
        assert (np.diff(bounds) >= -size).all()
        slow, labels = sweep_slowly(field, 6)
        np.testing.assert_allclose(bounds, slow, rtol=0.0, atol=10.0 * size)
        decoded = sweeps.decode()
        assert np.isfinite(field.energy(decoded))
        assert field.energy(decoded) == pytest.approx(field.energy(labels), abs=1e-6)


def test_the_bound_of_a_chain_is_its_least_energy_after_one_pass() -> None:
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(7), np.arange(1, 8)], axis=1)
    field = fields.Field(rng.normal(size=(8, 3)))
    field += fields.Pairwise(edges, rng.normal(size=(7, 3, 3)))
    sweeps = TreeSweeps(field, np.inf)
    assert sweeps.advance() == pytest.approx(reference.least_energy(field), abs=1e-12)
    assert field.energy(sweeps.decode()) == pytest.approx(reference.least_energy(field))


@given(st.sampled_from(OF_PAIRS), st.integers(0, 10_000), st.integers(0, 9))
def test_a_search_that_ends_early_has_a_true_bound(name: str, seed: int, max_iter: int) -> None:
    field = field_registry.of_seed(name, seed)
    least = reference.least_energy(field)
    size = 1e-9 * (1.0 + abs(least))
    try:
        best = sw.solve_map(field, "expansion", max_iter=max_iter, n_jobs=1)
    except ValueError:  # tables that its moves do not take
        return
    assert best.bound <= least + size
    assert best.value >= least - size
    assert best.value == pytest.approx(field.energy(best.labels))
    assert not best.exact or best.value <= least + size


def test_labels_that_alone_cost_more_than_a_labeling_change_no_bound_for_the_worse() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        field = field_registry.of_seed("potts-on-three-labels", seed)
        seeded = field.unary.copy()
        seeded[rng.integers(0, len(seeded), 2), 0] += 1e3
        field = field.with_unary(seeded)
        best, least = sw.solve_map(field, "expansion"), reference.least_energy(field)
        assert best.bound <= least + 1e-9
        everything, within = TreeSweeps(field, np.inf), TreeSweeps(field, 500.0)
        for _ in range(5):
            assert within.advance() >= everything.advance() - 1e-9
        assert within.magnitude() < everything.magnitude()


def test_the_search_ends_where_the_rise_ends_and_says_so() -> None:
    field = noise(24, 5, 1.0, seed=2)
    best = sw.solve_map(field, "expansion", n_jobs=1)
    assert best.relative_gap > 1e-9
    assert best.reason.endswith(AT_LIMIT)
    assert best.converged
    assert not best.interrupted
    assert sw.solve_map(field, n_jobs=1).exact  # by windows
    patient = sw.solve_map(field, "expansion", n_jobs=1, max_iter=400)
    assert "limit" not in patient.reason
    assert patient.bound >= best.bound
    assert patient.relative_gap <= best.relative_gap
    # what was left to rise is a small part of the gap
    assert patient.bound - best.bound <= 0.2 * best.gap
    loose = sw.solve_map(field, tol=2.0 * best.relative_gap, n_jobs=1)
    assert loose.relative_gap <= 2.0 * best.relative_gap
    assert "limit" not in loose.reason


def test_max_iter_is_the_number_of_passes() -> None:
    field = noise(24, 5, 1.0, seed=2)
    first = sw.solve_map(field, "expansion", tol=np.inf, n_jobs=1)
    sweeps = TreeSweeps(field, np.inf)
    bounds = [sweeps.advance() for _ in range(30)]
    for passes in (5, 6, 30):
        best = sw.solve_map(field, "expansion", max_iter=passes, n_jobs=1)
        assert not best.exact
        assert best.bound == pytest.approx(bounds[passes - 1], abs=1e-9)
        assert best.value <= first.value


def test_the_relaxation_of_regions_says_so_too() -> None:
    field = noise(8, 4, 0.8)
    field += fields.RegionConsistency(np.arange(64) // 9, weight=2.0, alpha=0.6)
    best = sw.solve_map(field, "expansion", n_jobs=1)
    assert best.relative_gap > 1e-9
    assert best.reason.endswith(AT_LIMIT)
    patient = sw.solve_map(field, n_jobs=1, max_iter=300)
    assert patient.bound >= best.bound
    loose = sw.solve_map(field, n_jobs=1, tol=1.5 * best.relative_gap)
    assert loose.relative_gap <= 1.5 * best.relative_gap
    assert "limit" not in loose.reason


@pytest.mark.parametrize("weight", [0.2, 0.5, 1.0, 3.0])
def test_what_the_relaxation_proves_is_proved(weight: float) -> None:
    proved = 0
    for seed in range(12):
        field = noise(10, 3 + seed % 3, weight, seed)
        options = MapOptions.read(field, n_jobs=1)
        before = certify(field, expansion(field, options), options)
        after = sw.solve_map(field, "expansion", n_jobs=1)
        assert after.value <= before.value
        assert after.exact or not before.exact
        assert after.relative_gap <= 1.2 * before.relative_gap + 1e-9
        proved += after.exact
    assert proved > 0


def test_truncated_linear_tables_are_proved() -> None:
    for seed in range(3):
        best = sw.solve_map(steps(16, 6, seed), n_jobs=1)
        assert best.method == "expansion"
        assert best.exact


@pytest.mark.parametrize("field", [noise(14, 4, 1.0), steps(10, 5)], ids=["potts", "tables"])
def test_neither_a_constant_nor_a_unit_changes_the_search(field: fields.Field) -> None:
    best = sw.solve_map(field, n_jobs=1)
    (potential,) = field.potentials
    if isinstance(potential, fields.Potts):
        scaled: fields.Potential = fields.Potts(potential.edges, 1024.0 * potential.weights)
    else:
        scaled = fields.Pairwise(potential.edges, 1024.0 * potential.tables)
    larger = sw.solve_map(fields.Field(1024.0 * field.unary) + scaled, n_jobs=1)
    np.testing.assert_array_equal(larger.labels, best.labels)
    assert larger.reason == best.reason
    assert larger.relative_gap == pytest.approx(best.relative_gap, rel=1e-6, abs=1e-12)
    higher = sw.solve_map(field.with_unary(field.unary + 64.0), n_jobs=1)
    assert higher.reason == best.reason
    assert higher.relative_gap == pytest.approx(best.relative_gap, rel=1e-6, abs=1e-12)
    assert higher.exact == larger.exact == best.exact


@pytest.mark.parametrize("tol", [1e-9, 1e-2])
@pytest.mark.parametrize("method", ["expansion", "swap"])
def test_the_answer_is_a_local_optimum_of_the_moves(method: str, tol: float) -> None:
    for seed in range(4):
        field = noise(12, 5, 1.0, seed)
        best = sw.solve_map(field, method, tol=tol, n_jobs=1)
        assert best.converged
        again = sw.solve_map(field, method, tol=np.inf, init=best.labels, n_jobs=1)
        assert again.value == pytest.approx(best.value, rel=1e-12)


def test_one_table_for_all_edges_is_as_many_equal_ones() -> None:
    field = steps(9, 6)
    (potential,) = field.potentials
    tables = np.broadcast_to(potential.tables, (len(potential.edges), 6, 6)).copy()
    many = fields.Field(field.unary) + fields.Pairwise(potential.edges, tables)
    one, all_ = sw.solve_map(field, n_jobs=1), sw.solve_map(many, n_jobs=1)
    np.testing.assert_array_equal(one.labels, all_.labels)
    assert one.bound == all_.bound
    tables[-1, 0, 1] += 1e-9  # no longer one table
    other = fields.Field(field.unary) + fields.Pairwise(potential.edges, tables)
    assert sw.solve_map(other, n_jobs=1).bound == pytest.approx(one.bound, abs=1e-6)


def test_a_callback_ends_the_passes() -> None:
    field = noise(16, 5, 1.0)
    heard: list[float] = []

    def stop(progress: MapProgress) -> bool:
        heard.append(progress.bound)
        return len(heard) == 8

    best = sw.solve_map(field, "expansion", callback=stop, n_jobs=1)
    assert best.interrupted
    assert len(heard) == 8
    assert heard == sorted(heard)
    assert best.bound == pytest.approx(heard[-1])


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_a_rise_by_a_factor_a_pass_is_foreseen(rate: float) -> None:
    rise = BoundExtrapolation()
    assert rise.rest == np.inf
    for n in range(4, 1600, 4):
        rise.note(n, -(rate**n))
        if n % 16 == 0 and n >= 6.0 / -np.log(rate):
            assert rate**n <= rise.rest + 1e-15
            assert rise.rest <= 2.0 * rate ** (0.7 * n) + 1e-15
    assert rise.is_over(10.0, 1e-3)
    assert not rise.is_over(0.5 * rise.rest, 0.0)


def test_a_rise_like_one_over_n_is_foreseen() -> None:
    rise = BoundExtrapolation()
    for n in range(1, 1000):
        rise.note(n, -1.0 / n)
    assert rise.rest == pytest.approx(1.0 / 999, rel=0.02)
    endless = BoundExtrapolation()
    for n in range(1, 101):
        endless.note(n, np.sqrt(n))
    assert endless.rest == np.inf
