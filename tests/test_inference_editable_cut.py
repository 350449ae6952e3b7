"""Cuts that are edited: after every change the least minimiser, and a proof that claims no more."""

from __future__ import annotations

import pickle
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.fields import contrast_weights, grid_edges
from setwise.fields._pixels._grid import count_pairs, directions
from setwise.inference import EditableCut
from setwise.inference._editing import _local_update, _whole_grid
from setwise.inference._editing._edits import Edits
from setwise.inference._editing._grid_energy import make_energy
from setwise.inference._editing._sliceable import blocks
from setwise.inference._editing._whole_grid import solve_in_blocks, solve_whole

seeds = st.integers(0, 2**32 - 1)
KNIGHTS = [[1, 2], [0, 1], [2, -1]]
# Shapes with few enough voxels to list all labellings, and their neighbourhoods.
TINY = [((2, 5), 4), ((3, 3), 8), ((2, 2, 2), 6), ((1, 3, 3), 18), ((2, 2, 2), 26), ((9,), 2)]
TINY += [((3, 4), KNIGHTS), ((1, 1), 4), ((0, 3), 4)]
SMALL = [((14, 15), 4), ((14, 15), 8), ((7, 6, 6), 6), ((6, 6, 6), 18), ((6, 6, 6), 26)]
SMALL += [((60,), 2), ((13, 14), KNIGHTS)]


def nothing(window: object, done: float) -> bool:
    return False


class Listed:
    """An energy as numbers: costs, seeds and arcs (tail, head, weight), of which all answers are
    known."""

    def __init__(self, unary, weights, reverse, connectivity) -> None:
        sides = unary.shape
        self.sides, self.costs = sides, unary.astype(float).ravel()
        self.seeds = np.full(unary.size, -1)
        steps = directions(connectivity, len(sides))
        full = [np.broadcast_to(w, (len(steps), *sides)) for w in (weights, reverse)]
        self.arcs = []
        for k, step in enumerate(steps):
            for place in np.ndindex(*sides):
                other = tuple(a + b for a, b in zip(place, step, strict=True))
                if all(0 <= a < side for a, side in zip(other, sides, strict=True)):
                    i, j = (int(np.ravel_multi_index(at, sides)) for at in (place, other))
                    self.arcs += [(i, j, full[0][(k, *place)]), (j, i, full[1][(k, *place)])]
        self.every = np.array(list(product([0, 1], repeat=unary.size)), np.int8)
        self.cut = sum(
            (w * (self.every[:, i] > self.every[:, j]) for i, j, w in self.arcs),
            np.zeros(len(self.every)),
        )

    def energies(self) -> np.ndarray:
        """The energies of all labellings; infinite for those that are forbidden."""
        costs = self.costs.copy()
        costs[self.seeds == 0], costs[self.seeds == 1] = np.inf, -np.inf
        finite = np.where(np.isfinite(costs), costs, 0.0)
        bad = (self.every[:, np.isposinf(costs)] == 1).any(axis=1)
        bad |= (self.every[:, np.isneginf(costs)] == 0).any(axis=1)
        return np.where(bad, np.inf, self.every @ finite + self.cut)

    def least(self) -> np.ndarray:
        energies = self.energies()
        return self.every[energies == energies.min()].min(axis=0).reshape(self.sides)


def random_energy(rng, sides, connectivity):
    """Multiples of 1/4 with many ties, sometimes forbidden labels, and weights of every form."""
    steps = directions(connectivity, len(sides))
    unary = 0.25 * rng.integers(-6, 7, sides)
    unary[rng.random(sides) < 0.05] = rng.choice([np.inf, -np.inf])
    shape = [(), (len(steps), *(1,) * len(sides)), (len(steps), *sides)][rng.integers(3)]
    weights = 0.25 * rng.integers(0, 5, shape)
    reverse = None if rng.random() < 0.5 else 0.25 * rng.integers(0, 5, shape)
    return unary, weights, reverse


