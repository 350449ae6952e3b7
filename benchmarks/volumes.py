"""Two labels on volumes larger than memory: processor time per voxel, memory and disk.

The volumes are blobs with noise: float16 costs in dask arrays that are computed where they are
read, with one weight, or a uint8 image on disk with seeds and weights by contrast. They are solved
by `sw.dask.solve_map` on a cluster of two workers of 2 GiB with one thread each, or on one thread
of one process for some sizes of blocks, and the smallest by `sw.solve_map` and PyMaxflow in memory
as well. Times are processor times of all processes, with what it takes to compute the costs in each
pass, which a row of its own shows.

A call with `--side 2048 --threads 16 --folder F` solves one volume by threads of one process. It
goes on from what is in the folder, and adds what was used to its log.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import dask.array as da
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import report

GOAL = 0.4  # microseconds of processor time per voxel
GOAL_DISK = 2.0  # bytes per voxel
CHUNK = 128
PERIOD = 32  # voxels between the nodes of the random lattice that makes the blobs
NOISE, WEIGHT = 2.0, 1.0
IN_MEMORY = 224  # the largest cube that PyMaxflow solves in 3 GB


@cache
def lattice(side: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((side // PERIOD + 2,) * 3, np.float32)


def scene(side: int, corner: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Return blobs of -1 and 1 with noise."""
    values = lattice(side)
    for axis, (begin, length) in enumerate(zip(corner, shape, strict=True)):
        place = (np.arange(length) + begin) / PERIOD
        low = place.astype(int)
        share = (place - low).astype(np.float32).reshape([-1 if k == axis else 1 for k in range(3)])
        values = np.take(values, low, axis) * (1 - share) + np.take(values, low + 1, axis) * share
    noise = np.random.default_rng([side, *corner]).standard_normal(shape, np.float32)
    return np.sign(values) + NOISE * noise


def chunk_of_costs(empty: np.ndarray, block_info: dict) -> np.ndarray:
    return -scene(*place_of(block_info)).astype(np.float16)


def chunk_of_image(empty: np.ndarray, block_info: dict) -> np.ndarray:
    return np.clip(128 + 20 * scene(*place_of(block_info)), 0, 255).astype(np.uint8)


def chunk_of_seeds(empty: np.ndarray, block_info: dict) -> np.ndarray:
    """Mark every 16th voxel of the first chunk along each axis with the label of its blob."""
    side, corner, shape = place_of(block_info)
    seeds = np.full(shape, -1, np.int8)
    if corner == (0, 0, 0):
        seeds[::16, ::16, ::16] = scene(side, corner, shape)[::16, ::16, ::16] > 0
    return seeds


