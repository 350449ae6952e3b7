"""Learning on dask: the bits of one process, whatever happens to the workers."""

import os
import pickle
import signal
import threading
import time

import dask
import dask.array as da
import joblib
import numpy as np
import pytest
from dask_cluster import (  # noqa: F401
    Here,
    _time_limit,
    kill_a_worker,
    locally,
    lose_all_workers,
    rows,
    without_workers,
)
from distributed import Client
from distributed.utils import get_mp_context
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

import setwise as sw
from setwise.dask import DaskExecutor, DaskSetClassifier
from setwise.learning import Serial, tree_sum

X, Y = rows()
UNEVEN = (50, 0, 101, 1, 88)
HERE = locally(DaskSetClassifier)
FEW = {"tol": 0.2}  # rounds: each is a question to a cluster


def product(shard, w, own=0.0):
    return float((shard @ w).sum()) + own, shard.T @ (shard @ w)


def in_chunks(X, Y, sizes=UNEVEN):
    return da.from_array(X, chunks=(sizes, -1)), da.from_array(Y, chunks=(sizes, *Y.shape[1:]))


def same_fit(a, b):
    assert np.array_equal(a.coef_, b.coef_)
    assert np.array_equal(a.intercept_, b.intercept_)
    assert np.array_equal(a.history_.primal, b.history_.primal)
    assert np.array_equal(a.history_.dual, b.history_.dual)
    assert a.n_iter_ == b.n_iter_


@pytest.fixture(scope="module")
def local():
    return HERE(**FEW).fit(*in_chunks(X, Y))


def test_sums_have_the_bits_of_serial_for_any_number_of_shards(client):
    rng = np.random.default_rng(1)
    shards = [rng.normal(size=(rng.integers(1, 300), 7)) for _ in range(19)]
    own = rng.normal(size=19)
    w = rng.normal(size=7)
    executor = DaskExecutor(client)
    for n in (1, 19):
        placed = executor.place(shards[:n])
        with threadpool_limits(1, user_api="blas"):
            answers = Serial().map(product, shards[:n], w)
            for most in (1, 5):
                serial = Serial().sums(product, shards[:n], w, most=most)
                found = executor.sums(product, placed, w, most=most)
                assert len(serial) <= most
                for a, b in zip(found, serial, strict=True):
                    assert a[0] == b[0]
                    assert np.array_equal(a[1], b[1])
                assert tree_sum(found)[0] == tree_sum(answers)[0]
            each = executor.sums(product, placed, w, each=own[:n])[0]
            assert each[0] == Serial().sums(product, shards[:n], w, each=own[:n])[0][0]
        mapped = executor.map(product, placed, w)
        assert [a for a, _ in mapped] == [a for a, _ in answers]


def test_large_weights_are_sent_once_and_summed_on_the_workers_alike(client):
    rng = np.random.default_rng(2)
    shards = [rng.normal(size=(3, 5000)) for _ in range(11)]
    w = rng.normal(size=5000)
    executor = DaskExecutor(client)
    placed = executor.place(shards)
    with threadpool_limits(1, user_api="blas"):
        for most in (1, 3):
            serial = Serial().sums(product, shards, w, most=most)
            for a, b in zip(executor.sums(product, placed, w, most=most), serial, strict=True):
                assert a[0] == b[0]
                assert np.array_equal(a[1], b[1])


def test_a_fit_has_the_bits_of_one_process_and_the_answer_of_a_local_one(client, local):
    dX, dY = in_chunks(X, Y)
    model = DaskSetClassifier(**FEW, planes=2).fit(dX, dY.rechunk((100, 2)))
    same_fit(model, HERE(**FEW, planes=2).fit(dX, dY))
    model = DaskSetClassifier(**FEW).fit(dX, dY.rechunk((100, 2)))
    same_fit(model, local)
    plain = sw.SetClassifier(**FEW).fit(X, Y)
    assert model.coef_ == pytest.approx(plain.coef_, abs=1e-9)
    assert model.client_ is client
    assert np.array_equal(model.predict(dX).compute(), model.to_local().predict(X))
    assert model.score(dX, dY) == pytest.approx(model.to_local().score(X, Y), abs=1e-12)
    assert isinstance(model.predict(dX), da.Array)  # nothing is computed before it is asked for


