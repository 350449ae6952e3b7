"""Cuts of grids in blocks: the labels of brute force and of the whole, whatever the blocks are."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import reference
from counted_clock import LIMIT, counted, moments
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise import _core, fields

seeds = st.integers(0, 2**32 - 1)

EIGHT = [[0, 1], [1, 0], [1, 1], [1, -1]]
SPACE = [step for step in np.ndindex(3, 3, 3) if step > (1, 1, 1)]
STEPS = {
    1: [[[1]], [[2]]],
    2: [EIGHT[:2], EIGHT, [[0, -1], [2, 1], [1, -3]]],
    3: [np.eye(3, dtype=int), np.array(SPACE) - 1],
}


class Grid:
    """A random energy of a grid: multiples of 1/8, so that sums are exact and ties occur."""

    def __init__(self, rng, shape, steps):
        steps = np.array(steps, np.int64).reshape(-1, len(shape))
        self.steps = steps[(np.abs(steps) < shape).all(axis=1)]
        self.sides, n = np.array(shape, np.int64), int(np.prod(shape))
        pixels = np.arange(n).reshape(shape)
        edges = []
        for step in self.steps:
            tail = [
                slice(max(-s, 0), side - max(s, 0)) for s, side in zip(step, shape, strict=True)
            ]
            head = [
                slice(max(s, 0), side - max(-s, 0)) for s, side in zip(step, shape, strict=True)
            ]
            edges.append(np.stack([pixels[*tail].ravel(), pixels[*head].ravel()], axis=1))
        self.edges = np.concatenate([np.empty((0, 2), np.int64), *edges])
        unit = rng.choice([1 / 8, 1 / 2, 1.0])
        self.unary = (
            unit * rng.integers(-8, 9, (n, 2)) * (rng.random((n, 1)) < rng.choice([0.5, 1]))
        )
        self.weights = unit * rng.integers(0, rng.choice([2, 4, 9]), len(self.edges))
        forced = rng.random(n) < rng.choice([0.0, 0.2])
        self.unary[forced, rng.integers(2, size=n)[forced]] = np.inf

    def labels(self, threads=1, **blocks):
        labels, answer = np.empty(len(self.unary), np.int64), np.empty(5)
        assert _core.cut_grid(
            self.unary, self.sides, self.steps, self.weights, labels, answer, threads, **blocks
        )
        return labels, answer

    def of_edges(self):
        labels, answer = np.empty(len(self.unary), np.int64), np.empty(5)
        _core.cut_edges(self.unary, self.edges, self.weights, labels, answer, 1)
        return labels, answer

    def best(self):
        """Return the least energy and the best labelling with the fewest ones, by brute force."""
        every = reference.all_labelings(len(self.unary), 2)
        energies = self.energy(every)
        return energies.min(), every[energies == energies.min()].min(axis=0)

    def energy(self, labels):
        unary = np.take_along_axis(self.unary[None], np.atleast_2d(labels)[..., None], 2)[..., 0]
        ends = np.atleast_2d(labels)[:, self.edges]
        return unary.sum(axis=1) + (ends[..., 0] != ends[..., 1]) @ self.weights


def drawn_blocks(rng):
    return {
        "threads": int(rng.integers(1, 4)),
        "block": int(rng.choice([1, 2, 3, 8, 20])),
        "halo": int(rng.choice([0, 1, 2, 100])),
        "backwards": bool(rng.integers(2)),
    }


def drawn_grid(rng, sizes):
    while True:
        dimensions = int(rng.integers(1, 4))
        shape = tuple(rng.integers(2, sizes[dimensions] + 1, dimensions).tolist())
        kinds = STEPS[dimensions]
        grid = Grid(rng, shape, kinds[rng.integers(len(kinds))])
        if len(grid.steps) in (1, 2, 3, 4, 13):
            return grid


@given(seeds)
def test_blocks_find_the_best_labels_with_the_fewest_ones(seed):
    rng = np.random.default_rng(seed)
    grid = drawn_grid(rng, {1: 12, 2: 3, 3: 2})
    least, fewest = grid.best()
    labels, answer = grid.labels(**drawn_blocks(rng))
    np.testing.assert_array_equal(labels, fewest)
    assert answer[0] + answer[1] == least
    assert answer[3:].tolist() == [0.0, 0.0]


@given(seeds)
def test_no_block_halo_order_or_thread_changes_a_bit(seed):
    rng = np.random.default_rng(seed)
    grid = drawn_grid(rng, {1: 60, 2: 14, 3: 7})
    # Numbers with any digits are sums of whole units too.
    if rng.random() < 0.5:
        grid.unary *= rng.random(grid.unary.shape)
        grid.weights *= rng.random(grid.weights.shape)
    labels, answer = grid.labels(block=10**6)
    np.testing.assert_array_equal(labels, grid.of_edges()[0])
    for _ in range(3):
        again, same = grid.labels(**drawn_blocks(rng))
        np.testing.assert_array_equal(again, labels)
        assert same.tobytes() == answer.tobytes()


@pytest.mark.parametrize(("shape", "kind"), [((150, 140), 0), ((90, 80), 1), ((28, 27, 26), 0)])
@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0, 8.0])
def test_large_grids_in_blocks(shape, kind, weight):
    """Weights from none to so large that windows prove nothing, and the whole is cut."""
    rng = np.random.default_rng(0)
    grid = Grid(rng, shape, STEPS[len(shape)][kind])
    grid.unary = np.round(8 * rng.normal(size=grid.unary.shape)) / 8
    grid.weights = np.full(len(grid.edges), weight)
    labels, answer = grid.of_edges()
    assert answer[0] + answer[1] == grid.energy(labels)[0]
    for threads, block, halo in [(1, 1000, 4), (2, 300, 16), (3, 5000, 0), (1, 10**6, 8)]:
        again, same = grid.labels(threads, block=block, halo=halo)
        np.testing.assert_array_equal(again, labels)
        assert same.tobytes() == answer.tobytes()


@pytest.mark.parametrize("ones", [False, True])
def test_empty_and_full_answers(ones):
    grid = Grid(np.random.default_rng(1), (9, 8), EIGHT)
    grid.unary = np.zeros((72, 2))
    grid.weights = np.ones(len(grid.edges))
    grid.unary[40, 1 - ones] = 0.125
    for block in (1, 7, 100):
        labels, answer = grid.labels(block=block, halo=2)
        assert (labels == ones).all()
        assert answer[:3].tolist() == [0.0, 0.0, 0.0]


@given(seeds)
def test_a_window_proves_only_what_is_so(seed):
    """Any parts of the best labels may be known, and windows may follow each other in any order."""
    rng = np.random.default_rng(seed)
    grid = drawn_grid(rng, {1: 40, 2: 9, 3: 5})
    labels, _ = grid.of_edges()
    known = np.where(rng.random(len(labels)) < rng.choice([0.0, 0.3, 0.9]), labels, 2)
    known = known.astype(np.uint8)
    largest = float(grid.weights.max(initial=0.0))
    for _ in range(4):
        low = [int(rng.integers(0, side)) for side in grid.sides]
        high = [int(rng.integers(k + 1, side + 1)) for k, side in zip(low, grid.sides, strict=True)]
        before = known.copy()
        box = np.array([low, high]).T.copy()
        halo = int(rng.integers(0, 3))
        arrays = grid.unary, grid.sides, grid.steps, grid.weights
        left = _core.cut_window(*arrays, known, box, halo, largest)
        decided = known < 2
        np.testing.assert_array_equal(known[decided], labels[decided])
        assert (decided >= (before < 2)).all()
        core = np.s_[*(slice(a, b) for a, b in box)]
        assert (known.reshape(grid.sides)[core] != 2).all()
        assert left >= (known.reshape(grid.sides)[core] == 3).sum()
    everything = np.stack([np.zeros_like(grid.sides), grid.sides], axis=1)
    assert _core.cut_window(*arrays, known, everything, 0, largest) == 0
    np.testing.assert_array_equal(known, labels)


@given(seeds)
def test_directed_edges_in_whole_units(seed):
    """Known labels, blocks and threads do not matter to the best labels with the fewest ones."""
    rng = np.random.default_rng(seed)
    grid = drawn_grid(rng, {1: 12, 2: 3, 3: 2})
    n, sides = len(grid.unary), tuple(grid.sides)
    number = rng.choice([np.int32, np.int64])
    costs = rng.integers(-9, 10, n).astype(number)
    there, back = rng.integers(0, 5, (2, len(grid.steps), *sides)).astype(number)
    pixels = np.arange(n).reshape(sides)
    every = reference.all_labelings(n, 2)
    energies = every @ costs.astype(np.int64)
    for k, step in enumerate(grid.steps):
        tails = np.argwhere(pixels >= 0)
        heads = tails + step
        inside = ((heads >= 0) & (heads < grid.sides)).all(axis=1)
        tails, heads = (tuple(ends[inside].T) for ends in (tails, heads))
        x, y = every[:, pixels[tails]], every[:, pixels[heads]]
        energies = energies + (x > y) @ there[k][tails].astype(np.int64)
        energies = energies + (x < y) @ back[k][tails].astype(np.int64)
    fewest = every[energies == energies.min()].min(axis=0)
    arrays = costs, grid.sides, grid.steps, there
    known = np.where(rng.random(n) < rng.choice([0.0, 0.4]), fewest, 2).astype(np.uint8)
    box = np.stack([np.zeros_like(grid.sides), grid.sides], axis=1)
    low = [int(rng.integers(0, side)) for side in grid.sides]
    part = np.stack([low, rng.integers(np.array(low) + 1, grid.sides + 1)], axis=1)
    proved = known.copy()
    assert _core.cut_block(*arrays, proved, part, int(rng.integers(1, 9)), 1, 2, back) >= 0
    np.testing.assert_array_equal(proved[proved < 2], fewest[proved < 2])
    assert _core.cut_block(*arrays, proved, box, reverse=back) == 0
    np.testing.assert_array_equal(proved, fewest)
    for block in (0, 1, 3):
        labels = known.copy()
        assert _core.cut_open(*arrays, labels, int(rng.integers(1, 3)), back, block)
        np.testing.assert_array_equal(labels, fewest)


def test_a_window_is_solved_for_fixed_labels_around_it():
    """With all labels around it known, a window has one answer: the best for them."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        grid = Grid(rng, (4, 5), STEPS[2][0])
        around = rng.integers(0, 2, 20).reshape(4, 5)
        inside = np.zeros((4, 5), bool)
        inside[1:3, 1:4] = True
        finite = np.isfinite(grid.unary).all(axis=1).reshape(4, 5)
        around[~finite] = 0
        grid.unary[~np.isfinite(grid.unary)] = 4.0
        known = np.where(inside, 2, around).astype(np.uint8).ravel()
        box = np.array([[1, 3], [1, 4]])
        largest = float(grid.weights.max())
        arrays = grid.unary, grid.sides, grid.steps, grid.weights
        assert _core.cut_window(*arrays, known, box, 0, largest) == 0
        every = np.tile(around.ravel(), (64, 1))
        every[:, inside.ravel()] = reference.all_labelings(6, 2)
        energies = grid.energy(every)
        fewest = every[energies == energies.min()].min(axis=0)
        np.testing.assert_array_equal(known, fewest)


