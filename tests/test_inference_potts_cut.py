"""Two labels and Potts edges: a cut straight from the arrays, against brute force and moves."""

from functools import partial

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from searches import cut

import setwise as sw
from setwise import _core, fields
from setwise.fields._edges import grid_of
from setwise.inference._flows import _potts_cut
from setwise.inference._map._moves import _cut

NEIGHBORHOODS = {1: [2, [[2]], [[-1], [3]]], 2: [4, 8, [[0, -1], [2, 1]]], 3: [6, 18, 26]}


def random_parts(rng, shape, neighbors, *, whole=False):
    """Unaries, some forbidden, edges of a grid, and weights, some zero; whole ones have ties."""
    edges = fields.grid_edges(shape, neighbors)
    n = int(np.prod(shape))
    unary = rng.normal(size=(n, 2))
    weights = rng.exponential(size=len(edges)) * (rng.random(len(edges)) < 0.8)
    if whole:
        unary, weights = np.rint(2 * unary), np.rint(weights)
    forbidden = rng.random(n) < rng.choice([0.0, 0.2])
    unary[forbidden, rng.integers(2, size=n)[forbidden]] = np.inf
    return unary + rng.choice([0.0, 1e6]), edges, weights


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 2))
def test_the_best_labelling_with_the_fewest_ones(seed, dimensions, kind):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, {1: 12, 2: 4, 3: 3}[dimensions], dimensions).tolist())
    unary, edges, weights = random_parts(rng, shape, NEIGHBORHOODS[dimensions][kind], whole=True)
    field = fields.Field(unary) + fields.Potts(edges, weights)
    labelings = reference.all_labelings(len(unary), 2)
    energies = field.energy(labelings)
    best = sw.solve_map(field)
    assert best.value == best.bound == energies.min()
    assert best.exact
    assert (best.method, best.n_iter, best.relative_gap) == ("cut", 1, 0.0)
    fewest = labelings[energies == energies.min()].min(axis=0)
    assert best.labels.tolist() == fewest.tolist()


