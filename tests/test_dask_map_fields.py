"""Many images over dask: each with its certificate, whatever happens to some of them."""

import os
import signal
import tempfile
import warnings
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask_cluster import (  # noqa: F401
    _time_limit,
    kill_a_worker,
    lose_all_workers,
    without_workers,
)

import setwise as sw
from setwise.dask import map_fields
from setwise.dask._maps._field_results import FieldResults, FieldRow

IMAGES = np.random.default_rng(0).normal(size=(6, 5, 4))
TASKS = {
    "map": {},
    "marginals": {"tol": 1e-4},
    "diverse": {"m": 2, "diversity": sw.diversities.HammingBall(2.0, 0.2)},
    "decide": {"loss": "jaccard", "tol": 1e-4},
}


def build(image):
    unary = np.stack([image.ravel(), -image.ravel()], axis=1)
    edges = sw.fields.grid_edges(image.shape)
    return sw.fields.Field(unary) + sw.fields.Potts(edges, 0.5), image.shape


def build_of_probabilities(image):
    """The mistake that a field warns of, and another one in the last image."""
    likely = 1.0 / (1.0 + np.exp(image.ravel()))
    if image[0, 0] == IMAGES[5, 0, 0]:
        return sw.fields.Field(np.zeros((1, 300)))
    return sw.fields.Field(np.stack([likely, 1.0 - likely], axis=1)), image.shape


@pytest.mark.parametrize("on_a_cluster", [False, True])
def test_each_warning_is_given_once_a_call_not_once_an_image(on_a_cluster, request):
    held = request.getfixturevalue("client") if on_a_cluster else None
    for _ in range(2):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            results = map_fields(build_of_probabilities, IMAGES, client=held).compute()
        told = sorted(str(w.message).partition(": ")[2] for w in given)
        assert len(told) == 2
        assert told[0].startswith("unary has 1 variables with 300 labels each")
        assert told[1].startswith("unary looks like probabilities, as each row sums to 1")
        assert all(w.filename == __file__ for w in given)
        assert all(str(w.message).startswith("image ") for w in given)
        assert len(results.failed) == 0


def build_of_name(name):
    if "missing" in name:
        raise FileNotFoundError(f"no {name}")
    return build(IMAGES[int(name[5])])


def counted(path, image):
    """Leaves a file for every call, so that they can be counted."""
    os.close(tempfile.mkstemp(dir=path)[0])
    return build(image)


@pytest.mark.parametrize("task", TASKS)
def test_answers_are_those_of_one_call_an_image(task):
    results = map_fields(build, IMAGES, task, **TASKS[task]).compute()
    assert [row.image for row in results.rows] == list(range(6))
    for image, row in zip(IMAGES, results.rows, strict=True):
        field, _ = build(image)
        found = results[row.image]
        if task == "map":
            best = sw.solve_map(field)
            assert np.array_equal(found["labels"].ravel(), best.labels)
            assert (row.value, row.bound, row.gap, row.proved) == (
                best.value,
                best.bound,
                best.gap,
                best.exact,
            )
        else:
            post = sw.marginals(field, tol=1e-4, n_jobs=1)
            if task == "marginals":
                assert np.array_equal(found["probabilities"].reshape(-1, 2), post.probabilities)
                assert row.gap == post.gap
            elif task == "decide":
                decision = sw.decide(post.probabilities[:, 1], "jaccard")
                assert np.array_equal(found["mask"].ravel(), decision.mask)
                assert row.value == decision.expected
            else:
                listed = sw.diverse(field, 2, TASKS[task]["diversity"])
                assert np.array_equal(found["labelings"].reshape(2, -1), listed.labelings)
                assert found["labelings"].shape == (2, 5, 4)
        assert row.gap >= 0
        assert row.error is None
        assert row.seconds > 0
    assert results.stacked(next(iter(found))).shape[0] == 6
    assert f"{task} of 6 images: 6 done" in results.summary()
    assert results.to_frame().shape[0] == 6


