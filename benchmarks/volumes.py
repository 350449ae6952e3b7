"""Two labels on volumes larger than memory: processor time per voxel, memory and disk.

The volumes are blobs with noise: float16 costs in dask arrays that are computed where they are read,
with one weight, or a uint8 image on disk with seeds and weights by contrast. Each is solved by
`sw.dask.solve_map` on a cluster of two workers of 2 GiB with one thread each, and one of them also
by `sw.solve_map` and PyMaxflow in memory. Times are processor times of all processes, with what it
takes to compute the costs in each pass, which a row of its own shows.

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


def solve(kind: str, side: int, folder: Path, threads: int | None) -> dict:
    """Solve a volume, by two workers or by threads of this process, and return a row of data."""
    from distributed import Client, LocalCluster

    from setwise.dask import solve_map

    store, log = folder / f"{kind}-{side}.zarr", folder / f"{kind}-{side}.log"
    given = arguments_of(kind, side, folder)
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


def in_a_process(*words: str) -> dict:
    """Return the row of a case that is run in a process of its own."""
    command = [sys.executable, __file__, "--case", *words]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(found.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small volumes, nothing written")
    parser.add_argument("--case", nargs="+", help="one case, for a process of its own")
    parser.add_argument("--side", type=int, help="solve the costs of one cube by threads")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, help="where the labels are written and stay")
    args = parser.parse_args()
    if args.case:
        kind, side, *rest = args.case
        if rest:
            row = solve(kind, int(side), Path(rest[0]), None)
        else:
            row = in_memory(kind, int(side))
        print(json.dumps(row))
        return
    if args.side:
        folder = args.folder or Path(tempfile.mkdtemp())
        folder.mkdir(parents=True, exist_ok=True)
        data = [solve("costs", args.side, folder, args.threads)]
        name = f"volumes_{args.side}"
    else:
        name = "volumes"
        sides = (64, 96) if args.quick else (IN_MEMORY, 512, 1024)
        data = [
            in_a_process(how, str(sides[0])) for how in ("generate", "sw.solve_map", "PyMaxflow")
        ]
        with tempfile.TemporaryDirectory() as given:
            folder = args.folder or Path(given)
            folder.mkdir(parents=True, exist_ok=True)
            for kind, side in [("costs", side) for side in sides] + [("image", sides[1])]:
                data.append(in_a_process(kind, str(side), str(folder)))
                print(data[-1], flush=True)
    kinds = {
        "generate": "computing the volume once",
        "sw.solve_map": "sw.solve_map, in memory",
        "PyMaxflow": "PyMaxflow, in memory",
        "costs": "float16 costs, one weight",
        "image": "uint8 image, seeds, contrast",
    }
    head = ["volume", "side", "processor time per voxel", "peak of a process"]
    table = [[*head, "disk per voxel", "left open by the blocks", "proved"]]
    notes = []
    for row in data:
        cells = [kinds[row["kind"]], f"{row['side']}³", f"{row['microseconds']:.3f} µs"]
        cells.append(f"{row['memory'] / 2**20:.0f} MiB")
        if "open" in row:
            share = row["open"]["blocks"] / row["voxels"]
            proof = "exact" if row["exact"] else f"gap {row['relative_gap']:.1e}"
            cells += [f"{row['disk']:.3f} bytes", f"{100 * share:.3g} %", proof]
            met = row["proved"] and row["microseconds"] <= GOAL and row["disk"] <= GOAL_DISK
            if row["side"] >= 1024:
                notes.append(
                    f"{row['side']}³: {row['microseconds']:.3f} µs and {row['disk']:.3f} bytes per "
                    f"voxel against goals of {GOAL:g} and {GOAL_DISK:g}, {proof}: "
                    + ("met" if met else "NOT met")
                )
        table.append([*cells, *[""] * (len(table[0]) - len(cells))])
    how = f"{args.threads} threads of one process" if args.side else "two workers of 2 GiB"
    measured = f"Processor times of single runs, {how}"
    report(name, table, data, notes=notes, measured=measured, quick=args.quick)


if __name__ == "__main__":
    main()
