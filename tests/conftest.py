"""Settings that every test shares."""

import multiprocessing
import os
import signal

# A shell starts what it runs in the background with Ctrl-C ignored: tests of an interrupt would
# then wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test opens a window, and no test depends on one being there. Set before pyplot is imported.
os.environ["MPLBACKEND"] = "Agg"

import pytest
from hypothesis import HealthCheck, settings

# `ci` draws the same examples every time, so that a failure is a change of the code. `fuzz` draws
# new ones (`make fuzz`). Tests leave max_examples alone, or the profiles would not reach them.
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz",
    derandomize=False,
    deadline=None,
    max_examples=1000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked ``fuzz`` measure seconds or take many: they run under the profile alone."""
    if settings.get_current_profile_name() == "fuzz":
        return
    left = [item for item in items if item.get_closest_marker("fuzz")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.fixture(scope="session")
def cluster():
    """Two processes of dask, forked from one that has imported all: a new one is there soon."""
    import dask
    from distributed import LocalCluster
    from distributed.utils import get_mp_context

    forks = "forkserver" in multiprocessing.get_all_start_methods()
    method = "forkserver" if forks else "spawn"
    options = {
        "distributed.worker.multiprocessing-method": method,
        # Some time after a worker was lost the cluster closes its nanny if no worker of its name is
        # there, which may be while a later test restarts it: then the worker never comes back.
        "distributed.deploy.lost-worker-timeout": "1h",
    }
    with dask.config.set(options):
        get_mp_context().set_forkserver_preload(["distributed", "setwise.dask"])
        with LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60
        ) as made:
            yield made


@pytest.fixture
def client(cluster):
    """A client of it, the default one."""
    from distributed import Client

    with Client(cluster, set_as_default=True) as made:
        made.wait_for_workers(2, timeout=500)
        yield made
