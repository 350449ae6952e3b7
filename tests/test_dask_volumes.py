"""Volumes in blocks on disk: the labels of the whole, whatever happens to blocks and workers."""

import json
import threading
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr
from dask_cluster import _time_limit, kill_workers, lose_all_workers  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st

import setwise as sw
from setwise import fields
from setwise.dask import VolumeOptions, solve_map
from setwise.dask._volumes import _volume_search
from setwise.dask._volumes._costs import Units
from setwise.dask._volumes._ome_zarr import read_ome
from setwise.dask._volumes._volume_energy import units_for
from setwise.fields._pixels._grid import directions, pair_slices

seeds = st.integers(0, 2**32 - 1)
NEIGHBOURS = {1: [2], 2: [4, 8], 3: [6, 26]}


def in_memory(unary, strengths, connectivity, falls=None):
    """Return the result of ``solve_map``, and the weights of the edges, one per direction."""
    edges = fields.grid_edges(unary.shape, connectivity)
    steps = directions(connectivity, unary.ndim)
    weights = []
    for k, (step, strength) in enumerate(zip(steps, strengths, strict=True)):
        first, _ = pair_slices(unary.shape, step)
        weights.append(strength * (np.ones(unary.shape) if falls is None else falls[k])[first])
    weights = np.concatenate([part.ravel() for part in weights])
    costs = np.stack([np.zeros(unary.size), unary.ravel()], axis=1)
    costs[unary.ravel() == -np.inf] = [np.inf, 0.0]
    return sw.solve_map(fields.Field(costs) + fields.Potts(edges, weights))


def strengths_of(smoothness, spacing, connectivity, axes):
    steps = np.array(directions(connectivity, axes))
    spacing = np.ones(axes) if spacing is None else np.array(spacing)
    return smoothness * spacing.min() / np.linalg.norm(steps * spacing, axis=1)


def in_units(result, numbers):
    """Return numbers as the volume's cuts use them."""
    units = Units(round(-np.log2(result.unit)), result.bits)
    return np.ldexp(units.of(np.asarray(numbers)).astype(float), -units.exponent)


@given(seeds)
@settings(max_examples=20)
def test_labels_are_those_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 4))
    shape = tuple(rng.integers(1, {1: 60, 2: 14, 3: 7}[axes] + 1, axes).tolist())
    # Multiples of 1/8 have ties; other numbers lose digits.
    unary = rng.integers(-8, 9, shape) / 8 * (rng.random(shape) < rng.choice([0.3, 1.0]))
    unary *= rng.choice([1.0, rng.random()])
    forced = rng.random(shape) < rng.choice([0.0, 0.1])
    unary[forced] = rng.choice([-np.inf, np.inf], forced.sum())
    smoothness = rng.integers(0, 7) / 8 * rng.choice([1.0, rng.random()])
    spacing = None if rng.random() < 0.5 else rng.choice([0.5, 1.0, 3.0], axes)
    connectivity = int(rng.choice(NEIGHBOURS[axes]))
    block = rng.integers(2, {1: 30, 2: 8, 3: 5}[axes] + 1, axes).tolist()
    options = VolumeOptions(connectivity=connectivity, block=block, sweeps=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_volume_search, "BUDGET", int(rng.choice([0, 5, 1 << 20])))
        result = solve_map(unary, smoothness=smoothness, spacing=spacing, options=options, n_jobs=1)
    strengths = strengths_of(smoothness, spacing, connectivity, axes)
    rounded = in_memory(in_units(result, unary), in_units(result, strengths), connectivity)
    labels = result.labels[:].ravel()
    assert labels.max() <= 1
    if result.proved:
        np.testing.assert_array_equal(labels, rounded.labels)
    whole = in_memory(unary, strengths, connectivity)
    # The value is that of the labels, forbidden ones aside, and no labelling is below the bound.
    taken = np.where(np.isinf(unary), 0.0, unary).ravel() @ labels
    steps, given_labels = directions(connectivity, axes), result.labels[:]
    for step, strength in zip(steps, strengths, strict=True):
        first, second = pair_slices(shape, step)
        taken += strength * np.count_nonzero(given_labels[first] != given_labels[second])
    tiny = 1e-12 * (1 + np.abs(unary[np.isfinite(unary)]).sum())
    assert abs(taken - result.value) < tiny
    assert result.bound <= whole.value + tiny
    assert result.value >= whole.value - tiny
    if result.proved:
        assert result.value <= whole.value + result.gap + tiny


