"""64 images over dask: one process against two, and against a plain loop without dask.

Each image has 96 x 96 pixels, two labels, Potts edges between four neighbours. The rows of both
clusters and of the loop must agree in every value and every bit of the labels.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, as_ratio, as_seconds, ratio, report
from setwise.dask import map_fields

TASKS: dict[str, dict[str, Any]] = {"map": {}, "marginals": {"tol": 1e-3}}
HEAD = ["task", "images", "plain loop", "one process", "two processes", "one / two"]


def build(image: np.ndarray) -> sw.fields.Field:
    unary = np.stack([image.ravel(), -image.ravel()], axis=1)
    return sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges(image.shape), 0.6)


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    n, side, repeats = (8, 24, 2) if args.quick else (64, 96, 5)
    images = np.random.default_rng(0).normal(size=(n, side, side))
    spread = da.from_array(images, chunks=(max(1, n // 16), side, side))
    seconds: dict[tuple[str, str], list[float]] = {}
    values: dict[tuple[str, str], Any] = {}

    def run(name: str, task: str, source: Any, client: Client | None) -> None:
        lazy = map_fields(build, source, task, client=client, **TASKS[task])
        start = time.perf_counter()
        results = lazy.compute()
        seconds.setdefault((name, task), []).append(time.perf_counter() - start)
        key = "labels" if task == "map" else "probabilities"
        values[name, task] = results.stacked(key), [row.gap for row in results.rows]

    for repeat in range(repeats + 1):
        for task in TASKS:
            run("loop", task, images, None)
        if repeat == 0:
            seconds.clear()  # the warm-up
    for name, workers in (("one", 1), ("two", 2)):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as made,
            Client(made) as client,
        ):
            for task in TASKS:
                run(name, task, spread, client)
                seconds[name, task].clear()
                for _ in range(repeats):
                    run(name, task, spread, client)
    table, data = [HEAD], []
    for task in TASKS:
        own = {name: np.array(seconds[name, task]) for name in ("loop", "one", "two")}
        for name in ("one", "two"):
            if not (
                np.array_equal(values[name, task][0], values["loop", task][0])
                and values[name, task][1] == values["loop", task][1]
            ):
                sys.exit(f"{task}: the answers of {name} differ from those of the loop")
        row = [task, f"{n} of {side} x {side}"]
        row += [as_seconds(float(np.median(times))) for times in own.values()]
        table.append([*row, as_ratio(ratio(own["one"], own["two"]))])
        data.append({"task": task, **{name: times.tolist() for name, times in own.items()}})
    measured = "Medians (range over the repeats), processes of one idle machine with two cores"
    report("dask_images", table, data, measured=measured, quick=args.quick)


if __name__ == "__main__":
    main()