def random_change(rng, cut):
    """Change a cut, and return how a listed energy changes with it."""
    sides = cut.shape
    corner = [int(rng.integers(0, max(side, 1))) for side in sides]
    window = tuple(slice(at, at + int(rng.integers(1, 4))) for at in corner)
    if rng.random() < 0.5:
        mask = np.zeros(sides, np.bool_)
        mask[window] = rng.random(mask[window].shape) < 0.7
        label = [0, 1, None][rng.integers(3)]
        cut.add_seeds(mask if rng.random() < 0.5 else np.argwhere(mask), label)
        return lambda costs, seed: seed.__setitem__(mask, -1 if label is None else label)
    shape = np.empty(sides)[window].shape
    delta = 0.25 * rng.integers(-8, 9, shape if rng.random() < 0.7 else ())
    cut.change_unary(window, delta)
    return lambda costs, seed: costs.__setitem__(window, costs[window] + delta)


@given(seeds)
def test_every_state_of_a_sequence_is_the_least_minimiser(seed):
    rng = np.random.default_rng(seed)
    sides, connectivity = TINY[rng.integers(len(TINY))]
    unary, weights, reverse = random_energy(rng, sides, connectivity)
    listed = Listed(unary, weights, weights if reverse is None else reverse, connectivity)
    cut = EditableCut(unary, weights, reverse, connectivity=connectivity, n_jobs=1)
    cut._halo = int(rng.integers(0, 2))
    states = [(listed.costs.copy(), listed.seeds.copy())]
    np.testing.assert_array_equal(cut.labels, listed.least())
    for _ in range(6):
        if len(states) > 1 and rng.random() < 0.25:
            cut.undo()
            states.pop()
        else:
            costs, fixed = (part.copy() for part in states[-1])
            random_change(rng, cut)(costs.reshape(sides), fixed.reshape(sides))
            states.append((costs, fixed))
        listed.costs, listed.seeds = states[-1]
        assert cut.proved
        np.testing.assert_array_equal(cut.labels, listed.least())
        proof = cut.certificate()
        assert proof.exact
        assert proof.value == proof.bound == listed.energies().min()


@given(seeds)
def test_a_long_sequence_ends_at_the_solution_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    sides, connectivity = SMALL[rng.integers(len(SMALL))]
    unary, weights, reverse = random_energy(rng, sides, connectivity)
    cut = EditableCut(unary, weights, reverse, connectivity=connectivity, n_jobs=1)
    cut._halo = int(rng.integers(0, 3))
    for _ in range(5):
        random_change(rng, cut)
        assert cut.proved
        np.testing.assert_array_equal(cut.labels, again(cut))
    for _ in range(5):
        cut.undo()
        np.testing.assert_array_equal(cut.labels, again(cut))


def again(cut):
    """The labels of the whole, solved from nothing."""
    return solve_whole(cut._energy, cut._edits, 1, nothing)[0]


@given(seeds)
def test_blocks_of_every_size_give_the_same_labels(seed):
    rng = np.random.default_rng(seed)
    sides, connectivity = SMALL[rng.integers(len(SMALL))]
    energy = make_energy(*random_energy(rng, sides, connectivity), connectivity)
    edits = Edits(sides)
    voxels = np.flatnonzero(rng.random(sides) < 0.05)
    seed_labels = rng.integers(-1, 2, len(voxels)).astype(np.int8)
    edits.write_at(voxels, (0.25 * rng.integers(-9, 9, len(voxels)), seed_labels))
    whole, proved = solve_whole(energy, edits, 1, nothing)
    side, halo = int(rng.integers(2, 9)), int(rng.integers(0, 20))
    labels = np.full(sides, 2, np.uint8)
    n_threads = int(rng.integers(1, 4))
    found, also = solve_in_blocks(energy, edits, n_threads, nothing, labels, side, halo)
    assert proved
    assert also
    np.testing.assert_array_equal(found, whole)


def test_many_open_voxels_are_tried_again_with_larger_halos(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_whole_grid, "_MOST_OPEN", 0)
    energy = make_energy(rng.integers(-6, 7, (20, 20)), 3, None, 4)
    seen = []
    labels, proved = solve_in_blocks(
        energy,
        Edits((20, 20)),
        1,
        lambda window, done: seen.append(window),
        np.full((20, 20), 2, np.uint8),
        5,
        1,
    )
    assert proved
    assert len(seen) > 1 + len(blocks((20, 20), 5))
    np.testing.assert_array_equal(labels, solve_whole(energy, Edits((20, 20)), 1, nothing)[0])


