"""A watch over the workers of a cluster while a client waits for answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic
from typing import Any

import dask
from dask.utils import format_time, parse_timedelta
from distributed import Client, Future

# The seconds between two checks of the cluster. Each check sends one request to the scheduler.
# A round of milliseconds ends before the first check. Not tuned.
_INTERVAL = 1.0
# The time to wait for a worker if dask's configuration does not set one: the queue of a cluster
# can take minutes to start a worker.
_PATIENCE = "10 minutes"
_SETTING = "distributed.scheduler.no-workers-timeout"


class WorkerWatch:
    """A watch of the cluster, which records why work was cancelled."""

    def __init__(self, client: Client, patience: float) -> None:
        self._client = client
        self.patience = patience
        self.without_workers = False

    def check(self) -> None:
        """Raise an error if there was no worker for too long, or if the client was closed."""
        check_open(self._client)
        if self.without_workers:
            raise TimeoutError(
                f"the cluster must have workers, got none for {format_time(self.patience)}: start "
                f"some and call again, or let dask's setting {_SETTING!r} be longer"
            )


def is_closed(client: Client) -> bool:
    """Return whether the client is closing or closed."""
    return client.status in ("closing", "closed")


def check_open(client: Client) -> None:
    """Raise an error if the client is closing or closed."""
    if is_closed(client):
        raise RuntimeError("client must stay open until the call returns, got one that closed")


def cancel(client: Client, futures: Sequence[Future]) -> None:
    """Cancel futures of a client, unless it is closed."""
    if not is_closed(client):
        client.cancel(list(futures))


@contextmanager
def watched(
    client: Client,
    futures: Sequence[Future],
    is_stuck: Callable[[set[str]], bool] = lambda live: False,
) -> Iterator[WorkerWatch]:
    """Cancel the futures if there has been no worker for too long, or if they are stuck.

    ``is_stuck`` is called with the addresses of the workers; futures are cancelled after it returns
    True twice in a row. The time without workers is limited by dask's setting
    ``distributed.scheduler.no-workers-timeout`` on the client, and by default to ten minutes.
    """
    watch = WorkerWatch(client, parse_timedelta(dask.config.get(_SETTING, None) or _PATIENCE))
    done = Event()

    def check_regularly() -> None:
        last, stuck = monotonic(), False
        with suppress(Exception):  # a closed client raises an error in the waiting thread
            while not done.wait(min(_INTERVAL, watch.patience)):
                live: dict[str, Any] = client.nthreads()
                if live:
                    last, before = monotonic(), stuck
                    stuck = is_stuck(set(live))
                    if not (stuck and before):
                        continue
                elif monotonic() - last < watch.patience:
                    continue
                else:
                    watch.without_workers = True
                if not done.is_set():
                    cancel(client, futures)
                return

    thread = Thread(target=check_regularly, name="setwise-watch", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        done.set()