def test_kill_9_in_the_middle_of_a_fit_changes_no_bit(client, local):
    killed = []

    def kill(progress):
        if progress.n_iter == 3:
            kill_a_worker(client)
            killed.append(True)

    model = DaskSetClassifier(**FEW).fit(*in_chunks(X, Y), callback=kill)
    assert killed
    same_fit(model, local)


def test_restarts_in_the_middle_of_a_fit_change_no_bit(client, local):
    def restart(progress):
        if progress.n_iter == 3:
            client.restart(wait_for_workers=False)  # the scheduler forgets all it was told

    same_fit(DaskSetClassifier(**FEW).fit(*in_chunks(X, Y), callback=restart), local)


@pytest.mark.parametrize("how", ["killed", "restarted", "none for a time"])
def test_the_loss_of_all_workers_changes_no_bit(client, cluster, local, how, monkeypatch):
    monkeypatch.setattr("setwise.dask._worker_watch._INTERVAL", 0.1)
    lost = []

    def lose(progress):
        if progress.n_iter == 3:
            lose_all_workers(how, client, cluster)
            lost.append(how)

    same_fit(DaskSetClassifier(**FEW).fit(*in_chunks(X, Y), callback=lose), local)
    assert lost


def test_blocks_wait_for_no_worker_that_is_gone_before_they_are_placed(
    client, cluster, monkeypatch
):
    monkeypatch.setattr("setwise.dask._worker_watch._INTERVAL", 0.1)
    executor = DaskExecutor(client)
    # The second shard needs the first, and so falls due when all workers are gone.
    slow = dask.delayed(lambda: time.sleep(1.0) or 2)()
    placed = executor.place([slow, slow + 1, slow + 2])
    threading.Timer(0.2, lose_all_workers, ["none for a time", client, cluster]).start()
    assert executor.map(pow, placed, 2) == [4, 9, 16]


def test_a_cluster_without_workers_is_waited_for_as_long_as_dask_says(client, cluster):
    executor = DaskExecutor(client)
    placed = executor.place([1, 2])
    assert executor.map(pow, placed, 2) == [1, 4]
    without_workers(client, cluster)
    try:
        with (
            dask.config.set({"distributed.scheduler.no-workers-timeout": "0.2s"}),
            pytest.raises(TimeoutError, match="the cluster must have workers, got none for 200"),
        ):
            executor.map(pow, placed, 2)
    finally:
        cluster.scale(2)
    assert executor.map(pow, placed, 3) == [1, 8]


def test_a_client_that_is_closed_on_the_way_gets_a_sentence(cluster):
    client = Client(cluster, set_as_default=False)
    client.wait_for_workers(2, timeout=500)
    executor = DaskExecutor(client)
    placed = executor.place([1, 2])
    threading.Timer(0.5, client.close).start()
    with pytest.raises(RuntimeError, match="client must stay open until the call returns"):
        executor.map(lambda shard: time.sleep(2.0), placed)
    with pytest.raises(RuntimeError, match="client must stay open until the call returns"):
        executor.map(pow, placed, 2)  # between two rounds


def test_the_phases_before_the_rounds_are_shown_and_counted(capsys):
    dX, dY = in_chunks(X, Y)
    slow = dX.map_blocks(lambda part: time.sleep(0.05) or part, dtype=float)
    told = []
    model = HERE(**FEW, verbose=True)
    model.fit(slow, dY, callback=lambda now: told.append(now.seconds))
    assert told[0] >= 0.25  # five chunks
    assert model.history_.seconds.tolist() == told
    lines = capsys.readouterr().err.splitlines()
    for line, phase in zip(
        lines,
        ["reading the rows", "posing the problem of 240 rows", "searching the weights"],
        strict=False,
    ):
        assert line.endswith(f" s: {phase}")
    assert lines[3].startswith("round 1: ")


