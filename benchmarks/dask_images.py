"""64 images over dask: one process against two, and against a plain loop without dask.

Each image is a file that is read by the worker that labels it. There are two labels and Potts edges
between four neighbours. The results return to the client. The rows of both clusters and of the loop
must agree in every value and every bit of the labels.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, as_ratio, as_seconds, ratio, report
from setwise.dask import map_fields

TASKS: dict[str, dict[str, Any]] = {"map": {}, "marginals": {"tol": 1e-3}}
SIDES = {"map": 320, "marginals": 96}
HEAD = ["task", "images", "plain loop", "one process", "two processes", "one / two"]


def build(name: str) -> sw.fields.Field:
    image = np.load(name)
    unary = np.stack([image.ravel(), -image.ravel()], axis=1)
    return sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges(image.shape), 0.6)


def drawn(folder: Path, n: int, side: int) -> list[str]:
    """Draw noisy images and return the names of their files."""
    folder.mkdir()
    rng, names = np.random.default_rng(0), [str(folder / f"{k}.npy") for k in range(n)]
    for name in names:
        np.save(name, rng.normal(size=(side, side)))
    return names


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    n, shrink, repeats = (8, 4, 2) if args.quick else (64, 1, 5)
    seconds: dict[tuple[str, str], list[float]] = {}
    values: dict[tuple[str, str], Any] = {}
    with TemporaryDirectory() as folder:
        names = {task: drawn(Path(folder, task), n, SIDES[task] // shrink) for task in TASKS}

        def run(name: str, client: Client | None) -> None:
            for task in TASKS:
                for repeat in range(repeats + 1):  # the first is a warm-up
                    lazy = map_fields(build, names[task], task, client=client, **TASKS[task])
                    start = time.perf_counter()
                    results = lazy.compute()
                    if repeat:
                        taken = time.perf_counter() - start
                        seconds.setdefault((name, task), []).append(taken)
                key = "labels" if task == "map" else "probabilities"
                values[name, task] = results.stacked(key), [row.gap for row in results.rows]

        run("loop", None)
        for name, workers in (("one", 1), ("two", 2)):
            with (
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0"
                ) as made,
                Client(made) as client,
            ):
                run(name, client)
    table, data = [HEAD], []
    for task in TASKS:
        own = {name: np.array(seconds[name, task]) for name in ("loop", "one", "two")}
        for name in ("one", "two"):
            if not (
                np.array_equal(values[name, task][0], values["loop", task][0])
                and values[name, task][1] == values["loop", task][1]
            ):
                sys.exit(f"{task}: the answers of {name} differ from those of the loop")
        side = SIDES[task] // shrink
        row = [task, f"{n} of {side} x {side}"]
        row += [as_seconds(float(np.median(times))) for times in own.values()]
        table.append([*row, as_ratio(ratio(own["one"], own["two"]))])
        data.append({"task": task, **{name: times.tolist() for name, times in own.items()}})
    measured = "Medians (range over the repeats), processes of one idle machine with two cores"
    report("dask_images", table, data, measured=measured, quick=args.quick)


if __name__ == "__main__":
    main()