def test_noise_ends_with_a_proof_by_sweeps_or_with_a_true_gap(monkeypatch):
    monkeypatch.setattr(_volume_search, "BUDGET", 50)
    unary = np.random.default_rng(1).integers(-64, 65, (12, 12, 12)) / 32
    whole = in_memory(unary, [1.0] * 3, 6)
    proved = {}
    for sweeps in (0, 2, 60):
        options = VolumeOptions(block=8, sweeps=sweeps)
        result = solve_map(unary, options=options, n_jobs=1)
        assert result.n_open["blocks"] > 1000
        assert result.bound <= whole.value <= result.value
        assert result.proved == (result.gap == 0)
        proved[sweeps] = result
    assert not proved[0].proved
    assert "0 sweeps" in proved[0].reason
    assert proved[0].bound <= proved[2].bound <= proved[60].bound
    assert proved[60].proved
    assert proved[60].n_open["sweeps"] == 0
    np.testing.assert_array_equal(proved[60].labels[:].ravel(), whole.labels)


def test_labels_without_a_proof_are_never_taken_for_proved_ones(monkeypatch, tmp_path):
    """A call that ends while they are written leaves them; the next one does not trust them."""
    monkeypatch.setattr(_volume_search, "BUDGET", 50)
    unary = np.random.default_rng(1).integers(-64, 65, (12, 12, 12)) / 32
    options = VolumeOptions(block=8, sweeps=1)
    arguments = {"store": tmp_path / "labels.zarr", "options": options, "n_jobs": 1}
    full = solve_map(unary, options=options, n_jobs=1)
    for stop_at in ("sweeps", "settled", "energy"):
        stopped = solve_map(unary, callback=lambda p, at=stop_at: p.round == at, **arguments)
        assert stopped.interrupted
        assert not stopped.proved
    result = solve_map(unary, **arguments)
    assert not result.proved
    assert (result.value, result.bound) == (full.value, full.bound)


@pytest.fixture(scope="module")
def scene():
    """A blob with noise in three dimensions, as costs, as probabilities and as an image."""
    rng = np.random.default_rng(0)
    z, y, x = np.indices((22, 24, 30))
    inside = (z - 11) ** 2 + (y - 12) ** 2 + (x - 15) ** 2 < 64
    image = np.clip(90 + 60 * inside + 20 * rng.standard_normal(inside.shape), 0, 255)
    marks = np.full(inside.shape, -1, np.int8)
    marks[10:12, 11:13, 8:22] = 1
    marks[0] = marks[:, 0] = 0
    return image.astype(np.uint8), marks, inside


def test_every_kind_of_array_holds_the_same_volume(scene, tmp_path):
    image, _, _ = scene
    unary = ((120.0 - image) / 32).astype(np.float32)
    zarr.save_array(tmp_path / "unary.zarr", unary)
    mapped = np.lib.format.open_memmap(tmp_path / "unary.npy", "w+", unary.dtype, unary.shape)
    mapped[...] = unary
    mapped.flush()
    options = VolumeOptions(block=16)
    results = [
        solve_map(volume, smoothness=0.75, options=options)
        for volume in (
            unary,
            unary[None, None],
            np.asfortranarray(unary.astype(np.float64)),
            mapped,
            tmp_path / "unary.zarr",
            zarr.open(tmp_path / "unary.zarr"),
            da.from_array(unary, chunks=9),
        )
    ]
    whole = in_memory(unary.astype(float), [0.75] * 3, 6)
    for result in results:
        np.testing.assert_array_equal(result.labels[:].ravel(), whole.labels)
        assert result.exact
        assert result.value == pytest.approx(whole.value, rel=1e-12)
    assert results[0].blocks["corner"].tolist()[1] == [0, 0, 16]
    assert results[0].blocks["open"].sum() == results[0].n_open["blocks"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.uint16])