def test_a_slow_worker_and_one_that_joins_change_no_bit(client, cluster, local):
    slow = []

    def disturb(progress):
        if progress.n_iter == 3:
            address = next(iter(client.nthreads()))
            slow.append(client.submit(time.sleep, 0.5, workers=[address], pure=False))
        if progress.n_iter == 4:
            cluster.scale(3)
            client.wait_for_workers(3, timeout=500)

    try:
        same_fit(DaskSetClassifier(**FEW).fit(*in_chunks(X, Y), callback=disturb), local)
    finally:
        cluster.scale(2)


def fit_and_die(address):
    mine = Client(address, set_as_default=True)

    def die(progress):
        if progress.n_iter == 2:
            os._exit(3)

    DaskSetClassifier(client=mine, **FEW).fit(*in_chunks(X, Y), callback=die)


def test_a_client_that_goes_away_leaves_the_workers_to_others(client, cluster, local):
    other = get_mp_context().Process(
        target=fit_and_die, args=(cluster.scheduler_address,), daemon=True
    )
    other.start()
    other.join(40)
    assert other.exitcode == 3
    same_fit(DaskSetClassifier(**FEW).fit(*in_chunks(X, Y)), local)


def test_ctrl_c_ends_a_fit_with_the_best_weights_so_far(client):
    def interrupt(progress):
        if progress.n_iter == 2:
            for address in client.nthreads():
                client.submit(time.sleep, 1.0, workers=[address], pure=False, priority=10)
            threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()

    model = DaskSetClassifier(tol=1e-6).fit(*in_chunks(X, Y), callback=interrupt)
    assert model.interrupted_
    assert model.n_iter_ >= 2
    assert np.isfinite(model.coef_).all()


def test_searches_of_scikit_learn_run_on_the_workers(client):
    search = GridSearchCV(sw.SetClassifier(), {"C": [0.1, 1.0]}, cv=2, n_jobs=2)
    here = clone(search).fit(X, Y)
    with joblib.parallel_backend("dask"):
        there = clone(search).fit(X, Y)
    assert there.cv_results_["mean_test_score"].tolist() == (
        here.cv_results_["mean_test_score"].tolist()
    )
    assert np.array_equal(there.best_estimator_.coef_, here.best_estimator_.coef_)


def test_frames_unknown_chunks_and_sparse_blocks(local):
    import dask.dataframe as dd
    import pandas as pd

    dX, dY = in_chunks(X, Y)
    model = HERE(**FEW)
    unknown = dX[dX[:, 0] > -1e9], dY[dX[:, 0] > -1e9]
    same_fit(model.fit(*unknown), local)
    assert np.array_equal(model.predict(unknown[0]).compute(), local.to_local().predict(X))
    frame = dd.from_delayed(
        [
            dask.delayed(pd.DataFrame)(np.asarray(part), columns=list("abcde"))
            for part in np.split(X, np.cumsum(UNEVEN)[:-1])
        ],
        meta=pd.DataFrame(columns=list("abcde"), dtype=float),
    )
    same_fit(model.fit(frame, dY), local)
    assert model.feature_names_in_.tolist() == list("abcde")
    assert np.array_equal(model.predict(frame).compute(), local.to_local().predict(X))
    with pytest.raises(ValueError, match="X must have the columns of fit"):
        model.predict(frame[list("bacde")]).compute()
    sparse = dX.map_blocks(csr_matrix)
    model.fit(sparse, dY)
    assert model.coef_ == pytest.approx(local.coef_, abs=1e-9)
    assert np.array_equal(model.predict(sparse).compute(), local.to_local().predict(X))


def test_weights_groups_and_sets_over_the_whole_sample():
    weight = np.random.default_rng(3).integers(0, 3, len(X))
    sizes = (60, 100, 80)
    dX, dY = in_chunks(X, Y, sizes)
    dw = da.from_array(weight, chunks=(sizes,))
    y, dy = Y[:, 0], dY[:, 0]
    groups = np.arange(len(X)) // 20
    dg = da.from_array(groups, chunks=(sizes,))
    exact = {"C": 0.1, "tol": 1e-6}
    for arguments, plain, spread in (
        ({}, (X, Y, {}), (dX, dY, {})),
        ({"class_weight": {0: 1, 1: 2}}, (X, y, {"groups": groups}), (dX, dy, {"groups": dg})),
        ({}, (X, y, {}), (dX, dy, {})),
        ({"sets": "columns"}, (X, Y, {}), (dX, dY, {})),
        ({"sets": "cells", "loss": "dice"}, (X, Y, {}), (dX, dY, {})),
        ({"loss": "hamming"}, (X, y, {}), (dX, dy, {})),
    ):
        one = sw.SetClassifier(**arguments, **exact).fit(
            *plain[:2], sample_weight=weight, **plain[2]
        )
        many = HERE(**arguments, **exact).fit(*spread[:2], sample_weight=dw, **spread[2])
        assert many.coef_ == pytest.approx(one.coef_, abs=2e-3)
        assert many.score(*spread[:2], sample_weight=dw, **spread[2]) == pytest.approx(
            many.to_local().score(*plain[:2], sample_weight=weight, **plain[2]), abs=1e-12
        )


