"""Learning on dask: the cost of a round, the bytes it moves, and the speed-up of a second process.

All processes run on one machine with one thread each. In an empty round the shards return 0.0,
which measures the overhead of dask. Bytes are counted by the loopback device: weights, vectors, and
dask's own messages. A round of a fit is that of ``DaskSetClassifier`` (Lovász hinge, Jaccard) on
1e6 rows of 50 features with 20 labels in 16 chunks, drawn on the workers. For ``planes`` the rounds
to a relative gap of 1e-4 are counted, which do not depend on the machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, as_ratio, as_seconds, ratio, report
from setwise.dask import DaskExecutor, DaskSetClassifier

HEAD = ["what", "size", "one process", "two processes", "one / two"]


def nothing(shard: object, w: np.ndarray) -> float:
    return 0.0


def vector(shard: object, w: np.ndarray) -> np.ndarray:
    return w


def carried() -> int:
    """Return the number of bytes that the loopback device has carried."""
    for line in Path("/proc/net/dev").read_text(encoding="utf-8").splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[8])
    return 0


def rounds(executor: DaskExecutor, shards: Any, function: Any, w: np.ndarray, n: int) -> tuple:
    """Return the seconds and bytes of each of n rounds."""
    executor.sums(function, shards, w)
    seconds, moved = [], []
    for _ in range(n):
        before, start = carried(), time.perf_counter()
        executor.sums(function, shards, w)
        seconds.append(time.perf_counter() - start)
        moved.append(carried() - before)
    return np.array(seconds), np.array(moved)


def block(n: int, d: int, p: int, info: Any = None) -> np.ndarray:
    """Draw rows of features and, in the last columns, labels, on the worker that uses them."""
    rng = np.random.default_rng(info[0]["chunk-location"][0] if info else 0)
    X = rng.normal(size=(n, d))
    W = np.random.default_rng(0).normal(size=(d, p))
    return np.hstack([X, X @ W + rng.normal(size=(n, p)) > 0])


def drawn(n: int, d: int, p: int, chunks: int) -> tuple[da.Array, da.Array]:
    rows = n // chunks
    whole = da.map_blocks(
        lambda block_info=None: block(rows, d, p, {0: block_info[None]}),
        chunks=((rows,) * chunks, (d + p,)),
        dtype=np.float64,
    )
    return whole[:, :d], whole[:, d:]


def fit_rounds(client: Client, shape: tuple[int, int, int], chunks: int, n: int) -> np.ndarray:
    """Return the seconds of each round of a fit except the first, which makes the shards."""
    X, Y = drawn(*shape, chunks)
    stamps: list[float] = []
    DaskSetClassifier(
        client=client,
    ).fit(X, Y, callback=lambda progress: stamps.append(time.perf_counter()) or len(stamps) > n)
    return np.diff(stamps)


def with_workers(n: int, call: Callable[[Client], Any]) -> Any:
    with (
        LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        return call(client)


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    n = 5 if args.quick else 30
    shape, chunks = ((20_000, 50, 20), 4) if args.quick else ((1_000_000, 50, 20), 16)
    counts = (4, 64) if args.quick else (4, 16, 64, 256, 1024)
    sizes = (1_000, 100_000) if args.quick else (1_000, 100_000, 1_000_000)

    def all_of_it(client: Client) -> dict[str, Any]:
        executor = DaskExecutor(client)
        small = np.zeros(10)
        found: dict[str, Any] = {"empty": {}, "vector": {}}
        for count in counts:
            shards = executor.place([0] * count)
            found["empty"][count] = rounds(executor, shards, nothing, small, n)
        shards = executor.place([0] * 16)
        for size in sizes:
            w = np.zeros(size)
            found["vector"][size] = rounds(executor, shards, vector, w, max(3, n // 3))
        found["fit"] = fit_rounds(client, shape, chunks, 3 if args.quick else 8)
        return found

    one, two = with_workers(1, all_of_it), with_workers(2, all_of_it)
    table, data = [HEAD], []
    for count in counts:
        a, b = one["empty"][count][0], two["empty"][count][0]
        row = ["a round of nothing", f"{count} shards", as_seconds(np.median(a))]
        table.append([*row, as_seconds(np.median(b)), as_ratio(ratio(a, b))])
        data.append({"what": "empty", "shards": count, "one": a.tolist(), "two": b.tolist()})
    for size in sizes:
        (a, bytes_a), (b, bytes_b) = one["vector"][size], two["vector"][size]
        row = ["a round of one vector", f"{8 * size:,} bytes, 16 shards", as_seconds(np.median(a))]
        table.append([*row, as_seconds(np.median(b)), as_ratio(ratio(a, b))])
        row = ["bytes that it moves", f"{8 * size:,} bytes, 16 shards"]
        moved = [int(np.median(own)) for own in (bytes_a, bytes_b)]
        table.append([*row, *(f"{own:,}" for own in moved), ""])
        data.append({"what": "vector", "size": size, "one": a.tolist(), "two": b.tolist()})
        data.append({"what": "bytes", "size": size, "one": moved[0], "two": moved[1]})
    a, b = one["fit"], two["fit"]
    named = f"{shape[0]:,} x {shape[1]}, {shape[2]} labels"
    row = ["a round of a fit", named, as_seconds(np.median(a)), as_seconds(np.median(b))]
    table.append([*row, as_ratio(ratio(a, b))])
    data.append({"what": "fit", "one": a.tolist(), "two": b.tolist()})
    table += planes_rows(args.quick, data)
    notes = ["Both clusters ran one after the other."]
    measured = "Medians (range over the rounds), processes of one idle machine with two cores"
    report("dask_learning", table, data, notes=notes, measured=measured, quick=args.quick)


def planes_rows(quick: bool, data: list[Any]) -> list[list[str]]:
    """Return the rounds to the gap for several values of ``planes``, counted on threads."""
    n = 320 if quick else 3_200
    X, Y = drawn(n, 30, 10, 32)
    table, first = [], 0
    with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
        for planes in (1, 4, 32):
            model = DaskSetClassifier(tol=1e-4, planes=planes, client=client).fit(X, Y)
            first = first or model.n_iter_
            row = [f"rounds, planes={planes}", f"{n:,} x 30, 10 labels, 32 shards"]
            table.append([*row, str(model.n_iter_), "", f"{first / model.n_iter_:.2f}"])
            data.append({"what": "planes", "planes": planes, "rounds": model.n_iter_})
    return table


if __name__ == "__main__":
    main()