def test_probabilities_are_costs_by_their_logarithms(dtype):
    rng = np.random.default_rng(0)
    likely = rng.random((20, 21))
    likely[0, :2] = 0.0, 1.0
    largest = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    given_numbers = (likely * largest).astype(dtype)
    result = solve_map(given_numbers, kind="probabilities", options=VolumeOptions(connectivity=8))
    p = np.clip(given_numbers.astype(float) / largest, 1e-6, 1 - 1e-6)
    unary = np.log1p(-p) - np.log(p)
    whole = in_memory(unary, strengths_of(1.0, None, 8, 2), 8)
    assert result.proved
    assert result.value == pytest.approx(whole.value, rel=1e-9)
    assert result.relative_gap < 1e-6


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_an_image_has_costs_by_its_seeds_and_weights_by_its_contrast(scene, dtype):
    image, marks, inside = scene
    image = image.astype(dtype)
    arguments = {"kind": "image", "seeds": marks, "smoothness": 2.0}
    results = [
        solve_map(image, **arguments, options=VolumeOptions(block=block)) for block in (64, 14)
    ]
    labels = results[0].labels[:]
    np.testing.assert_array_equal(labels, results[1].labels[:])
    assert results[0].value == pytest.approx(results[1].value, rel=1e-12)
    np.testing.assert_array_equal(labels[marks >= 0], marks[marks >= 0])
    assert (labels == inside).mean() > 0.97
    # The weights are those of ``contrast_weights``, whose normaliser a pass has found.
    energy = results[1]._energy
    edges = fields.grid_edges(image.shape, 6)
    weights = 2.0 * fields.contrast_weights(image, edges, channels=False)
    box = tuple(slice(0, side) for side in image.shape)
    block = energy.block(box)
    flat = [
        block.weights[k][pair_slices(image.shape, step)[0]].ravel()
        for k, step in enumerate(energy.pairs.steps)
    ]
    np.testing.assert_allclose(np.concatenate(flat) * results[1].unit, weights, atol=1e-6)


def test_contrast_of_another_image(scene):
    image, marks, _ = scene
    unary = (120.0 - image) / 32
    options = VolumeOptions(block=(9, 30, 12), beta=1e-3, connectivity=26)
    result = solve_map(unary, image=image, seeds=marks, spacing=(2, 1, 1), options=options)
    forced = np.where(marks < 0, unary, np.where(marks == 1, -np.inf, np.inf))
    falls = []
    for step in directions(26, 3):
        first, second = pair_slices(image.shape, step)
        change = np.zeros(image.shape)
        change[first] = np.subtract(image[first], image[second], dtype=float)
        falls.append(np.exp(-1e-3 * change**2))
    whole = in_memory(forced, strengths_of(1.0, (2, 1, 1), 26, 3), 26, falls)
    np.testing.assert_array_equal(result.labels[:].ravel(), whole.labels)


def test_sixty_four_bits_where_thirty_two_lose_too_much():
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(14, 15)) * np.exp(-12 * rng.random((14, 15)))
    unary[0, 0], unary[-1, -1] = 1.0, -1.0
    soft = solve_map(unary, smoothness=1e-3, options=VolumeOptions(block=8))
    assert soft.bits == 32
    assert soft.relative_gap < 1e-6
    stiff = 1e-8 * unary
    stiff[:4, :4] = 1e3
    result = solve_map(stiff, smoothness=1.0, options=VolumeOptions(block=8))
    assert result.bits == 64
    assert result.proved
    rounded = in_memory(in_units(result, stiff), in_units(result, [1.0, 1.0]), 4)
    np.testing.assert_array_equal(result.labels[:].ravel(), rounded.labels)