def test_several_planes_a_round_take_fewer_of_them():
    dX, dY = in_chunks(X, Y, (30,) * 8)
    one = HERE(tol=1e-5).fit(dX, dY)
    several = HERE(tol=1e-5, planes=8).fit(dX, dY)
    assert several.gap_ <= 1e-5
    assert several.n_iter_ < one.n_iter_
    low, high = several.history_.dual[-1], several.history_.primal[-1]
    assert low <= one.history_.primal[-1] * (1 + 1e-12)
    assert one.history_.dual[-1] <= high * (1 + 1e-12)


def test_clones_share_the_client_and_pickles_leave_it(client):

    model = DaskSetClassifier(client=client)
    assert clone(model).client is client
    assert pickle.loads(pickle.dumps(model)).client is None
    warm = HERE(warm_start=True).fit(*in_chunks(X, Y))
    rounds = warm.n_iter_
    assert warm.fit(*in_chunks(X, Y)).n_iter_ < rounds


@pytest.mark.parametrize(
    ("parameters", "change", "message"),
    [
        ({}, {"X": X}, "X must be a dask array, DataFrame or Series, got ndarray"),
        ({}, {"Y": Y}, "y must be a dask array, DataFrame or Series, got ndarray"),
        ({"planes": 0}, {}, "planes must be at least 1, got 0"),
        ({"planes": 2, "sets": "cells"}, {}, "planes must be 1 where a set reaches over"),
        ({"C": -1.0}, {}, "C must be positive"),
        ({"client": 3}, {}, "client must be a distributed.Client, got int"),
        ({}, {"groups": da.from_array(np.arange(240) // 7, chunks=60)}, "y must have shape"),
        ({}, {"sample_weight": da.zeros(240, chunks=60)}, "sample_weight must not be zero"),
        ({}, {"sample_weight": da.ones(239, chunks=60)}, "sample_weight must have 240 rows"),
        ({}, {"X": da.from_array(X * np.nan, chunks=(60, -1))}, "X contains NaN"),
        ({}, {"Y": da.zeros((240, 2, 2), chunks=60)}, "y must have shape .*, got 3 dimensions"),
        ({}, {"groups": da.zeros((240, 2), chunks=60)}, "groups must have shape"),
    ],
)
def test_bad_input_gets_a_sentence(parameters, change, message):
    dX, dY = in_chunks(X, Y)
    given = {"X": dX, "Y": dY, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        (DaskSetClassifier if "client" in parameters else HERE)(**parameters).fit(
            given.pop("X"), given.pop("Y"), **given
        )


def test_a_group_in_two_chunks_is_refused_by_name():
    dX, dY = in_chunks(X, Y, (100, 140))
    groups = da.from_array(np.arange(240) // 30, chunks=((100, 140),))
    with pytest.raises(ValueError, match="got group 3 in chunks 0 and 1: rechunk"):
        HERE().fit(dX, dY[:, 0], groups=groups)


def test_without_a_client_there_is_a_sentence():
    with pytest.raises(ValueError, match=r"client must be given where no distributed\.Client"):
        DaskExecutor()


def test_here_is_serial():
    assert Here().sums(pow, [1, 2], 2) == Serial().sums(pow, [1, 2], 2)


def test_rows_to_predict_must_have_features(local):
    with pytest.raises(ValueError, match=r"X must have shape \(n, d\), got 1 dimensions"):
        local.predict(in_chunks(X, Y)[0][:, 0])