def test_numbers_of_any_size_make_no_false_claim():
    """A bound is the energy in whole units, each less than one unit below the number."""
    rng = np.random.default_rng(7)
    for power in (0, 5, 15, 25, 60, 150):
        edges = fields.grid_edges((3, 4))
        weights = 10.0 ** rng.uniform(-power, power, len(edges))
        unary = rng.normal(size=(12, 2)) * 10.0 ** rng.uniform(-power, power, (12, 1))
        unary[0, 0] = unary[11, 1] = np.inf
        field = fields.Field(unary) + fields.Potts(edges, weights)
        best = sw.solve_map(field)
        least = field.energy(reference.all_labelings(12, 2)).min()
        assert best.bound <= least + 1e-12 * abs(least)
        assert best.value >= least - 1e-12 * abs(least)
        if best.exact:
            assert best.value <= least + 1e-9 * abs(least)


def test_the_window_kernel_checks_its_arrays():
    unary, known = np.zeros((6, 2)), np.full(6, 2, np.uint8)
    sides, steps, weights = np.array([2, 3]), np.array([[0, 1], [1, 0]]), np.ones(7)
    box = np.array([[0, 2], [0, 3]])

    def cut(unary=unary, weights=weights, known=known, box=box, halo=0, largest=1.0):
        return _core.cut_window(unary, sides, steps, weights, known, box, halo, largest)

    assert cut(known=known.copy()) == 0
    for words in (
        {"known": known[:5].copy()},
        {"box": box[:1].copy()},
        {"box": np.array([[0, 3], [0, 3]])},
        {"box": np.array([[1, 1], [0, 3]])},
        {"halo": -1},
        {"weights": weights[:6].copy()},
    ):
        with pytest.raises(ValueError, match="must"):
            cut(**words)
    five = np.array([[0, 1], [1, 0], [1, 1], [1, -1], [0, 2]])
    grid = Grid(np.random.default_rng(0), (2, 3), five)
    arrays = grid.unary, grid.sides, grid.steps, grid.weights
    assert _core.cut_window(*arrays, known.copy(), box, 0, 1.0) == -1


