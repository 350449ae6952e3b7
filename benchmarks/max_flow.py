"""Maximum flows, build and solve, against PyMaxflow and OR-Tools.

Targets, as shares of the peer's time: on a picture of 1000 x 1000 pixels 0.75 of PyMaxflow and 0.25
of OR-Tools; with superpixels 0.4 of PyMaxflow; 1/15 of a first solution for a second one after 1 %
of the unaries have changed; below 150 bytes per pixel at 4e6 pixels; on volumes of 128^3 voxels
with 6 and 26 neighbours 1/3 of PyMaxflow, and less than with our own edge list; with two seeds far
apart no more than PyMaxflow. Files of the DIMACS challenge are read from the folder maxflow of
$SETWISE_DATA, if there is one; the target for gl1 is 0.9 of PyMaxflow.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path

import maxflow as pymaxflow
import numpy as np
from ortools.graph.python import max_flow as ortools

from setwise.inference import FlowGraph, maxflow

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.flows import (
    Graph,
    Picture,
    Volume,
    noisy_picture,
    noisy_volume,
    read_dimacs,
    superpixels,
    two_seeds,
)
from benchmarks.shared.measure import (
    RESULTS,
    alternate,
    arguments,
    as_ratio,
    as_seconds,
    ratio,
    report,
    require_close,
    verdict,
)

KNOWN = {"gl1": 156545, "gw1": 1202018, "wlm3": 11875108}
DOWN, RIGHT = np.eye(3)[2][:, None] * [0, 1, 0], np.eye(3)[1][:, None] * [0, 0, 1]


def ours(p: Picture) -> tuple[float, np.ndarray]:
    graph = FlowGraph.grid(p.source.shape, p.weights)
    graph.set_terminals(p.source, p.sink)
    return graph.solve(), graph.mask


def ours_of_edges(p: Graph) -> tuple[float, np.ndarray]:
    graph = FlowGraph(len(p.source), p.edges, p.capacities, p.reverse)
    graph.set_terminals(p.source, p.sink)
    return graph.solve(), graph.mask


def of_pymaxflow(p: Picture) -> tuple[float, np.ndarray]:
    kind = int if p.source.dtype.kind == "i" else float
    graph = pymaxflow.Graph[kind](p.source.size, 2 * p.source.size)
    nodes = graph.add_grid_nodes(p.source.shape)
    for weights, structure in zip(p.weights, (DOWN, RIGHT), strict=True):
        graph.add_grid_edges(nodes, weights, structure, symmetric=True)
    graph.add_grid_tedges(nodes, p.source, p.sink)
    return graph.maxflow(), ~graph.get_grid_segments(nodes)


def ours_of_volume(p: Volume) -> tuple[float, np.ndarray]:
    graph = FlowGraph.grid(p.source.shape, p.weights, offsets=p.offsets)
    graph.set_terminals(p.source, p.sink)
    return graph.solve(), graph.mask


def of_pymaxflow_volume(p: Volume) -> tuple[float, np.ndarray]:
    graph = pymaxflow.Graph[float](p.source.size, p.weights.size)
    nodes = graph.add_grid_nodes(p.source.shape)
    for weights, offset in zip(p.weights, p.offsets, strict=True):
        structure = np.zeros((3, 3, 3))
        structure[tuple(1 + offset)] = 1
        graph.add_grid_edges(nodes, weights, structure, symmetric=True)
    graph.add_grid_tedges(nodes, p.source, p.sink)
    return graph.maxflow(), ~graph.get_grid_segments(nodes)


def of_pymaxflow_edges(p: Graph) -> tuple[float, np.ndarray]:
    graph = pymaxflow.Graph[float](len(p.source), len(p.edges))
    nodes = graph.add_nodes(len(p.source))
    graph.add_edges(p.edges[:, 0], p.edges[:, 1], p.capacities, p.reverse)
    graph.add_grid_tedges(nodes, p.source, p.sink)
    return graph.maxflow(), ~graph.get_grid_segments(nodes)


def of_ortools(p: Picture) -> tuple[int, list[int]]:
    """Solve by OR-Tools.

    The source and the sink are two more nodes, and both directions of an edge are arcs.
    """
    n = p.source.size
    pixels = np.arange(n, dtype=np.int32).reshape(p.source.shape)
    sides = ((pixels[:-1], pixels[1:]), (pixels[:, :-1], pixels[:, 1:]))
    flat = [(a.ravel(), b.ravel()) for a, b in sides]
    weights = [p.weights[0, :-1].ravel(), p.weights[1, :, :-1].ravel()]
    tails = [
        flat[0][0],
        flat[1][0],
        flat[0][1],
        flat[1][1],
        np.full(n, n, np.int32),
        pixels.ravel(),
    ]
    heads = [
        flat[0][1],
        flat[1][1],
        flat[0][0],
        flat[1][0],
        pixels.ravel(),
        np.full(n, n + 1, np.int32),
    ]
    graph = ortools.SimpleMaxFlow()
    graph.add_arcs_with_capacity(
        np.concatenate(tails),
        np.concatenate(heads),
        np.concatenate([*weights, *weights, p.source.ravel(), p.sink.ravel()]),
    )
    if graph.solve(n, n + 1) != graph.OPTIMAL:
        sys.exit("OR-Tools found no flow")
    return graph.optimal_flow(), graph.get_source_side_min_cut()


def compare(name: str, contenders: dict, repeats: int, table: list, data: list) -> dict:
    """Add a row for each peer; the first contender is ours."""
    answers = {who: call()[0] for who, call in contenders.items()}
    (us, ours_value), *peers = answers.items()
    seconds = alternate(contenders, repeats=repeats, clock=time.process_time)
    shares = {}
    for peer, value in peers:
        require_close(f"{name}, {peer}", ours_value, value, 1e-9)
        shares[peer] = ratio(seconds[us], seconds[peer])
        both = [as_seconds(float(np.median(seconds[who]))) for who in (us, peer)]
        table.append([name, *both, peer, as_ratio(ratio(seconds[peer], seconds[us]))])
        data.append(
            {"problem": name, "peer": peer, "seconds": {k: v.tolist() for k, v in seconds.items()}}
        )
    return {peer: 1 / share["median"] for peer, share in shares.items()}


def warm(p: Picture, repeats: int) -> np.ndarray:
    """Return the time of a first solution divided by that of a second, with build and changes."""
    rng = np.random.default_rng(1)
    source, sink = p.source.ravel().copy(), p.sink.ravel().copy()
    graph = FlowGraph.grid(p.source.shape, p.weights)
    graph.set_terminals(source, sink)
    graph.solve()
    ratios = []
    for _ in range(repeats):
        nodes = rng.choice(source.size, source.size // 100, replace=False)
        source[nodes], sink[nodes] = source[rng.permutation(nodes)], sink[rng.permutation(nodes)]
        start = time.process_time()
        graph.set_terminals(source[nodes], sink[nodes], nodes=nodes)
        value = graph.solve()
        middle = time.process_time()
        shape = p.source.shape
        cold, _ = ours(Picture(source.reshape(shape), sink.reshape(shape), p.weights))
        ratios.append((time.process_time() - middle) / (middle - start))
        require_close("a second solution", value, cold, 1e-9)
    return np.array(ratios)


def growth(sides: Sequence[int]) -> list[tuple[int, float]]:
    """Return pixels and seconds of build and solution.

    The seconds are the median of five calls after a first one.
    """
    grown = []
    for side in sides:
        picture = noisy_picture((side, side))
        seconds = alternate({"setwise": partial(ours, picture)}, repeats=5, clock=time.process_time)
        grown.append((side**2, float(np.median(seconds["setwise"]))))
    return grown


def plot(grown: list[tuple[int, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    pixels, seconds = np.array(grown).T
    figure, axis = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    axis.loglog(pixels, seconds, "o-", label="build and solve")
    axis.loglog(pixels, seconds[0] * pixels / pixels[0], ":", color="0.4", label="linear")
    axis.set(xlabel="pixels", ylabel="seconds, one thread")
    axis.set_title("A minimum cut of a noisy four-connected grid")
    axis.legend()
    figure.savefig(RESULTS / "max_flow_growth.png", dpi=150, metadata={"Software": None})


FIRST = """
import sys; sys.path.insert(0, {here!r})
from time import process_time
from benchmarks.max_flow import ours
from benchmarks.shared.flows import noisy_picture
picture = noisy_picture(({side}, {side}))
times = []
for _ in range(6):
    start = process_time()
    ours(picture)
    times.append(process_time() - start)