@pytest.mark.parametrize(
    ("shape", "neighbors"),
    [
        ((60,), 2),
        ((60, 1), 4),
        ((9, 11), 4),
        ((9, 11), 8),
        ((2, 40), 8),
        ((40, 2), 8),
        ((12, 9), [[0, -1], [2, 1], [1, -3]]),
        ((7, 5, 6), 6),
        ((1, 9, 8), 6),
        ((7, 5, 6), 26),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_grid_is_cut_as_its_edges_are_and_as_by_moves(shape, neighbors, seed):
    rng = np.random.default_rng(seed)
    unary, edges, weights = random_parts(rng, shape, neighbors)
    order = rng.permutation(len(edges))
    field = fields.Field(unary)
    grid = sw.solve_map(field + fields.Potts(edges, weights))
    assert grid.exact
    assert grid.value == field.energy(grid.labels) + fields.Potts(edges, weights).energies(
        grid.labels[None], 2
    )
    start = np.argmin(unary, axis=1)
    again = [*order, order[0]]  # an edge twice fits no compact graph
    others = [
        sw.solve_map(field + fields.Potts(edges.copy(), weights)),
        sw.solve_map(field + fields.Potts(edges[order][:, ::-1], weights[order])),
        sw.solve_map(field + fields.Potts(edges[again], np.append(weights[order], 0.0))),
        sw.solve_map(field + fields.Potts(edges, weights), init=start),
        cut(field + fields.Potts(edges, weights), init=start),
        sw.solve_map(field + fields.Potts(edges, weights), "cut", n_jobs=2, tol=np.inf),
        sw.solve_map(field + fields.Potts(edges, weights / 2) + fields.Potts(edges, weights / 2)),
        sw.solve_map(field + fields.Potts(edges, weights) + fields.Potts([[0, 1]], 0.0)),
    ]
    for other in others:
        assert other.labels.tolist() == grid.labels.tolist()
        assert other.value == pytest.approx(grid.value, rel=1e-13)
        assert other.bound == pytest.approx(grid.bound, rel=1e-13)
        assert other.exact


@pytest.mark.parametrize(
    ("shape", "neighbors"),
    [
        ((80,), 2),
        ((9, 11), 4),
        ((40, 3), 4),
        ((33, 4), 8),
        ((40, 2), 8),
        ((33, 9), [[0, -1], [2, 1], [1, -3]]),
        ((33, 9), [[-1, 0], [0, 1], [-1, 2]]),
        ((17, 3, 4), 6),
        ((16, 1, 5), 6),
        ((2, 9, 4), 6),
        ((16, 2, 2, 2), [[0, 0, 0, 1], [0, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]]),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_blocks_are_cut_as_the_whole_on_any_number_of_threads(shape, neighbors, whole, monkeypatch):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        unary, edges, weights = random_parts(rng, shape, neighbors, whole=whole)
        field = fields.Field(unary) + fields.Potts(edges, weights)
        whole_cut = sw.solve_map(field, n_jobs=1)
        with monkeypatch.context() as patched:
            patched.setattr(_core, "cut_grid", partial(_core.cut_grid, block=30, halo=2))
            found = [_potts_cut.cut_potts(unary, [(edges, weights)], jobs) for jobs in (1, 2, 5)]
        for blocks in found:
            assert blocks.labels.tolist() == whole_cut.labels.tolist()
            assert blocks[1:] == found[0][1:]
            assert blocks.value == whole_cut.value


@given(st.integers(0, 2**32 - 1))
def test_asymmetric_tables_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    unary, edges, weights = random_parts(rng, (3, 4), rng.choice([4, 8]))
    tables = rng.normal(size=(len(edges), 2, 1)) + rng.normal(size=(len(edges), 1, 2))
    tables += weights[:, None, None] * (1.0 - np.eye(2))
    field = fields.Field(unary) + fields.Pairwise(edges, tables)
    best = sw.solve_map(field)
    energies = field.energy(reference.all_labelings(12, 2))
    assert best.value == pytest.approx(energies.min(), rel=1e-12)
    assert best.exact
    assert best.bound <= best.value


def test_a_grid_of_some_of_the_variables():
    rng = np.random.default_rng(0)
    edges = fields.grid_edges((3, 3))
    field = fields.Field(rng.normal(size=(11, 2))) + fields.Potts(edges, 0.5)
    best = sw.solve_map(field)
    assert best.value == field.energy(reference.all_labelings(11, 2)).min()
    with pytest.raises(ValueError, match=r"edges must join the field's 8 variables.*got 8"):
        fields.Field(rng.normal(size=(8, 2))) + fields.Potts(edges, 0.5)


def test_edges_that_were_changed_after_grid_edges_are_the_changed_ones():
    rng = np.random.default_rng(1)
    n = 12
    edges = fields.grid_edges((3, 4))
    edited = edges.copy()
    edited[0] = [0, n - 1]
    for changed in (
        edited,
        edges[rng.permutation(len(edges))],
        edges[3:],
        edges[::2],
        edges[:, ::-1],
    ):
        weights = rng.exponential(size=len(changed))
        field = fields.Field(rng.normal(size=(n, 2))) + fields.Potts(changed, weights)
        best = sw.solve_map(field)
        assert best.value == pytest.approx(
            field.energy(reference.all_labelings(n, 2)).min(), rel=1e-12
        )


@pytest.mark.parametrize("weight", [1e17, 1e25, 1e150])
def test_weights_that_take_the_digits_of_unaries(weight):
    rng = np.random.default_rng(2)
    edges = fields.grid_edges((3, 4))
    weights = np.where(rng.random(len(edges)) < 0.4, weight, 0.3)
    field = fields.Field(rng.normal(size=(12, 2))) + fields.Potts(edges, weights)
    best = sw.solve_map(field)
    assert best.value == pytest.approx(field.energy(reference.all_labelings(12, 2)).min(), rel=1e-9)
    assert best.bound <= best.value


def test_a_cut_that_lost_digits_is_not_believed(monkeypatch):
    """What the kernel says to have lost in whole units opens a gap, and another cut is made."""
    field = fields.Field([[0.0, 1.0], [1.0, 0.0]]) + fields.Potts(fields.grid_edges(2), 0.25)

    def wrong(unary, edges, weights, labels, answer, threads):
        labels[:] = 0
        answer[:] = [1.0, 0.0, 1.0, 0.75, 0.75]

    monkeypatch.setattr(_core, "cut_grid", lambda *_: False)
    monkeypatch.setattr(_core, "cut_edges", wrong)
    best = sw.solve_map(field)
    assert (best.value, best.exact, best.labels.tolist()) == (0.25, True, [0, 1])


def test_the_callback_hears_of_the_cut():
    field = fields.Field([[5.0, 6.0], [8.0, 7.0]]) + fields.Potts([[0, 1]], 0.25)
    seen = []
    best = sw.solve_map(field, callback=lambda progress: seen.append(progress) or True)
    assert [(step.n_iter, step.value, step.bound) for step in seen] == [(1, 12.25, 12.25)]
    assert (best.value, best.converged, best.interrupted) == (12.25, True, False)

    def interrupt(progress):
        raise KeyboardInterrupt

    best = sw.solve_map(field, callback=interrupt)
    assert (best.value, best.interrupted) == (12.25, True)


@pytest.mark.parametrize("potential", [fields.Potts, fields.Pairwise])
def test_ctrl_c_in_the_cut_leaves_the_labels_of_least_unary(monkeypatch, potential):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_cut, "cut_potts", interrupted)
    weights = [[0.0, 2.0], [2.0, 0.0]] if potential is fields.Pairwise else 2.0
    field = fields.Field([[5.0, 6.0], [8.0, 7.0]]) + potential([[0, 1]], weights)
    best = sw.solve_map(field)
    assert best.labels.tolist() == [0, 1]
    assert (best.value, best.bound, best.interrupted, best.exact) == (14.0, 12.0, True, False)
    assert not best.converged


def test_no_round_is_no_cut():
    field = fields.Field([[5.0, 6.0], [8.0, 7.0]]) + fields.Potts([[0, 1]], 2.0)
    best = sw.solve_map(field, max_iter=0)
    assert (best.labels.tolist(), best.value, best.bound) == ([0, 1], 14.0, 12.0)


def test_the_kernel_refuses_arrays_that_do_not_fit():
    unary, labels, answer = np.zeros((4, 2)), np.zeros(4, np.int64), np.zeros(5)
    sides, steps = np.array([2, 2]), np.array([[0, 1], [1, 0]])
    weights = np.ones(4)
    assert _core.cut_grid(unary, sides, steps, weights, labels, answer, 1)
    for wrong in (
        (unary[:3].copy(), sides, steps, weights, labels, answer),
        (unary, sides[:1], steps, weights, labels, answer),
        (unary, np.array([4, 0]), steps, weights, labels, answer),
        (unary, sides, steps, weights[:3].copy(), labels, answer),
        (unary, sides, steps, weights, labels[:3].copy(), answer),
    ):
        with pytest.raises(ValueError, match="must"):
            _core.cut_grid(*wrong, 1)
    edges = np.array([[0, 1], [2, 4]])
    with pytest.raises(ValueError, match="edges must join different nodes"):
        _core.cut_edges(unary, edges, weights[:2].copy(), labels, answer, 1)


def test_a_known_grid_is_not_read(monkeypatch):
    edges = fields.grid_edges((8, 8))
    assert grid_of(fields.Potts(edges, 1.0).edges) is not None

    def read(*_):
        raise AssertionError

    monkeypatch.setattr(_potts_cut._core, "cut_edges", read)
    field = fields.Field(np.zeros((64, 2))) + fields.Potts(edges, 1.0)
    assert sw.solve_map(field).value == 0.0
