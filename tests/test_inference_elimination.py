"""Elimination is enumeration, on every field that is narrow enough; others are refused."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from field_terms import random_field
from marginals_cases import log_partition, true_marginals

import setwise as sw
from setwise import _core
from setwise.inference._map._junction_tree import narrow, planned

LARGEST = "setwise.inference._map._junction_tree.largest_memory"


@pytest.mark.parametrize("name", FIELDS)
def test_it_is_enumeration(name):
    for seed in range(2):
        field = of_seed(name, seed)
        truth = reference.log_partition(field, 0.7)
        post = sw.marginals(field, "elimination", temperature=0.7)
        slack = 1e-13 * max(1.0, abs(truth))
        assert post.log_partition_lower - slack <= truth <= post.log_partition_upper + slack
        assert post.width <= 1e-8
        assert (post.gap, post.converged, post.interrupted) == (0.0, True, False)
        if field.n_variables:
            tempered = sw.marginals(field, "elimination")
            np.testing.assert_allclose(tempered.probabilities, true_marginals(field), atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_any_terms_and_forbidden_labels(seed):
    kinds = [
        "potts",
        "tables",
        "shared table",
        "count",
        "robust",
        "label",
        "transition",
        "concave cardinality",
    ]
    field = random_field(kinds, 5, 3, seed, forbidden=0.2)
    post = sw.marginals(field, "elimination")
    assert post.log_partition_upper == pytest.approx(log_partition(field), abs=1e-9)
    np.testing.assert_allclose(post.probabilities, true_marginals(field), atol=1e-9)
    np.testing.assert_allclose(post.lower_probabilities, post.probabilities)
    assert post.total_variation <= 1e-5


@pytest.mark.parametrize("size", [4, 8])
def test_regions_that_are_rounding_alone(size):
    """alpha = 1 is no energy; its table has bends of the last digits."""
    rng = np.random.default_rng(size)
    chain = sw.fields.Field(rng.normal(size=(size, 2)))
    chain = chain + sw.fields.Potts([[i, i + 1] for i in range(size - 1)], 0.5)
    field = chain + sw.fields.RegionConsistency(np.zeros(size, int), 5.0 / 3.0, alpha=1.0)
    post = sw.marginals(field, "elimination")
    assert post.log_partition_upper == pytest.approx(log_partition(chain), abs=1e-12)
    assert sw.solve_map(field, "elimination").value == pytest.approx(sw.solve_map(chain).value)


def test_a_grid_of_any_length_and_little_width():
    """Both ways of cutting a strip in two give the same sum."""
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(3, 200, 2))
    weights = rng.uniform(0, 1, len(sw.fields.grid_edges((3, 200))))
    field = sw.fields.Field(unary.reshape(-1, 2))
    field += sw.fields.Potts(sw.fields.grid_edges((3, 200)), weights)
    post = sw.marginals(field, "elimination")
    columns = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    rows, downs = weights[:597].reshape(3, 199), weights[597:].reshape(2, 200)
    logs = np.zeros(8)
    for k in range(200):
        if k:
            apart = columns[:, None, :] != columns[None, :, :]
            logs = np.logaddexp.reduce(logs[:, None] - apart @ rows[:, k - 1], axis=0)
        logs -= np.take_along_axis(unary[:, k], columns.T, axis=1).sum(axis=0)
        logs -= (columns[:, 1:] != columns[:, :-1]) @ downs[:, k]
    assert post.log_partition_upper == pytest.approx(float(np.logaddexp.reduce(logs)), abs=1e-9)
    bound = sw.marginals(field, "trees")
    assert bound.log_partition_lower <= post.log_partition_upper <= bound.log_partition_upper


def test_wide_fields_are_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr(LARGEST, lambda: float(1 << 30))
    field = sw.fields.Field(np.zeros((900, 2)))
    sentence = (
        r"elimination needs tables of at most 1.07e\+09 bytes \(width 26 or less with 2 labels\), "
        r"got width 3\d: .*e\+1[12] bytes; use a machine with more memory, of which elimination "
        "may take half, or let method='auto' choose another method"
    )
    with pytest.raises(ValueError, match=sentence):
        sw.marginals(field + sw.fields.Potts(sw.fields.grid_edges((30, 30)), 1.0), "elimination")
    with pytest.raises(ValueError, match=r"needs tables of at most 23 variables, got 900 in Lab"):
        sw.marginals(field + sw.fields.LabelCost([1.0, 2.0]), "elimination")


def test_a_callback_hears_once_and_an_interrupt_there_keeps_the_answer():
    field = of_seed("potts-on-three-labels", 0)
    seen = []
    sw.marginals(field, "elimination", callback=seen.append)
    assert [now.n_iter for now in seen] == [1]

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    post = sw.marginals(field, "elimination", callback=stop)
    assert (post.interrupted, post.converged, post.exact) == (True, True, True)


@pytest.mark.parametrize("method", ["elimination", "trees"])
@pytest.mark.parametrize(("n_labels", "weight"), [(2, "0.125"), (2, "0.75"), (5, "0.25")])
def test_the_interval_of_a_long_chain_holds_its_log_partition(method, n_labels, weight):
    """log Z = log L + (N - 1) log(1 + (L - 1) e^-w), to forty digits: sums of logs keep theirs."""
    n = 5000
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    field = sw.fields.Field(np.zeros((n, n_labels))) + sw.fields.Potts(edges, float(weight))
    post = sw.marginals(field, method, tol=1e-9)
    with localcontext(prec=40):
        link = (1 + (n_labels - 1) * (-Decimal(weight)).exp()).ln()
        truth = Decimal(n_labels).ln() + (n - 1) * link
        assert Decimal(post.log_partition_lower) <= truth <= Decimal(post.log_partition_upper)
    assert post.width <= 1e-10 * n


@pytest.mark.parametrize("method", ["trees", "projection", "elimination", "mean_field", "auto"])
@pytest.mark.parametrize(
    ("n", "n_labels", "cost", "constant", "t"),
    [
        (20_000, 2, 0.0, 0.0, 1.0),
        (20_000, 2, 0.125, 0.0, 1.0),
        (20_000, 3, 0.0, 0.0, 1.0),
        (400_000, 2, 0.125, 0.0, 1.0),
        (20_000, 3, 0.7e-3, 3.0, 1e-3),  # the quotient of a constant is rounded too
        (20_000, 3, 0.0, 1e9, 0.3),
        (20_000, 2, 1e5, 0.0, 7e4),
    ],
)
def test_the_interval_of_many_variables_alone_holds_their_log_partition(
    n, n_labels, cost, constant, t, method
):
    """log Z = N log(1 + (L - 1) e^(-c / t)) - N k / t: its ends are sums of as many logarithms."""
    unary = np.full((n, n_labels), cost + constant)
    unary[:, 0] = constant
    post = sw.marginals(sw.fields.Field(unary), method, temperature=t)
    with localcontext(prec=50):
        low, high = Decimal(float(unary[0, 0])), Decimal(float(unary[0, 1]))
        truth = n * (1 + (n_labels - 1) * ((low - high) / Decimal(t)).exp()).ln()
        truth -= n * low / Decimal(t)
        assert Decimal(post.log_partition_lower) <= truth <= Decimal(post.log_partition_upper)
    if method != "mean_field":
        assert post.width <= 1e-10 * n * (1.0 + 1e-4 * constant / t)


@pytest.mark.parametrize("method", ["trees", "projection", "exact_binary", "mean_field"])
def test_forbidden_labels_in_regions_leave_an_upper_bound_one(method):
    """Regions of two variables, one of them sure: two labels of the other, so log Z is known."""
    n, weight = 2000, 0.5
    unary = np.zeros((n, 2))
    unary[::2, 1] = np.inf
    field = sw.fields.Field(unary)
    field += sw.fields.RegionConsistency(np.repeat(np.arange(n // 2), 2), weight, 0.5)
    agree, differ = (float(e) for e in field._energies(np.array([[0] * n, [0, 1] * (n // 2)])))
    post = sw.marginals(field, method, tol=1e-12)
    with localcontext(prec=40):
        link = (1 + (-Decimal((differ - agree) / (n // 2))).exp()).ln()
        truth = n // 2 * link - Decimal(agree)
        assert Decimal(post.log_partition_lower) <= truth <= Decimal(post.log_partition_upper)


def test_a_hub_of_many_variables_costs_what_its_edges_do():
    # one variable near all others: an order that looked at every pair of them would take minutes
    n, random = 20_001, np.random.default_rng(0)
    unary = random.normal(size=(n, 2))
    spokes = np.stack([np.zeros(n - 1, np.int64), np.arange(1, n)], axis=1)
    rim = sw.fields.CliquePotential([[0, 1, 2]], np.zeros((2, 2, 2)))
    field = sw.fields.Field(unary) + sw.fields.Potts(spokes, 0.5) + rim
    pays = unary[1:, None, :] + 0.5 * (1.0 - np.eye(2))  # leaf, hub's label, leaf's label
    log_z = np.logaddexp.reduce(np.logaddexp.reduce(-pays, axis=2).sum(axis=0) - unary[0])
    assert sw.marginals(field, "elimination").log_partition_upper == pytest.approx(log_z, rel=1e-12)
    best = sw.solve_map(field, "elimination")
    assert best.value == pytest.approx((pays.min(axis=2).sum(axis=0) + unary[0]).min(), rel=1e-12)


def test_a_dense_graph_is_refused_without_an_order():
    n = 400
    edges = np.stack(np.triu_indices(n, 1), axis=1)
    field = sw.fields.Field(np.zeros((n, 2))) + sw.fields.Potts(edges, 1.0)
    with pytest.raises(ValueError, match=r"got width 399 or more: .* or more; use"):
        sw.marginals(field, "elimination")


def torus(side: int) -> np.ndarray:
    """The edges of a grid whose last row and column meet the first."""
    at = np.arange(side * side).reshape(side, side)
    ends = [np.stack([at, np.roll(at, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    return np.concatenate(ends)


def test_the_memory_that_is_needed_is_told(monkeypatch):
    """What the sentence says is needed is enough, and less is not; answers do not depend on it."""
    rng = np.random.default_rng(0)
    edges = torus(6)
    field = sw.fields.Field(rng.normal(size=(36, 2)))
    field += sw.fields.Pairwise(edges, rng.normal(size=(len(edges), 2, 2)))
    plain = sw.marginals(field, "elimination")
    monkeypatch.setattr(LARGEST, lambda: 8.0 * 2**13)
    with pytest.raises(ValueError, match="elimination needs tables of at most") as caught:
        sw.marginals(field, "elimination")
    told = re.search(r"got width (\d+): (\S+) bytes;", str(caught.value))
    assert int(told[1]) >= 10
    needed = 1.01 * float(told[2])
    monkeypatch.setattr(LARGEST, lambda: needed)
    within = sw.marginals(field, "elimination")
    np.testing.assert_array_equal(within.probabilities, plain.probabilities)
    assert sw.solve_map(field, "elimination").exact
    monkeypatch.setattr(LARGEST, lambda: 0.9 * needed)
    for call in (sw.marginals, sw.solve_map):
        with pytest.raises(ValueError, match="elimination needs tables of at most"):
            call(field, "elimination")


def test_a_torus_of_ten_by_ten_is_narrow_enough():
    """Those of the UAI competition of 2014; a sum over all its labellings would not fit."""
    edges = torus(10)
    field = sw.fields.Field(np.zeros((100, 2))) + sw.fields.Potts(edges, 0.5)
    assert narrow(field) is None
    wide = sw.fields.Field(np.zeros((144, 2))) + sw.fields.Potts(torus(12), 0.5)
    assert "got width" in str(narrow(wide))


def with_random_tables(edges: np.ndarray, n: int, n_labels: int, seed: int) -> sw.fields.Field:
    rng = np.random.default_rng(seed)
    field = sw.fields.Field(rng.normal(size=(n, n_labels)))
    return field + sw.fields.Pairwise(
        edges, 2.0 * rng.normal(size=(len(edges), n_labels, n_labels))
    )


@pytest.mark.parametrize(("edges", "n", "n_labels"), [(torus(6), 36, 2), (torus(5), 25, 3)])
def test_little_memory_and_many_threads_change_no_bit(edges, n, n_labels):
    """Kept messages and those computed twice are the same, whatever the number of segments."""
    field = with_random_tables(edges, n, n_labels, 1)
    answers, memories = [], []
    for share in (np.inf, 0.5, 0.1):
        for n_threads in (1, 3):
            tree, _, owners, _ = planned(field, 1.0)
            largest, *_, most = tree.plan(1e9, 1e9)
            *_, cells = tree.plan(max(largest, share * most), 1e9)
            p, expected, labels = np.empty((n, n_labels)), np.empty(len(owners)), np.empty(n, int)
            sums = tree.log_partition(n_threads)
            tree.marginals(p, expected, n_threads)
            best = tree.best(labels, n_threads)
            answers.append((sums, best, p.tobytes(), expected.tobytes(), labels.tobytes()))
            memories.append(cells)
    assert len(set(answers)) == 1
    assert memories[0] > memories[2] >= memories[4]


def test_tasks_of_several_threads_are_a_sum_over_all_labellings():
    """A table of 2^18 cells is divided into tasks, whose answers are those of enumeration."""
    n = 18
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    field = with_random_tables(pairs, n, 2, 2)
    energies = field._energies(np.ascontiguousarray(np.indices((2,) * n).reshape(n, -1).T))
    post = sw.marginals(field, "elimination", n_jobs=3)
    log_z = np.logaddexp.reduce(-energies)
    assert post.log_partition_lower - 1e-9 <= log_z <= post.log_partition_upper + 1e-9
    weights = np.exp(-energies - log_z).reshape((2,) * n)
    for i in (0, 7, 17):
        axes = tuple(k for k in range(n) if k != i)
        np.testing.assert_allclose(post.probabilities[i], weights.sum(axis=axes), atol=1e-9)
    best = sw.solve_map(field, "elimination", n_jobs=3)
    assert best.exact
    assert best.value == pytest.approx(energies.min(), abs=1e-9)


@pytest.mark.parametrize(
    ("edges", "n", "most"),
    [
        (torus(10), 100, 2.0**25),
        (sw.fields.grid_edges((20, 20)), 400, 2.0**27.3),
        (sw.fields.grid_edges((12, 60)), 720, 720 * 2.0**14),
    ],
)
def test_sweeps_make_grids_and_tori_narrow(edges, n, most):
    """Orders by fill alone have tables of 2^27 to 2^32 cells on the first two."""
    tree = _core.JunctionTree(np.zeros((n, 2)))
    tree.add_scopes(edges)
    _, total, _, memory = tree.plan(2.0**27, np.inf)
    assert total <= most
    assert memory <= 2.0**27


@pytest.mark.parametrize("seed", range(6))
def test_orders_of_random_graphs_are_sums_over_all_labellings(seed):
    """Sparse, dense and divided graphs, some labels forbidden, with tables of up to 2^13 cells."""
    rng = np.random.default_rng(seed)
    n = 13
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    edges = pairs[rng.random(len(pairs)) < (0.1, 0.3, 0.9)[seed % 3]]
    field = with_random_tables(edges, n, 2, seed)
    unary = field.unary.copy()
    unary[rng.random(n) < 0.2, 1] = np.inf
    field = field.with_unary(unary)
    energies = field._energies(np.ascontiguousarray(np.indices((2,) * n).reshape(n, -1).T))
    post = sw.marginals(field, "elimination")
    assert post.log_partition_upper == pytest.approx(np.logaddexp.reduce(-energies), abs=1e-9)
    assert sw.solve_map(field, "elimination").value == pytest.approx(energies.min(), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_whole_numbers_are_exact_to_the_last_digit(seed):
    """The value of a field of whole numbers is that of integers, on a torus beyond enumeration."""
    rng = np.random.default_rng(seed)
    edges = torus(7)
    unary = rng.integers(-(2**20), 2**20, (49, 2))
    tables = rng.integers(-(2**20), 2**20, (len(edges), 2, 2))
    field = sw.fields.Field(unary.astype(float)) + sw.fields.Pairwise(edges, tables.astype(float))
    best = sw.solve_map(field)
    assert best.exact
    value = sum(int(unary[i, a]) for i, a in enumerate(best.labels))
    for (i, j), table in zip(edges, tables, strict=True):
        value += int(table[best.labels[i], best.labels[j]])
    assert int(best.value) == value == int(best.bound)
    assert best.value == sw.solve_map(field, "elimination").value


def test_auto_eliminates_what_messages_leave_open():
    """On spin glasses messages leave a gap; elimination closes it where it is affordable."""
    rng = np.random.default_rng(3)
    edges = torus(8)
    tables = rng.choice([-1.0, 1.0], (len(edges), 1, 1)) * (1.0 - np.eye(2))
    field = sw.fields.Field(0.1 * rng.normal(size=(64, 2))) + sw.fields.Pairwise(edges, tables)
    best = sw.solve_map(field)
    assert (best.exact, best.method) == (True, "elimination")
    assert "it left a gap, and elimination is cheap here" in best.reason
    assert sw.solve_map(field, "messages").value >= best.value