@pytest.mark.parametrize("bits", [32, 64])
@given(st.floats(1e-30, 1e30))
def test_units_leave_room_for_a_flow(bits, strength):
    units = units_for(np.array([strength, strength / 3]), bits)
    incident = 2 * (units.of(strength) + units.of(strength / 3))
    assert incident < units.limit / 2
    assert 4 * units.limit <= (2**32 if bits == 32 else 2**39)
    assert units.of(strength) > units.limit / 32


def test_an_interrupted_call_goes_on_from_the_store(scene, tmp_path):
    unary = (120.0 - scene[0]) / 32
    arguments = {"store": tmp_path / "labels.zarr", "options": VolumeOptions(block=10), "n_jobs": 1}
    whole = solve_map(unary, options=arguments["options"])
    solved = []

    def stop_at(share):
        return lambda progress: solved.append(progress) or progress.done >= share * progress.total

    for share in (0.2, 0.5, 0.9):
        result = solve_map(unary, callback=stop_at(share), **arguments)
        assert result.interrupted
        assert not result.proved
        assert result.value == np.inf
        assert "call again" in result.reason
        assert (result.labels[:] == 2).any()
    assert str(solved[0]).startswith("blocks: 1 of 27 blocks, ")
    result = solve_map(unary, callback=lambda p: solved.append(p), **arguments)
    numbers = [p.done for p in solved if p.round == "blocks"]
    assert numbers == sorted(set(numbers)), "no block is solved twice"
    np.testing.assert_array_equal(result.labels[:], whole.labels[:])
    assert (result.value, result.n_open) == (whole.value, whole.n_open)
    again = solve_map(unary, callback=lambda p: pytest.fail("all was done"), **arguments)
    assert (again.value, again.bound, again.exact) == (whole.value, whole.bound, True)


def test_a_time_limit(scene, tmp_path):
    unary = (120.0 - scene[0]) / 32
    result = solve_map(unary, tmp_path / "labels.zarr", time_limit=0.0)
    assert result.interrupted
    assert "time_limit of 0 s reached" in result.reason
    assert solve_map(unary, tmp_path / "labels.zarr").proved


def test_control_c_ends_the_threads(scene, tmp_path):
    def interrupt(progress):
        raise KeyboardInterrupt

    before = threading.active_count()
    result = solve_map(
        (120.0 - scene[0]) / 32, callback=interrupt, options=VolumeOptions(block=10), n_jobs=2
    )
    assert result.interrupted
    assert result.reason.startswith("interrupted")
    assert threading.active_count() <= before + 1  # the loop of zarr


def test_other_settings_or_another_volume_are_refused(scene, tmp_path):
    unary = (120.0 - scene[0]) / 32
    store = tmp_path / "labels.zarr"
    solve_map(unary, store)
    for other, words in (
        (lambda: solve_map(unary, store, smoothness=2.0), "strengths"),
        (lambda: solve_map(unary + 1, store), "volume"),
        (lambda: solve_map(unary, store, options=VolumeOptions(block=8)), "block"),
        (lambda: solve_map(unary[:-1], store), "shape"),
    ):
        with pytest.raises(ValueError, match=f"same volume and settings, got {words}"):
            other()
    zarr.save_array(tmp_path / "mine.zarr" / "array", np.zeros(3))
    zarr.open_group(tmp_path / "mine.zarr", mode="a")
    with pytest.raises(ValueError, match="store must be empty or of an earlier solve_map"):
        solve_map(unary, tmp_path / "mine.zarr")


def chunks_of(store):
    return sorted(path for path in (Path(store) / "0" / "c").rglob("*") if path.is_file())