def test_arrays_of_every_kind_delayed_objects_and_names(tmp_path):
    xarray = pytest.importorskip("xarray")
    expected = map_fields(build, IMAGES).compute().stacked("labels")
    stored = zarr.create_array(tmp_path / "images.zarr", data=IMAGES, chunks=(2, 5, 4))
    spread = da.from_array(IMAGES, chunks=((1, 0, 3, 2), 3, 2))
    for images in (
        stored,
        spread,
        spread[spread[:, 0, 0] > -9],  # of unknown length
        xarray.DataArray(spread),
        xarray.DataArray(IMAGES),
        [dask.delayed(np.asarray)(image) for image in IMAGES],
        list(IMAGES),
    ):
        assert np.array_equal(map_fields(build, images).compute().stacked("labels"), expected)
    names = [f"image{k}.png" for k in range(6)]
    results = map_fields(build_of_name, names).compute()
    assert np.array_equal(results.stacked("labels"), expected)
    assert [row.name for row in results.rows] == names


def test_an_image_that_fails_is_a_row_with_its_error():
    names = ["image0", "missing1", "image2"]
    results = map_fields(build_of_name, names).compute()
    assert [row.error for row in results.rows] == [
        None,
        "FileNotFoundError: no missing1",
        None,
    ]
    assert results.n_proved == 2
    assert results.look_at()[0].name == "missing1"
    assert "1 failed" in results.summary()
    assert np.isnan(results.rows[1].value)
    options = {"method": "trees", "max_iter": 1, "tol": 1e-12}
    loose = map_fields(build, IMAGES, "marginals", **options).compute()
    assert loose.n_proved == 0
    gaps = [row.relative_gap for row in loose.largest_gaps(6)]
    assert gaps == sorted(gaps, reverse=True)


def test_a_rerun_does_what_is_left(tmp_path):
    calls, store = tmp_path / "calls", str(tmp_path / "out.zarr")
    calls.mkdir()
    lazy = map_fields(partial(counted, str(calls)), IMAGES, store=store)
    some = lazy.compute(callback=lambda row: row.image == 2)
    assert [row.image for row in some.rows] == [0, 1, 2]
    assert len(os.listdir(calls)) == 3
    every = lazy.compute()
    assert len(os.listdir(calls)) == 6
    assert every.rows[:3] == some.rows  # seconds and all: read, not made again
    expected = map_fields(build, IMAGES).compute().stacked("labels")
    assert np.array_equal(every.stacked("labels"), expected)
    # What failed is tried again.
    broken = str(tmp_path / "broken.zarr")
    names = ["missing0", "image1"]
    assert len(map_fields(build_of_name, names, store=broken).compute().failed) == 1
    again = map_fields(lambda _: build(IMAGES[0]), names, store=broken).compute()
    assert not again.failed


