"""SIMULATED: a round of learning at up to 10,000 workers, from costs measured with two.

No cluster of that size was used. The following is measured on this machine: the time of client and
scheduler per task (processor time), the time of a message, the bandwidth of a link and the speed of
adding two vectors (the best of many). From these costs a round is simulated, event by event. The
weights spread to all workers from workers that have them. The scheduler hands out one task per
worker, one after the other. Then either the client receives and adds every vector itself, or
workers add neighbours along a tree, two at a time or more: 16 nodes of a small vector and 4 of a
large one, as ``DaskExecutor`` does, until 16 small vectors or one large one remain for the client.
Workers compute nothing in the meantime, so this is the overhead of a round. All links and machines
are alike and nothing fails.
"""

from __future__ import annotations

import heapq
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from distributed import Client, LocalCluster

matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import RESULTS, arguments, as_seconds, report

WORKERS = (2, 10, 30, 100, 300, 1_000, 3_000, 10_000)
VECTORS = (8_000, 800_000, 8_000_000)
SMALL, AT_CLIENT = 1 << 15, 16
HEAD = ["vector", "workers", "client adds all", "tree of pairs", "wide tree", "wide is limited by"]


class Costs(NamedTuple):
    """Seconds per task of the scheduler, per message, per byte on a link and per byte added."""

    task: float
    message: float
    byte: float
    added: float


def same(x: Any) -> Any:
    return x


def measured(quick: bool) -> Costs:
    repeats = 2 if quick else 4
    few, many = (20, 120) if quick else (50, 250)

    def best(call: Any, n: int) -> float:
        times = []
        for _ in range(n):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return min(times)

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.submit(same, 0).result()

        def of_tasks(n: int) -> float:
            """Return the processor time of this process, in which the scheduler runs too."""
            times = []
            for _ in range(repeats):
                start = time.process_time()
                client.gather(client.map(same, range(n), pure=False))
                times.append(time.process_time() - start)
            return min(times)

        task = (of_tasks(many) - of_tasks(few)) / (many - few)
        # From client to scheduler, to the worker and back: four messages.
        message = best(lambda: client.submit(same, 1, pure=False).result(), 10 * repeats) / 4
        small, large = (client.submit(np.zeros, n, pure=False) for n in (1_000, 2_000_000))
        byte = (best(large.result, 3 * repeats) - best(small.result, 3 * repeats)) / (8 * 1_999_000)
    a, b = np.ones(1_000_000), np.ones(1_000_000)
    return Costs(task, message, max(byte, 1e-11), best(lambda: a + b, repeats) / 8e6)


def simulated(workers: int, size: int, costs: Costs, width: int) -> float:
    """Return the seconds from the request to the sum.

    The tree adds ``width`` nodes at a time; with 0 the client adds all vectors.
    """
    move = costs.message + size * costs.byte
    weights = int(np.ceil(np.log2(workers))) * move  # workers that have the weights pass them on
    free = 0.0  # the time at which the scheduler is free
    nodes = []
    for _ in range(workers):
        free += costs.task
        nodes.append(max(weights, free) + costs.message)
    top = AT_CLIENT if size <= SMALL else 1
    while width and len(nodes) > top:
        # The scheduler hands out an addition when all of its vectors have arrived.
        waiting = [
            (max(nodes[i : i + width]), k, len(nodes[i : i + width]))
            for k, i in enumerate(range(0, len(nodes), width))
        ]
        heapq.heapify(waiting)
        done: dict[int, float] = {}
        while waiting:
            at, place, n = heapq.heappop(waiting)
            free = max(free, at + costs.message) + costs.task
            # One vector is local; the others arrive over one link.
            vectors = (n - 1) * size * (costs.byte + costs.added)
            done[place] = free + costs.message + (costs.message + vectors if n > 1 else 0.0)
        nodes = [done[k] for k in range(len(done))]
    here = 0.0
    for at in sorted(nodes):
        here = max(here, at + costs.message) + size * (costs.byte + costs.added)
    return here


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    costs = measured(args.quick)
    table, data = [HEAD], [{"costs": costs._asdict()}]
    curves: dict[tuple[int, str], list[float]] = {}
    for size in VECTORS:
        for workers in WORKERS:
            wide = 16 if size <= SMALL else 4
            found = [simulated(workers, size, costs, width) for width in (0, 2, wide)]
            for name, value in zip(HEAD[2:5], found, strict=True):
                curves.setdefault((size, name), []).append(value)
            scheduler = workers * (1 + 1 / (wide - 1)) * costs.task
            limit = "the scheduler" if scheduler > found[2] / 2 else "messages and vectors"
            row = [f"{size:,} bytes", f"{workers:,}", *map(as_seconds, found), limit]
            table.append(row)
            data.append({"size": size, "workers": workers, "seconds": found})
    said = (
        f"Measured: {as_seconds(costs.task)} a task, {as_seconds(costs.message)} a message, "
        f"{1e-9 / costs.byte:.2g} GB/s, {1e-9 / costs.added:.2g} GB/s added."
    )
    report(
        "dask_simulation",
        table,
        data,
        notes=[said],
        measured="SIMULATED from measured costs, not a measurement of such a cluster. " + said[:-1],
        quick=args.quick,
    )
    if not args.quick:
        draw(curves)


def draw(curves: dict[tuple[int, str], list[float]]) -> None:
    fig, axes = plt.subplots(1, 3, figsize=(11.0, 3.8), sharey=True, layout="constrained")
    for size, ax in zip(VECTORS, axes, strict=True):
        for name, color in zip(HEAD[2:5], ("#D55E00", "#56B4E9", "#0072B2"), strict=True):
            ax.loglog(WORKERS, curves[size, name], color=color, label=name)
        ax.set(xlabel="workers", title=f"vectors of {size / 1000:,.0f} kB")
    axes[0].set_ylabel("seconds per round, beside its work")
    axes[0].legend(frameon=False)
    fig.suptitle("Simulated from costs measured with two workers")
    fig.savefig(RESULTS / "dask_simulation.png", dpi=100)


if __name__ == "__main__":
    main()