@pytest.mark.parametrize("damage", ["cut short", "removed"])
def test_damaged_labels_are_named_and_solved_again(scene, tmp_path, damage):
    unary = (120.0 - scene[0]) / 32
    options, store = VolumeOptions(block=10), tmp_path / "labels.zarr"
    whole = solve_map(unary, options=options)
    solve_map(unary, store, options=options, callback=lambda p: p.round == "energy")
    chunk = chunks_of(store)[7]
    if damage == "removed":
        chunk.unlink()
    else:
        chunk.write_bytes(chunk.read_bytes()[:-3])
    with pytest.raises(OSError, match=r"^block \d+ \(voxels \[.*\]\): .*the next call") as error:
        solve_map(unary, store, options=options)
    assert "\n" not in str(error.value)
    result = solve_map(unary, store, options=options)
    np.testing.assert_array_equal(result.labels[:], whole.labels[:])
    assert result.value == whole.value
    assert result.proved


def test_a_block_that_cannot_be_read_is_named_and_the_others_stay(scene, tmp_path, monkeypatch):
    monkeypatch.setattr(_volume_search, "_TRIAL", {3: 4})
    unary = (120.0 - scene[0]) / 32
    options = VolumeOptions(block=10)
    zarr.save_array(tmp_path / "unary.zarr", unary)
    array = zarr.open_array(tmp_path / "unary.zarr", mode="r+")
    array[9, 15, 15] = np.nan
    store = tmp_path / "labels.zarr"
    words = r"block 4 \(voxels \[0:10, 10:20, 10:20\]\): volume must hold numbers, got nan"
    with pytest.raises(ValueError, match=words):
        solve_map(array, store, options=options, n_jobs=1)
    array[9, 15, 15] = unary[9, 15, 15]
    done = []
    result = solve_map(array, store, options=options, n_jobs=1, callback=done.append)
    assert done[0].done == 5
    np.testing.assert_array_equal(result.labels[:], solve_map(unary).labels[:])


def test_a_full_disk_is_one_sentence_and_the_next_call_goes_on(scene, tmp_path, monkeypatch):
    from setwise.dask._volumes._label_store import LabelStore

    unary = (120.0 - scene[0]) / 32
    options, store, left = VolumeOptions(block=10), tmp_path / "labels.zarr", [5]
    write = LabelStore.write

    def full(self, window, labels):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        write(self, window, labels)

    monkeypatch.setattr(LabelStore, "write", full)
    with pytest.raises(OSError, match=r"block 5 \(.*No space left on device; what is written"):
        solve_map(unary, store, options=options, n_jobs=1)
    monkeypatch.undo()
    done = []
    result = solve_map(unary, store, options=options, n_jobs=1, callback=done.append)
    assert done[0].done == 6
    assert result.proved


def write_ome(path, array, axes, version="0.5", scale=None, **more):
    group = zarr.open_group(path, mode="w", zarr_format=3 if version == "0.5" else 2)
    group.create_array("s0", data=array, chunks=(8,) * array.ndim)
    scale = [1.0] * array.ndim if scale is None else scale
    steps = [{"type": "scale", "scale": scale}]
    image = {"axes": axes, "datasets": [{"path": "s0", "coordinateTransformations": steps}]}
    image |= more
    entry = {"version": version, "multiscales": [image]}
    group.attrs.update({"ome": entry} if version == "0.5" else {"multiscales": [image]})
    return path


SPACE = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_ome_zarr_is_read_and_written(scene, tmp_path, version):
    unary = (120.0 - scene[0]) / 32
    axes = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}, *SPACE]
    path = write_ome(
        tmp_path / "in.zarr", unary[None, None], axes, version, [1.0, 1.0, 2.0, 0.5, 0.5]
    )
    store = tmp_path / "labels.zarr"
    result = solve_map(path, store, options=VolumeOptions(block=12))
    same = solve_map(unary, spacing=(2.0, 0.5, 0.5))
    np.testing.assert_array_equal(result.labels[:], same.labels[:])
    written = zarr.open_group(store, mode="r")
    found = read_ome(written, "labels")
    assert found.spacing == (2.0, 0.5, 0.5)
    assert found.unit == "micrometer"
    np.testing.assert_array_equal(found.array[:], same.labels[:])
    (image,) = json.loads((store / "zarr.json").read_text())["attributes"]["ome"]["multiscales"]
    assert [axis["name"] for axis in image["axes"]] == ["z", "y", "x"]