def many_blocks():
    """Return a field of several blocks, solved in a fraction of a second."""
    rng = np.random.default_rng(11)
    edges = fields.grid_edges((960, 950))
    unary = rng.integers(-16, 17, (912_000, 2)) / 8
    return fields.Field(unary) + fields.Potts(edges, rng.integers(0, 9, len(edges)) / 8)


def check_interrupted(found, best, field):
    assert found.interrupted
    assert (found.labels == np.argmin(field.unary, axis=1)).all()
    assert found.bound <= best.value <= found.value
    assert not found.exact


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_in_the_middle_of_a_block(n_jobs):
    field = many_blocks()
    best = sw.solve_map(field, n_jobs=n_jobs)
    polls = 0

    def solve(at):
        nonlocal polls
        polls = 0

        def watch():
            nonlocal polls
            polls += 1
            if polls == at:
                signal.raise_signal(signal.SIGINT)

        _core.watch_polls(watch)
        try:
            return sw.solve_map(field, n_jobs=n_jobs)
        finally:
            _core.watch_polls(None)

    assert solve(0).exact
    # With two threads it varies how often the calling one polls.
    for at in sorted({1, 2, max(polls // (2 * n_jobs), 1)}):
        check_interrupted(solve(at), best, field)
    again = sw.solve_map(field, n_jobs=n_jobs)
    assert again.exact
    assert again.labels.tobytes() == best.labels.tobytes()


def test_a_time_limit_in_the_middle_of_a_block():
    field = many_blocks()
    best = sw.solve_map(field, n_jobs=1)
    with counted() as clock:
        sw.solve_map(field, n_jobs=1, time_limit=LIMIT)
    for at in moments(clock.readings)[:-2]:
        with counted(at):
            found = sw.solve_map(field, n_jobs=1, time_limit=LIMIT)
        if found.exact:
            assert found.labels.tobytes() == best.labels.tobytes()
        else:
            assert (found.labels == np.argmin(field.unary, axis=1)).all()
            assert found.bound <= best.value <= found.value
    with counted(2):
        assert not sw.solve_map(field, n_jobs=1, time_limit=LIMIT).exact
