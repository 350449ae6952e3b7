"""What the tests of setwise.dask share: a time limit, a reference, what happens to workers."""

import os
import signal
import threading
import time
import warnings

import dask
import numpy as np
import pytest

from setwise.learning import Serial

SECONDS = 600


@pytest.fixture(autouse=True)
def _time_limit():
    """A test that hangs fails, and says where."""

    def strike(number, frame):
        raise TimeoutError(f"longer than {SECONDS} seconds")

    if not hasattr(signal, "SIGALRM"):  # Windows
        yield
        return
    before = signal.signal(signal.SIGALRM, strike)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


class Here(Serial):
    """Shards of delayed objects, in this process."""

    def place(self, shards):
        with warnings.catch_warnings():  # some releases of dask warn if there is a client as well
            warnings.filterwarnings("ignore", message="Running on a single-machine scheduler")
            return list(dask.compute(*shards, scheduler="sync"))


def locally(kind):
    """An estimator on dask whose shards are in this process: the reference for every bit."""

    class Local(kind):
        def _executor(self):
            return Here()

    return Local


def kill_workers(client, count=None):
    """SIGKILL, which nothing can be done about: to some workers, or to all."""
    for pid in list(client.run(os.getpid).values())[:count]:
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def kill_a_worker(client):
    kill_workers(client, 1)


def lose_all_workers(how, client, cluster):
    """Take away all workers, which come back; a cluster that shrinks to none grows later."""
    if how == "killed":
        kill_workers(client)
    elif how == "restarted":
        client.restart()
    else:
        without_workers(client, cluster)
        threading.Timer(0.5, cluster.scale, [2]).start()


def without_workers(client, cluster):
    cluster.scale(0)
    while client.nthreads():
        time.sleep(0.05)


def rows(n=240, d=5, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, p)) + rng.normal(size=(n, p)) > 0).astype(np.int64)