def test_large_grids_are_solved_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_whole_grid, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(_local_update, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(_whole_grid, "_BLOCK", {2: 7})
    monkeypatch.setattr(_whole_grid, "_HALO", {2: 2})
    unary = rng.integers(-6, 7, (20, 20))
    cut = EditableCut(unary, 2)
    cut._halo = 1
    assert cut.proved
    update = cut.change_unary(np.s_[3:17, 3:17], -2)
    assert update.whole
    assert update.proved
    monkeypatch.undo()
    changed = unary.copy()
    changed[3:17, 3:17] -= 2
    np.testing.assert_array_equal(cut.labels, EditableCut(changed, 2).labels)


@pytest.mark.parametrize(("sides", "connectivity"), [((11, 11), 8), ((5, 5, 5), 26)])
def test_the_flood_needs_the_neighbourhood_of_the_field(monkeypatch, sides, connectivity):
    """A flood along the axes alone stops at a diagonal and proves what is wrong."""
    own = _local_update._flood

    def along_axes(differs, places, window, steps, shape):
        return own(differs, places, window, directions(None, len(shape)), shape)

    def wrong(flood) -> int:
        monkeypatch.setattr(_local_update, "_flood", flood)
        found, count = 0, connectivity // 2
        for seed in range(100):
            rng = np.random.default_rng(seed)
            unary = rng.integers(-3 * count // 4, 3 * count // 4 + 1, sides)
            weights = rng.integers(0, 2, (count, *sides))
            cut = EditableCut(unary, weights, connectivity=connectivity, n_jobs=1)
            cut._halo = 1
            centre = tuple(side // 2 for side in sides)
            cut.add_seeds([centre], 1 - int(cut.labels[centre]))
            found += bool((cut.labels != again(cut)).any())
        return found

    assert wrong(own) == 0
    assert wrong(along_axes) > 0


def disk(sides, centre, radius):
    places = np.indices(sides) - np.reshape(centre, (-1,) + (1,) * len(sides))
    return np.argwhere((places**2).sum(axis=0) <= radius**2)


class Watched:
    """An array that notes which windows of it are read."""

    def __init__(self, array) -> None:
        self.array, self.shape, self.dtype, self.windows = array, array.shape, array.dtype, []

    def __getitem__(self, key):
        self.windows.append(self.array[key].size)
        return self.array[key]


def test_a_stroke_reads_and_cuts_a_window_only():
    rng = np.random.default_rng(0)
    unary = Watched(rng.normal(1.0, 0.5, (400, 400)))
    cut = EditableCut(unary, 0.3)
    cut._halo = 64
    unary.windows.clear()
    seen = []
    update = cut.add_seeds(disk((400, 400), (200, 90), 5), 1, callback=seen.append)
    assert update.proved
    assert not update.whole
    assert update.n_windows == update.n_steps == len(seen) == 1
    assert update.n_changed > 0
    assert sum(unary.windows) < 0.2 * 400 * 400
    np.testing.assert_array_equal(cut.labels, again(cut))


def test_distant_strokes_take_a_window_each():
    rng = np.random.default_rng(0)
    cut = EditableCut(rng.normal(1.0, 0.5, (600, 600)), 0.3)
    far = np.concatenate([disk((600, 600), at, 3) for at in ((20, 30), (580, 560))])
    update = cut.add_seeds(far, 1)
    assert update.proved
    assert update.n_steps == 2
    assert not update.whole
    np.testing.assert_array_equal(cut.labels, again(cut))


def test_a_window_grows_until_the_flood_stays_inside():
    unary = np.full((300, 9), 1.0)
    unary[:, 4] = -0.9  # a corridor that one seed turns over
    unary[150:, 4] = 1.5
    cut = EditableCut(unary, 1.0, reverse=0.0)
    cut._halo = 2
    assert not cut.labels.any()
    update = cut.change_unary(np.s_[75:77], -6.0)
    assert update.proved
    assert update.n_windows > 1
    np.testing.assert_array_equal(cut.labels, again(cut))


@pytest.mark.parametrize("corner", [(0, 0), (0, 39), (39, 0), (39, 20)])
def test_strokes_at_the_border_of_the_grid(corner):
    rng = np.random.default_rng(1)
    cut = EditableCut(rng.normal(0.0, 1.0, (40, 40)), 0.4, connectivity=8)
    cut._halo = 3
    for label in (1, 0):
        assert cut.add_seeds(disk((40, 40), corner, 6), label).proved
        np.testing.assert_array_equal(cut.labels, again(cut))


def test_empty_and_full_answers():
    full = EditableCut(np.full((6, 6), -1.0), 0.5)
    assert full.labels.all()
    assert full.add_seeds(np.ones((6, 6), np.bool_), 0).n_changed == 36
    assert not full.labels.any()
    assert full.add_seeds(np.zeros((6, 6), np.bool_), 1).n_changed == 0
    assert full.add_seeds([], 1).proved
    assert full.change_unary(np.s_[2:2], 1.0).n_windows == 0
    assert full.undo().proved


# ---------------------------------------------------------------------------- rounding


@given(seeds)
def test_the_certificate_of_a_rounded_energy_bounds_every_labelling(seed):
    rng = np.random.default_rng(seed)
    sides, connectivity = TINY[rng.integers(len(TINY) - 2)]
    unary, weights, reverse = random_energy(rng, sides, connectivity)
    unary, weights = unary + rng.normal(0.0, 0.2, sides), weights * rng.random()
    reverse = weights if reverse is None else reverse
    listed = Listed(unary, weights, reverse, connectivity)
    cut = EditableCut(unary, weights, reverse, connectivity=connectivity)
    least = listed.energies().min()
    fine = cut.certificate()
    room = 1e-12 * (1.0 + abs(least))
    assert fine.bound - room <= least <= fine.value + room
    assert fine.gap < 1e-12
    # The same in units of 1/4, 1/2 or 1.
    coarse = 2 - int(rng.integers(3))
    units = np.ldexp(cut._energy.decisive, coarse - cut._energy.exponent)
    rough = EditableCut(unary, weights, reverse, connectivity=connectivity)
    object.__setattr__(rough._energy, "exponent", coarse)
    decisive = int(np.ceil(units)) + 2 * len(cut._energy.steps)
    object.__setattr__(rough._energy, "decisive", decisive)
    rough._solve_again(None)
    proof = rough.certificate()
    assert proof.unit == 2.0**-coarse
    assert proof.bound - room <= least <= proof.value + room


def test_numbers_of_very_different_size():
    for weight in (1e-200, 1e-12, 1e12, 1e299):
        unary = weight * np.array([[-3.0, 1.0, 5.0, -1.0]])
        cut = EditableCut(unary, weight)
        assert cut.labels.tolist() == [[1, 0, 0, 0]]
        assert cut.certificate().relative_gap < 1e-9
    huge = EditableCut([[1e300, -1e300, 0.5, -0.5]], 0.25)
    assert huge.labels.tolist() == [[0, 1, 0, 1]]
    assert EditableCut([[1e-200, -1e-200]], 0.0).labels.tolist() == [[0, 1]]


# ---------------------------------------------------------------------------- without a proof


def stopping(count):
    """A callback that stops at its call number ``count``."""
    seen = []
    return lambda progress: len(seen) + 1 >= count if seen.append(progress) is None else None


def noisy(seed=0, halo=1):
    rng = np.random.default_rng(seed)
    cut = EditableCut(rng.normal(0.0, 1.0, (30, 30)), 0.8, n_jobs=1)
    cut._halo = halo
    return cut


def test_an_update_that_is_stopped_is_not_proved_until_it_is_repaired():
    unproved = 0
    for seed in range(12):
        cut, other = noisy(seed), noisy(seed)
        place = np.random.default_rng(seed).integers(5, 25, 2)
        other.add_seeds(disk((30, 30), place, 3), 1)
        update = cut.add_seeds(disk((30, 30), place, 3), 1, callback=stopping(1))
        assert update.proved == cut.proved == (not update.interrupted)
        if not update.proved:
            unproved += 1
            assert "repair" in update.reason
            assert not cut.certificate().exact
            assert "repair" in cut.change_unary(np.s_[3:5, 3:9], -1.0).reason
            assert not cut.proved
            other.change_unary(np.s_[3:5, 3:9], -1.0)
            assert cut.repair().proved
        assert cut.proved
        np.testing.assert_array_equal(cut.labels, other.labels)
        assert cut.repair().n_windows == 0
        while cut._changes:
            cut.undo()
            other.undo()
            np.testing.assert_array_equal(cut.labels, other.labels)
    assert unproved > 3


def test_a_first_solution_that_is_stopped_can_be_repaired(monkeypatch):
    monkeypatch.setattr(_whole_grid, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(_local_update, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(_whole_grid, "_BLOCK", {2: 10})
    unary = np.random.default_rng(0).normal(0.0, 1.0, (30, 30))
    cut = EditableCut(unary, 0.8, callback=stopping(3))
    assert not cut.proved
    whole = EditableCut(unary, 0.8)
    assert (cut.labels <= whole.labels).all()
    cut._halo = 2
    assert not cut.add_seeds([[4, 4]], 1).proved
    assert not cut.repair(callback=stopping(2)).proved
    assert cut.repair().proved
    assert whole.add_seeds([[4, 4]], 1).proved
    np.testing.assert_array_equal(cut.labels, whole.labels)
    assert cut.undo().proved
    whole.undo()
    np.testing.assert_array_equal(cut.labels, whole.labels)


class Broken(Exception):
    pass


def breaking(count):
    seen = []

    def callback(progress):
        seen.append(progress)
        if len(seen) >= count:
            raise Broken

    return callback


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_fails_in_the_middle_changes_nothing(count):
    cut, rng = noisy(3), np.random.default_rng(3)
    cut.add_seeds(disk((30, 30), (9, 9), 3), 1)
    before, proof = cut.labels.copy(), cut.certificate().value
    with pytest.raises(Broken):
        cut.change_unary(np.s_[5:25, 5:25], 3.0 * rng.normal(size=(20, 20)), callback=breaking(1))
    np.testing.assert_array_equal(cut.labels, before)
    with pytest.raises(Broken):
        cut.replace(weights=2.0, callback=breaking(1))
    assert cut.proved
    assert cut.certificate().value == proof
    np.testing.assert_array_equal(cut.labels, before)
    np.testing.assert_array_equal(cut.labels, again(cut))
    # A repair that fails keeps the changes, and can be called again.
    strokes = [disk((30, 30), place, 3) for place in ((15, 15), (12, 18), (20, 9))]
    for stroke in strokes:
        cut.add_seeds(stroke, 1, callback=stopping(1))
    other = noisy(3)
    other.add_seeds(disk((30, 30), (9, 9), 3), 1)
    for stroke in strokes:
        other.add_seeds(stroke, 1)
    if not cut.proved:
        with pytest.raises(Broken):
            cut.repair(callback=breaking(count))
        assert len(cut._changes) == 4
        assert cut.labels[tuple(strokes[-1].T)].all()
    assert cut.repair().proved
    np.testing.assert_array_equal(cut.labels, other.labels)


class Tearing:
    """Labels whose write number ``count`` fails."""

    def __init__(self, sides) -> None:
        self.array, self.shape, self.dtype = np.zeros(sides, np.uint8), sides, np.dtype("u1")
        self.left = 10**9

    def __getitem__(self, key):
        return self.array[key]

    def __setitem__(self, key, value):
        self.left -= 1
        if self.left == 0:
            raise Broken
        self.array[key] = value


def test_a_write_that_fails_changes_nothing():
    rng = np.random.default_rng(0)
    labels = Tearing((30, 30))
    halves = np.where(np.arange(30) < 13, -1.5, 1.5)
    cut = EditableCut(halves + rng.normal(0.0, 1.0, (30, 30)), 0.8, labels=labels)
    cut._halo = 2
    delta = np.where(np.arange(9) < 4, 9.0, -9.0)  # both labels change, so there are two writes
    for count in (1, 2):
        before = labels.array.copy()
        labels.left = count
        with pytest.raises(Broken):
            cut.change_unary(np.s_[9:18, 9:18], delta)
        assert labels.left < 0
        np.testing.assert_array_equal(labels.array, before)
        assert cut.proved
    assert cut.change_unary(np.s_[9:18, 9:18], delta).proved
    labels.left = 1
    with pytest.raises(Broken):
        cut.undo()
    np.testing.assert_array_equal(labels.array, before)
    with pytest.raises(ValueError, match="there is no change to undo"):
        cut.undo()


def test_all_unaries_or_weights_are_replaced_and_seeds_stay():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.0, 1.0, (2, 20, 20))
    cut = EditableCut(first, 0.5)
    cut.add_seeds([[3, 3], [3, 4]], 1)
    update = cut.replace(unary=second)
    assert update.whole
    assert update.proved
    assert update.reason == "the whole was solved again"
    other = EditableCut(second, 0.5)
    other.add_seeds([[3, 3], [3, 4]], 1)
    np.testing.assert_array_equal(cut.labels, other.labels)
    cut.replace(weights=0.1, reverse=0.9)
    other = EditableCut(second, 0.1, 0.9)
    other.add_seeds([[3, 3], [3, 4]], 1)
    np.testing.assert_array_equal(cut.labels, other.labels)
    with pytest.raises(ValueError, match="there is no change to undo"):
        cut.undo()


# ---------------------------------------------------------------------------- forms of arrays


def test_weights_of_edges_are_those_of_a_grid():
    rng = np.random.default_rng(0)
    image = rng.normal(size=(12, 15))
    edges = grid_edges(image.shape, 8)
    flat = np.rint(1024 * contrast_weights(image, edges, channels=False)) / 1024
    unary = np.rint(1024 * (image + rng.normal(size=image.shape))) / 1024
    steps = directions(8, 2)
    full, begin = np.zeros((4, 12, 15)), 0
    for k, step in enumerate(steps):
        end = begin + count_pairs(image.shape, step)
        rows, columns = np.divmod(edges[begin:end, 0], 15)
        full[k, rows, columns] = flat[begin:end]
        begin = end
    cuts = [EditableCut(unary, weights, connectivity=8) for weights in (flat, full)]
    np.testing.assert_array_equal(cuts[0].labels, cuts[1].labels)
    assert cuts[0].certificate().value == cuts[1].certificate().value
    assert cuts[0].certificate().exact


def test_arrays_that_are_sliced(tmp_path):
    da, zarr = pytest.importorskip("dask.array"), pytest.importorskip("zarr")
    rng = np.random.default_rng(0)
    unary = np.rint(64 * rng.normal(0.5, 1.0, (20, 21, 22))).astype(np.float32) / 64
    weights = rng.integers(0, 3, (3, 20, 21, 22)).astype(np.uint8)
    np.save(tmp_path / "unary.npy", unary)
    stored = zarr.create_array(tmp_path / "unary.zarr", data=unary, chunks=(8, 8, 8))
    found = zarr.create_array(
        tmp_path / "labels.zarr", shape=unary.shape, chunks=(8, 8, 8), dtype="uint8"
    )
    mapped = np.lib.format.open_memmap(tmp_path / "labels.npy", "w+", np.uint8, shape=unary.shape)
    cuts = [
        EditableCut(unary.tolist(), weights.tolist()),
        EditableCut(np.load(tmp_path / "unary.npy", mmap_mode="r"), weights, labels=mapped),
        EditableCut(stored, zarr.array(weights), labels=found),
        EditableCut(
            da.from_array(unary), da.from_array(weights), labels=np.zeros(unary.shape, np.int64)
        ),
    ]
    assert cuts[1].labels is mapped
    assert cuts[2].labels is found
    stroke = disk(unary.shape, (9, 9, 9), 4)
    for cut in cuts:
        cut._halo = 3
        assert cut.add_seeds(stroke, 1).proved
        assert cut.change_unary(np.s_[5:9, 5:9], 1.0).proved
        np.testing.assert_array_equal(cut.labels[:], cuts[0].labels)
        assert cut.certificate().value == cuts[0].certificate().value
    np.testing.assert_array_equal(cuts[0].labels, again(cuts[0]))
    for cut in cuts:
        cut.undo()
        np.testing.assert_array_equal(cut.labels[:], cuts[0].labels)


def test_what_stood_in_the_labels_does_not_matter():
    unary = np.random.default_rng(0).normal(0.0, 1.0, (9, 9))
    labels = np.full((9, 9), 7)
    np.testing.assert_array_equal(
        EditableCut(unary, 0.5, labels=labels).labels, EditableCut(unary, 0.5).labels
    )


def test_labels_that_are_solved_elsewhere():
    rng = np.random.default_rng(0)
    unary = rng.normal(0.0, 1.0, (40, 40))
    labels = EditableCut(unary, 0.5).labels.copy()
    cut = EditableCut(unary, 0.5, labels=labels, solved=True)
    cut._halo = 4
    assert cut.proved
    assert cut.add_seeds(disk((40, 40), (20, 20), 4), 1).proved
    np.testing.assert_array_equal(labels, again(cut))


def test_a_stored_cut_goes_on():
    cut = noisy()
    cut.add_seeds(disk((30, 30), (9, 9), 3), 1)
    other = pickle.loads(pickle.dumps(cut))
    for each in (cut, other):
        each.add_seeds(disk((30, 30), (19, 19), 3), 0)
    np.testing.assert_array_equal(cut.labels, other.labels)
    cut.undo()
    cut.undo()
    assert (cut.labels != other.labels).any()
    assert repr(cut) == "EditableCut(30 x 30, connectivity=4, n_changes=0, proved=True)"


def test_labels_cannot_be_changed_by_others():
    cut = noisy()
    with pytest.raises(ValueError, match="read-only"):
        cut.labels[0, 0] = 1


WRONG = {
    "unary must hold numbers, got nan at (1, 2)": lambda: EditableCut(
        [[0.0, 1.0, 2.0], [0.0, 0.0, np.nan]], 1
    ),
    "unary must have at least one axis, got shape ()": lambda: EditableCut(1.0, 1),
    "unary must hold real numbers, got dtype complex128": lambda: EditableCut([[1j]], 1),
    "weights must be finite and not negative, got -1.0": lambda: EditableCut([[1, 2]], -1),
    "reverse must be finite and not negative, got inf": lambda: EditableCut([[1, 2]], 1, np.inf),
    "weights must broadcast to shape (2, 1, 2) or have shape (1,), got (5,)": lambda: EditableCut(
        [[1, 2]], np.ones(5)
    ),
    "connectivity must be 1 or 2 or 4 or 8 in 2 dimensions": lambda: EditableCut(
        [[1, 2]], 1, connectivity=6
    ),
    "labels must be an array that can be written, got list": lambda: EditableCut(
        [[1, 2]], 1, labels=[[0, 0]]
    ),
    "labels must hold integers, got dtype float64": lambda: EditableCut(
        [[1, 2]], 1, labels=np.zeros((1, 2))
    ),
    "labels must have shape (1, 2), got (2,)": lambda: EditableCut(
        [[1, 2]], 1, labels=np.zeros(2, np.uint8)
    ),
    "labels must be given if solved is True, got None": lambda: EditableCut(
        [[1, 2]], 1, solved=True
    ),
    "where must lie in the grid of shape (30, 30), got (30, 0)": lambda: noisy().add_seeds(
        [[30, 0]], 1
    ),
    "where must be a mask of shape (30, 30), got (2,)": lambda: noisy().add_seeds([True, False], 1),
    "label must be at most 1, got 2": lambda: noisy().add_seeds([[0, 0]], 2),
    "window must be a slice or a tuple of slices, got 3": lambda: noisy().change_unary(3, 1.0),
    "window must have at most 2 slices, got 3": lambda: noisy().change_unary(np.s_[:, :, :], 1.0),
    "window must have slices without a step": lambda: noisy().change_unary(np.s_[::2], 1.0),
    "delta must broadcast to shape (3, 30), got (4,)": lambda: noisy().change_unary(
        np.s_[:3], np.ones(4)
    ),
    "delta must be finite, got inf": lambda: noisy().change_unary(np.s_[:3], np.inf),
    "unary must have shape (30, 30), got (2, 2)": lambda: noisy().replace(np.zeros((2, 2))),
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_input_is_refused_in_a_sentence(message):
    with pytest.raises((TypeError, ValueError)) as error:
        WRONG[message]()
    assert str(error.value).startswith(message)


def test_sizes_of_tiny_cases():
    assert all(prod(sides) <= 12 for sides, _ in TINY)