def test_an_ome_zarr_group_that_is_not_whole_is_refused_in_one_sentence(scene, tmp_path):
    unary = (120.0 - scene[0]) / 32
    path = tmp_path / "in.zarr"
    zarr.open_group(path, mode="w")
    with pytest.raises(ValueError, match=r"must be an OME-Zarr image, got a group .* without"):
        solve_map(path)
    write_ome(path, unary, SPACE[1:])
    with pytest.raises(ValueError, match="an axis for each of its sides, got 2 axes"):
        solve_map(path)
    write_ome(path, unary, [*SPACE[:2], {"name": "c", "type": "channel"}])
    with pytest.raises(ValueError, match="whose last axes are those of space"):
        solve_map(path)
    write_ome(path, np.stack([unary] * 2), [{"name": "c", "type": "channel"}, *SPACE])
    with pytest.raises(ValueError, match="one entry along axis 'c', got 2"):
        solve_map(path)
    write_ome(path, unary, SPACE, datasets=[{"path": "s1"}])
    with pytest.raises(ValueError, match="without its array 's1'"):
        solve_map(path)
    with pytest.raises(ValueError, match=r"which zarr cannot open"):
        solve_map(tmp_path / "nothing.zarr")


GREY = np.zeros((4, 4), np.uint8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: solve_map(GREY, spacing=0.0), "spacing must be positive and finite"),
        (lambda: solve_map(GREY, spacing=(1, np.inf)), "spacing must"),
        (lambda: solve_map(GREY, spacing=(1, 1, 1)), "spacing must have 2 entries"),
        (lambda: solve_map(GREY, smoothness=-1), "smoothness must"),
        (lambda: solve_map(np.zeros((0, 3))), "volume must have at least one voxel"),
        (lambda: solve_map(np.zeros((2,) * 4)), "one to three axes"),
        (lambda: solve_map(GREY, kind="costs"), "kind must be"),
        (lambda: solve_map(GREY, kind="image"), "seeds must be given"),
        (lambda: solve_map(GREY, kind="image", image=GREY, seeds=GREY), "image must be left out"),
        (lambda: solve_map(GREY, image=np.zeros((4, 5))), "image must have the shape"),
        (lambda: solve_map(GREY, seeds=np.full((4, 4), 7)), "seeds must hold 0, 1, or -1"),
        (lambda: solve_map(GREY, kind="image", seeds=GREY), "got none of label 1"),
        (lambda: solve_map(GREY + 0.5, kind="probabilities"), ""),
        (lambda: solve_map(GREY + 1.5, kind="probabilities"), "must hold probabilities"),
        (lambda: solve_map(GREY, options=VolumeOptions(connectivity=6)), "connectivity must be 4"),
        (lambda: solve_map(GREY, options=VolumeOptions(block=0)), "block must"),
        (lambda: solve_map(GREY, options=VolumeOptions(block=(2, 2, 2))), "block must have 2"),
        (lambda: solve_map(GREY, time_limit=-1), "time_limit must"),
    ],
)
def test_wrong_arguments_are_refused_in_one_sentence(call, words):
    if not words:
        assert call().proved
        return
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)