def damage(path, how):
    """Truncate a file, remove it or write other bytes of the same length into it."""
    data = path.read_bytes()
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes(data[: len(data) // 2] if how == "cut" else bytes(len(data)))


@pytest.mark.parametrize("how", ["cut", "zeros", "removed"])
@pytest.mark.parametrize("part", ["zarr.json", "labels/zarr.json", "labels/c/0/0"])
def test_what_is_damaged_in_a_store_is_reported_by_name_and_made_anew(tmp_path, part, how):
    calls, store = tmp_path / "calls", tmp_path / "out.zarr"
    calls.mkdir()
    names = [f"image{k}.png" for k in range(6)]
    lazy = map_fields(partial(counted, str(calls)), IMAGES, store=str(store), names=names)
    results = lazy.compute()
    expected = results.stacked("labels")
    damage(store / "00000003" / part, how)
    # Reading it again says which image it is.
    if (part, how) != ("zarr.json", "removed"):
        with pytest.raises(ValueError, match=r"store must hold the answer for image image3\.png"):
            results.stacked("labels")
    again = lazy.compute()
    assert len(os.listdir(calls)) == 7
    assert np.array_equal(again.stacked("labels"), expected)
    assert len(again.rows) == again.n_proved == 6


def test_a_damaged_root_of_a_store_gets_a_sentence(tmp_path):
    lazy = map_fields(build, IMAGES, store=str(tmp_path / "out.zarr"))
    lazy.compute()
    damage(tmp_path / "out.zarr" / "zarr.json", "cut")
    with pytest.raises(ValueError, match=r"store must be a zarr group, got .*out\.zarr"):
        lazy.compute()


def test_bits_on_a_cluster_and_kill_9_in_the_middle(client, tmp_path):
    expected = map_fields(build, list(IMAGES), "marginals", tol=1e-4)._job
    local = [expected([image], [k], [str(k)])[0].arrays for k, image in enumerate(IMAGES)]
    images = da.from_array(IMAGES, chunks=(2, 5, 4))
    killed = []

    def kill(row):
        if not killed:
            kill_a_worker(client)
            killed.append(row.image)

    results = map_fields(
        build, images, "marginals", store=str(tmp_path / "out.zarr"), tol=1e-4
    ).compute(callback=kill)
    assert killed
    assert len(results.rows) == 6
    for k in range(6):
        assert np.array_equal(results[k]["probabilities"], local[k]["probabilities"])


@pytest.mark.parametrize("how", ["killed", "restarted", "none for a time"])
def test_the_loss_of_all_workers_loses_no_image(client, cluster, how):
    lost = []

    def lose(row):
        if not lost:
            lost.append(row.image)
            lose_all_workers(how, client, cluster)

    results = map_fields(build, list(IMAGES)).compute(callback=lose)
    assert lost
    assert [row.error for row in results.rows] == [None] * 6


def test_a_map_without_workers_ends_with_a_sentence(client, cluster):
    without_workers(client, cluster)
    try:
        with (
            dask.config.set({"distributed.scheduler.no-workers-timeout": "0.2s"}),
            pytest.raises(TimeoutError, match="the cluster must have workers, got none for 200"),
        ):
            map_fields(build, IMAGES).compute()
    finally:
        cluster.scale(2)


def deadly(image):
    if image[0, 0] == 99.0:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    return build(image)


def test_an_image_that_ends_every_worker_that_takes_it_is_a_row(client):
    images = IMAGES[:3].copy()
    images[1, 0, 0] = 99.0
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    results = map_fields(deadly, da.from_array(images, chunks=(3, 5, 4))).compute()
    assert [row.error is None for row in results.rows] == [True, False, True]
    assert results.rows[1].error.startswith("KilledWorker")
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((3, IMAGES), {}, "build must be a function"),
        ((build, 3), {}, "images must be a sequence of images, got int"),
        ((build, np.zeros(3)), {}, "images must have shape"),
        ((build, IMAGES, "maps"), {}, "task must be one of 'map', 'marginals'"),
        ((build, IMAGES), {"tolerance": 1}, "options of task='map' must be among"),
        ((build, IMAGES, "decide"), {}, "loss must be given for task='decide'"),
        ((build, IMAGES, "diverse"), {}, "m must be given for task='diverse'"),
        ((build, IMAGES), {"names": ["a"]}, "names must be 6 words"),
        ((build, IMAGES), {"client": 3}, r"client must be a distributed\.Client"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        map_fields(*arguments, **options)


def test_stores_and_shapes_that_do_not_fit_get_a_sentence(tmp_path):
    store = str(tmp_path / "out.zarr")
    map_fields(build, IMAGES[:2], store=store).compute()
    with pytest.raises(ValueError, match="store must be of the same task and number of images"):
        map_fields(build, IMAGES, store=store).compute()
    zarr.create_array(tmp_path / "other.zarr" / "a", data=IMAGES)
    with pytest.raises(ValueError, match="store must be empty or of an earlier map_fields"):
        map_fields(build, IMAGES, store=str(tmp_path / "other.zarr")).compute()
    uneven = map_fields(build, [IMAGES[0], IMAGES[1, :3]]).compute()
    with pytest.raises(ValueError, match="images must be of one shape to be stacked"):
        uneven.stacked("labels")
    with pytest.raises(ValueError, match="key must be one of"):
        uneven.stacked("probabilities")
    not_a_field = map_fields(np.sum, IMAGES[:1]).compute()
    assert "build must return a Field" in not_a_field.rows[0].error


def test_a_row_survives_text_whatever_its_numbers_are():
    row = FieldRow(0, "a", 0.1 + 0.2, -np.inf, np.inf, np.inf, False, 1e-9, "why", None)
    assert FieldRow.of_text(row.as_text()) == row


def test_a_loop_over_results_ends():
    results = FieldResults([], "map", 2, {0: {}, 1: {}}, None)
    assert list(results) == [{}, {}]
    with pytest.raises(IndexError, match="image must lie between 0 and 1, got -1"):
        results[-1]