print(times[0] / sorted(times[1:])[2])
"""


def first_call(side: int) -> list[float]:
    """Return the time of the first problem of a process over the median of the next five.

    It is measured in five processes.
    """
    program = FIRST.format(here=str(RESULTS.parents[1]), side=side)
    command = [sys.executable, "-c", program]
    return [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]


MEMORY = """
import resource, numpy as np
from setwise.inference import FlowGraph
side = {side}
rng = np.random.default_rng(0)
weights = rng.random((2, side, side))
source, sink = rng.random((2, side, side))
edges = FlowGraph.grid((side, side), weights).edges.astype(np.int32)
c = rng.random(len(edges))
import gc; gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])
graph = FlowGraph({build})
graph.set_terminals(source.ravel(), sink.ravel())
graph.solve(); graph.mask
after = int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
print((after - before) * 1024 / side**2)
"""


def bytes_a_pixel(side: int) -> float:
    """Return the peak memory beyond the arrays of the problem, on Linux only.

    The arrays include edges and capacities.
    """
    program = MEMORY.format(side=side, build="side * side, edges, c, c")
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    side, repeats = (200, 3) if args.quick else (1000, 9)
    table = [["problem", "setwise", "peer", "which", "peer / setwise"]]
    data: list[dict[str, object]] = []
    notes = []
    settings = {"noisy": {}, "more smoothing": {"smoothing": 4.0, "noise": 2.0}}
    for name, setting in settings.items():
        picture = noisy_picture((side, side), **setting)
        contenders = {
            "setwise": partial(ours, picture),
            "PyMaxflow": partial(of_pymaxflow, picture),
        }
        label = f"{side} x {side}, {name}"
        share = compare(f"{label}, float", contenders, repeats, table, data)
        notes.append(f"{label}, PyMaxflow: {verdict(share['PyMaxflow'], 1 / 0.75)}")
        whole = picture.as_integers()
        contenders = {
            "setwise": partial(ours, whole),
            "PyMaxflow": partial(of_pymaxflow, whole),
            "OR-Tools": partial(of_ortools, whole),
        }
        share = compare(f"{label}, int", contenders, max(3, repeats // 3), table, data)
        notes.append(f"{label}, OR-Tools: {verdict(share['OR-Tools'], 4)}")
        times = warm(picture, repeats)
        notes.append(f"{label}, first / second solution: {verdict(float(np.median(times)), 15)}")
        data.append({"problem": f"{label}, second solution", "ratios": times.tolist()})
    depth = 24 if args.quick else 128
    for neighbors, (name, setting) in product((6, 26), settings.items()):
        volume = noisy_volume(depth, neighbors, **setting)
        listed = volume.as_graph()
        contenders = {
            "setwise": partial(ours_of_volume, volume),
            "setwise, edges": partial(ours_of_edges, listed),
            "PyMaxflow": partial(of_pymaxflow_volume, volume),
            "PyMaxflow, edges": partial(of_pymaxflow_edges, listed),
        }
        label = f"{depth}^3, {neighbors} neighbours, {name}"
        share = compare(label, contenders, 7 if neighbors == 6 else 3, table, data)
        best = min(share["PyMaxflow"], share["PyMaxflow, edges"])
        notes.append(f"{label}, PyMaxflow: {verdict(best, 3)}")
        notes.append(f"{label}, our list of edges: {verdict(share['setwise, edges'], 1)}")
    for seed in range(4):
        seeds = two_seeds(side, seed)
        contenders = {"setwise": partial(ours, seeds), "PyMaxflow": partial(of_pymaxflow, seeds)}
        share = compare(f"two seeds {seed}, {side} x {side}", contenders, 3, table, data)
        notes.append(f"two seeds {seed}, PyMaxflow: {verdict(share['PyMaxflow'], 1)}")
    regions = superpixels((40, 60), (10, 20, 30)) if args.quick else superpixels()
    contenders = {
        "setwise": partial(ours_of_edges, regions),
        "PyMaxflow": partial(of_pymaxflow_edges, regions),
    }
    share = compare("superpixels, 3 layers", contenders, repeats, table, data)
    notes.append(f"superpixels, PyMaxflow: {verdict(share['PyMaxflow'], 1 / 0.4)}")
    grown = growth((100, 200) if args.quick else (100, 178, 316, 562, 1000, 1414, 2000))
    data.append({"growth": grown})
    for pixels, seconds in (grown[0], grown[-1]):
        notes.append(f"{pixels:,} pixels: {as_seconds(seconds / pixels)} a pixel")
    if not args.quick:
        plot(grown)
    first = first_call(side)
    notes.append(
        f"{side} x {side}, the first call of a process over the next ones: "
        f"{np.median(first):.2f} ({min(first):.2f} to {max(first):.2f})"
    )
    data.append({"first call over the next": first})
    if sys.platform == "linux":
        memory = bytes_a_pixel(300 if args.quick else 2000)
        met = "met" if memory <= 150 else "NOT met"
        notes.append(f"memory at peak: {memory:.0f} bytes per pixel, target 150: {met}")
        data.append({"bytes per pixel": memory})
    folder = Path(os.environ.get("SETWISE_DATA", "")) / "maxflow"
    for path in sorted(folder.glob("*.max.gz")) if "SETWISE_DATA" in os.environ else []:
        name = path.name.removesuffix(".max.gz")
        n, edges, capacities, source, sink = read_dimacs(path)
        s, t = (np.where(np.arange(n) == k, capacities.sum(), 0.0) for k in (source, sink))
        graph = Graph(edges, capacities, np.zeros(len(edges)), s, t)

        def of_file(edges=edges, capacities=capacities, n=n, source=source, sink=sink):
            return maxflow(edges, capacities, n=n, source=source, sink=sink).value, None

        if name in KNOWN:
            require_close(name, of_file()[0], KNOWN[name], 0)
        contenders = {"setwise": of_file, "PyMaxflow": partial(of_pymaxflow_edges, graph)}
        share = compare(f"DIMACS {name}", contenders, repeats, table, data)
        if name == "gl1":
            notes.append(f"DIMACS gl1, PyMaxflow: {verdict(share['PyMaxflow'], 1 / 0.9)}")
    notes.append("Processor time of one thread, the calls from Python included.")
    report("max_flow", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