def test_wrong_types_are_refused_in_one_sentence(client):
    for call, words in (
        (lambda: solve_map(GREY, options=3), "options must be a VolumeOptions"),
        (lambda: solve_map(GREY, seeds=GREY + 0.5), "seeds must hold integers"),
        (lambda: solve_map(np.array(["a"])), "volume must hold real numbers"),
        (lambda: solve_map(GREY, client=3), "client must be a distributed.Client"),
        (lambda: solve_map(GREY, client=client), "volume must be an array of zarr or dask"),
        (lambda: solve_map(da.zeros((4, 4)), client=client), "store must be given"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


def test_strokes_on_the_result(scene, tmp_path):
    """Edited labels are those of the whole with the same seeds, and no longer solved ones."""
    image, marks, _ = scene
    unary, store = (120.0 - image) / 32, tmp_path / "labels.zarr"
    arguments = {"image": image, "seeds": marks, "options": VolumeOptions(block=12)}
    result = solve_map(unary, store, **arguments)
    cut = result.edit(n_jobs=1)
    assert cut.proved
    stroke = np.argwhere(np.ones((2, 3, 3))) + np.array([4, 15, 22])
    update = cut.add_seeds(stroke, 1)
    assert update.proved
    assert update.n_changed > 0
    more = marks.copy()
    more[tuple(stroke.T)] = 1
    whole = solve_map(unary, **{**arguments, "seeds": more})
    np.testing.assert_array_equal(result.labels[:], whole.labels[:])
    with pytest.raises(ValueError, match="labels that were not edited"):
        solve_map(unary, store, **arguments)
    stopped = solve_map(unary, callback=lambda p: True)
    with pytest.raises(ValueError, match="labels must be proved before they are edited"):
        stopped.edit()


@pytest.mark.parametrize("how", [None, "one", "killed", "restarted"])
def test_workers_that_die_change_nothing(client, cluster, tmp_path, how):
    rng = np.random.default_rng(0)
    unary = (rng.normal(size=(24, 24, 24)) - 0.1).astype(np.float32)
    zarr.save_array(tmp_path / "unary.zarr", unary)
    options = VolumeOptions(block=12)
    lost = []

    def lose(progress):
        if how is not None and progress.done == 3 and not lost:
            lost.append(how)
            if how == "one":
                kill_workers(client, 1)
            else:
                lose_all_workers(how, client, cluster)

    result = solve_map(
        tmp_path / "unary.zarr",
        tmp_path / "labels.zarr",
        smoothness=0.3,
        options=options,
        client=client,
        callback=lose,
    )
    whole = solve_map(unary, smoothness=0.3, options=options)
    np.testing.assert_array_equal(result.labels[:], whole.labels[:])
    assert (result.value, result.bound, result.n_open) == (whole.value, whole.bound, whole.n_open)
    assert result.peak_memory > 0
    assert result.processor_seconds > 0
    assert (how is None) == (not lost)


def test_a_dask_array_is_computed_on_the_workers(client, tmp_path):
    volume = da.random.default_rng(0).normal(size=(20, 20, 20), chunks=7) - 0.1
    result = solve_map(
        volume, tmp_path / "labels.zarr", options=VolumeOptions(block=10), client=client
    )
    whole = solve_map(volume.compute(scheduler="sync"))
    np.testing.assert_array_equal(result.labels[:], whole.labels[:])


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_the_package_ome_zarr_agrees(scene, tmp_path, version):
    """It writes groups that are read here, and reads those that are written here."""
    pytest.importorskip("ome_zarr")
    from ome_zarr import format as formats
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Label, Reader
    from ome_zarr.writer import write_image

    unary = ((120.0 - scene[0]) / 32).astype(np.float32)
    kind = formats.FormatV04() if version == "0.4" else formats.FormatV05()
    write_image(unary, str(tmp_path / "in.zarr"), axes="zyx", fmt=kind)
    result = solve_map(tmp_path / "in.zarr", tmp_path / "labels.zarr")
    np.testing.assert_array_equal(result.labels[:], solve_map(unary).labels[:])
    (node,) = Reader(parse_url(tmp_path / "labels.zarr", mode="r"))()
    assert any(isinstance(spec, Label) for spec in node.specs)
    np.testing.assert_array_equal(np.asarray(node.data[0]), result.labels[:])