def place_of(block_info: dict) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return the side of the volume, and the corner and the shape of a chunk."""
    ranges = block_info[0]["array-location"]
    corner = tuple(int(begin) for begin, _ in ranges)
    return block_info[0]["shape"][0], corner, tuple(int(end - begin) for begin, end in ranges)


def lazily(chunk: object, side: int, dtype: type) -> da.Array:
    empty = da.zeros((side,) * 3, dtype=np.uint8, chunks=CHUNK)
    return empty.map_blocks(chunk, dtype=dtype, meta=np.empty((0, 0, 0), dtype))


def arguments_of(kind: str, side: int, folder: Path) -> dict:
    if kind == "costs":
        return {"volume": lazily(chunk_of_costs, side, np.float16), "smoothness": WEIGHT}
    paths = []
    for name, chunk, dtype in (
        ("image", chunk_of_image, np.uint8),
        ("seeds", chunk_of_seeds, np.int8),
    ):
        paths.append(str(folder / f"{name}-{side}-input.zarr"))
        if not Path(paths[-1]).exists():
            lazily(chunk, side, dtype).to_zarr(paths[-1])
    return {"volume": paths[0], "seeds": paths[1], "kind": "image", "smoothness": 2.0}


def disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def solve(kind: str, side: int, folder: Path, threads: int | None, block: int = 256) -> dict:
    """Solve a volume, by two workers or by threads of this process, and return a row of data."""
    from distributed import Client, LocalCluster

    from setwise.dask import VolumeOptions, solve_map

    name = f"{kind}-{side}-{block}" + ("" if threads is None else f"-{threads}")
    store, log = folder / f"{name}.zarr", folder / f"{name}.log"
    given = arguments_of(kind, side, folder)
    given["options"] = VolumeOptions(block=block)
    begin = time.process_time()

    def show(progress: object) -> None:
        print(progress, file=sys.stderr, flush=True)

    if threads is not None:
        result = solve_map(**given, store=store, n_jobs=threads, callback=show)
        used = result.processor_seconds
    else:
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, memory_limit="2GiB", dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
        ):
            result = solve_map(**given, store=store, client=client, callback=show)
            used = result.processor_seconds + time.process_time() - begin
    entry = {
        "seconds": result.seconds,
        "processor": used,
        "memory": result.peak_memory,
        "interrupted": result.interrupted,
    }
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    voxels = side**3
    return {
        "kind": kind,
        "side": side,
        "block": block,
        "threads": threads,
        "voxels": voxels,
        "calls": len(calls),
        "microseconds": 1e6 * sum(call["processor"] for call in calls) / voxels,
        "seconds": sum(call["seconds"] for call in calls),
        "memory": max(call["memory"] for call in calls),
        "disk": disk(store) / voxels,
        "open": result.n_open,
        "exact": result.exact,
        "proved": result.proved,
        "relative_gap": result.relative_gap,
        "value": result.value,
    }


def in_memory(how: str, side: int) -> dict:
    """Solve the volume of costs in memory, and return a row of data."""
    costs = np.asarray(lazily(chunk_of_costs, side, np.float16)).astype(np.float64)
    begin = time.process_time()
    if how == "generate":
        costs = np.asarray(lazily(chunk_of_costs, side, np.float16))
    elif how == "PyMaxflow":
        import maxflow

        graph = maxflow.Graph[float](costs.size, 3 * costs.size)
        nodes = graph.add_grid_nodes(costs.shape)
        structure = np.zeros((3, 3, 3))
        structure[2, 1, 1] = structure[1, 2, 1] = structure[1, 1, 2] = 1
        graph.add_grid_edges(nodes, WEIGHT, structure, symmetric=True)
        graph.add_grid_tedges(nodes, costs.clip(min=0), (-costs).clip(min=0))
        graph.maxflow()
        graph.get_grid_segments(nodes)
    else:
        import setwise as sw

        unary = np.stack([np.zeros(costs.size), costs.ravel()], axis=1)
        edges = sw.fields.grid_edges(costs.shape)
        sw.solve_map(sw.fields.Field(unary) + sw.fields.Potts(edges, WEIGHT), n_jobs=1)
    used = time.process_time() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "kind": how,
        "side": side,
        "voxels": side**3,
        "microseconds": 1e6 * used / side**3,
        "memory": memory,
    }


def in_a_process(folder: Path, *words: object) -> dict:
    """Return the row of a case that is run in a process of its own, once per folder."""
    path = folder / f"{'-'.join(map(str, words))}.json"
    if not path.exists():
        command = [sys.executable, __file__, "--folder", str(folder), "--case", *map(str, words)]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        path.write_text(found.splitlines()[-1], encoding="utf-8")
        print(path.read_text(encoding="utf-8"), flush=True)
    return json.loads(path.read_text(encoding="utf-8"))


def measured_rows(folder: Path, sides: list[int], blocks: list[int]) -> list[dict]:
    """Return a row for each case."""
    first, middle = sides[0], sides[min(1, len(sides) - 1)]
    cases: list[tuple] = [(how, first) for how in ("generate", "sw.solve_map", "PyMaxflow")]
    cases += [(kind, blocks[-1], 1, block) for kind in ("costs", "image") for block in blocks]
    cases += [("costs", side) for side in sides] + [("image", middle)]
    return [in_a_process(folder, *case) for case in cases]


def line_of(row: dict) -> list[str]:
    """Return a row of data as a row of the table."""
    kinds = {
        "generate": "computing the costs once",
        "sw.solve_map": "sw.solve_map, in memory",
        "PyMaxflow": "PyMaxflow, in memory",
        "costs": "float16 costs, one weight",
        "image": "uint8 image, seeds, contrast",
    }
    cells = [kinds[row["kind"]], f"{row['side']}³"]
    if "open" not in row:
        return [*cells, "1 thread", f"{row['microseconds']:.3f} µs", mebibytes(row), "", "", ""]
    who = "2 workers" if row["threads"] is None else f"{row['threads']} thread"
    who += "s" if (row["threads"] or 1) > 1 else ""
    share = row["open"]["blocks"] / row["voxels"]
    return [
        *cells,
        f"{who}, {row['block']}³",
        f"{row['microseconds']:.3f} µs",
        mebibytes(row),
        f"{row['disk']:.3f}",
        f"{100 * share:.3g} %",
        proof_of(row),
    ]


def mebibytes(row: dict) -> str:
    return f"{row['memory'] / 2**20:.0f} MiB"


def proof_of(row: dict) -> str:
    return "exact" if row["exact"] else f"gap {row['relative_gap']:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small volumes, nothing written")
    parser.add_argument("--case", nargs="+", help="one case, for a process of its own")
    parser.add_argument("--side", type=int, help="solve the costs of one cube by threads")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--largest", type=int, default=1024, help="the side of the largest cube")
    parser.add_argument("--folder", type=Path, help="where labels and finished rows are and stay")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as given:
        folder = args.folder or Path(given)
        folder.mkdir(parents=True, exist_ok=True)
        if args.case:
            kind, side, *rest = args.case
            if kind in ("costs", "image"):
                threads, block = (int(word) for word in rest) if rest else (None, 256)
                row = solve(kind, int(side), folder, threads, block)
            else:
                row = in_memory(kind, int(side))
            print(json.dumps(row))
            return
        if args.side:
            data = [solve("costs", args.side, folder, args.threads)]
        elif args.quick:
            data = measured_rows(folder, [64, 96], [32, 64])
        else:
            sides = [side for side in (IN_MEMORY, 512, 1024) if side <= args.largest]
            data = measured_rows(folder, sides, [64, 128, 256])
    head = ["volume", "side", "by, blocks of", "processor time per voxel", "peak of a process"]
    table = [[*head, "bytes per voxel on disk", "left open by blocks", "proved"]]
    table += [line_of(row) for row in data]
    notes = []
    for row in data:
        if row["side"] < 1024:
            continue
        met = row["proved"] and row["microseconds"] <= GOAL and row["disk"] <= GOAL_DISK
        notes.append(
            f"{row['side']}³: {row['microseconds']:.3f} µs and {row['disk']:.3f} bytes per voxel "
            f"against goals of {GOAL:g} and {GOAL_DISK:g}, {proof_of(row)}: "
            + ("met" if met else "NOT met")
        )
    report(
        f"volumes_{args.side}" if args.side else "volumes",
        table,
        data,
        notes=notes,
        measured="Processor times of all processes, single runs",
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
