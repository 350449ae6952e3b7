"""The calls that users of fields make, from their arrays to the answer, each with its goal.

All run on one thread unless a row says otherwise. PyMaxflow gets the same arrays, through its
interface for edges and through its calls for grids; in the latter case our time includes making the
edges. A time is a share of the peer's, or of the named reference; a goal is the largest allowed
share. Photographs and the DIMACS file are read from $SETWISE_DATA, if it is set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import maxflow as pymaxflow
import numpy as np

import setwise as sw
from setwise.inference import FlowGraph, maxflow

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.expansion import scene
from benchmarks.shared.flows import read_dimacs
from benchmarks.shared.measure import (
    RESULTS,
    alternate,
    arguments,
    as_ratio,
    as_seconds,
    ratio,
    report,
    require_close,
)
from benchmarks.shared.two_labels import (
    Cut,
    blobs,
    by_pymaxflow,
    by_pymaxflow_grid,
    by_setwise,
    by_setwise_with_edges,
    photographs,
    random_cut,
    seeds,
)


class Rows:
    """One row per goal: what was measured, the share, the goal, and whether it is met."""

    def __init__(self) -> None:
        self.table = [["call", "setwise", "beside", "which", "share", "goal", "met"]]
        self.data: list[dict[str, object]] = []

    def add(self, call: str, ours: str, theirs: str, which: str, share: dict, goal: float) -> None:
        met = "yes" if share["median"] <= goal else "NO"
        self.table.append([call, ours, theirs, which, as_ratio(share), f"{goal:g}", met])
        self.data.append({"call": call, "beside": which, "share": share, "goal": goal})

    def time(
        self,
        call: str,
        which: str,
        ours: Callable[[], object],
        theirs: Callable[[], object],
        goal: float,
        *,
        repeats: int,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        """Time both contenders in turn and return the ratio of our time to theirs."""
        seconds = alternate({"ours": ours, "theirs": theirs}, repeats=repeats, clock=clock)
        middle = [as_seconds(float(np.median(seconds[who]))) for who in ("ours", "theirs")]
        self.add(call, *middle, which, ratio(seconds["ours"], seconds["theirs"]), goal)


def cuts(rows: Rows, *, quick: bool) -> None:
    """Measure two labels: photographs, random pictures, eight neighbours, volumes."""
    repeats = 3 if quick else 7
    problems: list[tuple[str, Cut, float]] = []
    sides = [256] if quick else [256, 512, 1000, 1024, 2000, 4000]
    for side in sides:
        goal = 1.0 if side < 1000 else 0.6
        problems += [(f"photograph {k}, {side}²", c, goal) for k, c in photographs(side)]
    for side in [200] if quick else [1000, 2000, 4000]:
        problems += [
            (f"random, {side}²", random_cut((side, side), 4), 0.6),
            (f"blobs, {side}²", blobs((side, side), 4), 0.6),
        ]
    side = 128 if quick else 512
    problems += [(f"eight neighbours, blobs, {side}²", blobs((side, side), 8), 0.7)]
    for name, cut in photographs(side, 8, most=2):
        problems.append((f"eight neighbours, photograph {name}, {side}²", cut, 0.7))
    for side in [32] if quick else [32, 64, 128, 192, 256]:
        goal = 1.0 if side < 64 else 0.6
        problems.append((f"volume, blobs, {side}³", blobs((side,) * 3, 6), goal))
        problems.append((f"volume, random, {side}³", random_cut((side,) * 3, 6), goal))
    usual = repeats
    for name, cut, goal in problems:
        repeats = usual if len(cut.unary) < 3e6 else 3
        values = [call(cut) for call in (by_setwise, by_pymaxflow, by_pymaxflow_grid)]
        require_close(name, values[0], values[1], 1e-9)
        require_close(name, values[0], values[2], 1e-9)
        rows.time(
            f"solve_map, {name}",
            "PyMaxflow, edges",
            partial(by_setwise, cut),
            partial(by_pymaxflow, cut),
            goal,
            repeats=repeats,
        )
        rows.time(
            f"grid_edges and solve_map, {name}",
            "PyMaxflow, grid",
            partial(by_setwise_with_edges, cut),
            partial(by_pymaxflow_grid, cut),
            0.8,
            repeats=repeats,
        )
    side = 200 if quick else 1000
    apart = seeds(side)
    require_close("two seeds", by_setwise(apart), by_pymaxflow(apart), 1e-9)
    rows.time(
        f"solve_map, two distant seeds, no unaries, {side}²",
        "PyMaxflow, edges",
        partial(by_setwise, apart),
        partial(by_pymaxflow, apart),
        1.0,
        repeats=repeats,
    )


MEMORY = """
import sys; sys.path.insert(0, {here!r})
from benchmarks.shared.two_labels import {call}, {make}
cut = {make}({shape}, {connectivity})
import gc; gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])
{call}(cut)
after = int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
print((after - before) * 1024 / len(cut.unary))
"""


def memory(rows: Rows, *, quick: bool) -> None:
    """Measure peak bytes per pixel beyond the user's arrays, on Linux only."""
    if sys.platform != "linux":
        return
    problems = (
        ("random", "random_cut", (300 if quick else 1500,) * 2, 4, 200),
        ("volume, blobs", "blobs", (48 if quick else 256,) * 3, 6, 60),
    )
    for name, make, shape, connectivity, goal in problems:

        def of(call: str, make=make, shape=shape, connectivity=connectivity) -> float:
            values = {"call": call, "make": make, "shape": shape, "connectivity": connectivity}
            code = MEMORY.format(here=str(RESULTS.parents[1]), **values)
            command = [sys.executable, "-c", code]
            return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

        ours, theirs = of("by_setwise"), of("by_pymaxflow")
        share = dict.fromkeys(("median", "low", "high"), ours / goal)
        what = f"bytes per pixel of solve_map, {name}, {shape[0]}{'²³'[len(shape) - 2]}"
        both = f"{ours:.0f}", f"{theirs:.0f} (PyMaxflow)"
        rows.add(what, *both, f"the goal, {goal}", share, 1.0)


def grid_flows(rows: Rows, *, quick: bool) -> None:
    """Measure `FlowGraph.grid` in three dimensions against our edge list and PyMaxflow."""
    side, repeats = (24, 2) if quick else (128, 3)
    for neighbors in (6, 26):
        cut = blobs((side,) * 3, neighbors)
        offsets = np.array([np.argwhere(s)[0] - 1 for _, s in cut.images])
        weights = np.stack([w for w, _ in cut.images])
        source, sink = (cut.unary[:, k].reshape(cut.shape) for k in (1, 0))

        def build(offsets=offsets, weights=weights, source=source, sink=sink, cut=cut):
            graph = FlowGraph.grid(cut.shape, weights, offsets=offsets)
            graph.set_terminals(source, sink)
            return graph

        def list_build(cut=cut, source=source, sink=sink):
            graph = FlowGraph(len(cut.unary), cut.edges, cut.weights, cut.weights)
            graph.set_terminals(source.ravel(), sink.ravel())
            return graph

        def solved(make):
            graph = make()
            return graph.solve(), graph.mask

        value = build().solve()
        require_close("the edge list", value, list_build().solve(), 1e-9)
        require_close("PyMaxflow", value, by_pymaxflow(cut), 1e-9)
        name = f"FlowGraph.grid, {side}³, {neighbors} neighbours"
        ours, listed = partial(solved, build), partial(solved, list_build)
        rows.time(f"{name}, build", "the edge list", build, list_build, 1.0, repeats=repeats)
        rows.time(f"{name}, all", "the edge list", ours, listed, 1.0, repeats=repeats)
        for peer, call in (("edges", by_pymaxflow), ("grid", by_pymaxflow_grid)):
            theirs = partial(call, cut)
            rows.time(f"{name}, all", f"PyMaxflow, {peer}", ours, theirs, 1 / 3, repeats=repeats)


def threads(rows: Rows, *, quick: bool) -> None:
    """Measure two threads against one in wall time, which needs two idle cores."""
    problems = [
        ("random, 2000²", random_cut((2000, 2000), 4)),
        ("blobs, 2000²", blobs((2000, 2000), 4)),
        ("random, 128³", random_cut((128,) * 3, 6)),
        ("blobs, 128³", blobs((128,) * 3, 6)),
        *((f"photograph {k}, 2000²", c) for k, c in photographs(2000)),
    ]
    for name, cut in [("blobs, 200²", blobs((200, 200), 4))] if quick else problems:
        weights = np.stack([w for w, _ in cut.images])
        offsets = np.array([np.argwhere(s)[0] - 1 for _, s in cut.images])
        source, sink = (cut.unary[:, k].reshape(cut.shape) for k in (1, 0))
        seconds: dict[int, list[float]] = {1: [], 2: []}
        values = set()
        for n_jobs in (1, 2) * (3 if quick else 6):
            graph = FlowGraph.grid(cut.shape, weights, offsets=offsets)
            graph.set_terminals(source, sink)
            start = time.perf_counter()
            values.add(graph.solve(n_jobs=n_jobs))
            seconds[n_jobs].append(time.perf_counter() - start)
        if len(values) > 1:
            sys.exit(f"{name}: two threads give another value than one")
        one, two = (np.array(seconds[k][1:]) for k in (1, 2))
        middle = [as_seconds(float(np.median(x))) for x in (two, one)]
        what = f"FlowGraph.solve, {name}, two threads (wall)"
        rows.add(what, *middle, "one thread", ratio(two, one), 1 / 1.5)
        field = sw.fields.Field(cut.unary) + sw.fields.Potts(cut.edges, cut.weights)
        rows.time(
            f"solve_map, {name}, two threads (wall)",
            "one thread",
            partial(by_jobs, field, 2),
            partial(by_jobs, field, 1),
            1 / 1.5,
            repeats=3 if quick else 5,
            clock=time.perf_counter,
        )


def by_jobs(field: sw.fields.Field, n_jobs: int) -> float:
    return sw.solve_map(field, n_jobs=n_jobs).value


FIRST = """
import sys; sys.path.insert(0, {here!r})
from time import process_time
from benchmarks.shared.two_labels import by_setwise, random_cut
by_setwise(random_cut((8, 8), 4))
cut = random_cut(({side}, {side}), 4)
times = []
for _ in range(6):
    start = process_time()
    by_setwise(cut)
    times.append(process_time() - start)
print(times[0] / sorted(times[1:])[2])
"""


def first_call(rows: Rows, *, quick: bool) -> None:
    """Compare the first large cut with the median of the next five, in five processes."""
    side = 200 if quick else 1000
    command = [sys.executable, "-c", FIRST.format(here=str(RESULTS.parents[1]), side=side)]
    shares = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(2 if quick else 5)
    ]
    share = {"median": float(np.median(shares)), "low": min(shares), "high": max(shares)}
    # Differences below the timer's noise do not count.
    rows.add(f"the first solve_map of a process, random, {side}²", "", "", "the next", share, 1.05)


def many_labels(side: int, labels: int) -> sw.fields.Field:
    unary, picture = scene((side, side))
    edges = sw.fields.grid_edges((side, side))
    weights = 2.0 * (0.2 + sw.fields.contrast_weights(picture, edges))
    flat = unary[..., :labels].reshape(-1, labels)
    return sw.fields.Field(flat) + sw.fields.Potts(edges, weights)


def depths(side: int, labels: int, *, structure: bool) -> sw.fields.Field:
    """Measure depth labels with a truncated linear cost, linear up to two as in stereo.

    The unaries are depths with noise, or noise alone.
    """
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side]
    depth = (x * 4 // side + 4 * (y * 3 // side)) % labels
    steps = np.abs(depth.reshape(-1, 1) - np.arange(labels))
    unary = np.minimum(steps, 4) * 0.5 + rng.normal(size=(side**2, labels))
    if not structure:
        unary = 4.0 * rng.random((side**2, labels))
    table = np.minimum(np.abs(np.subtract.outer(np.arange(labels), np.arange(labels))), 2.0)
    edges = sw.fields.grid_edges((side, side))
    return sw.fields.Field(unary) + sw.fields.Pairwise(edges, table)


# The relative gaps of the same calls at commit a5ef981, before messages computed the bounds. A
# faster call must not have a wider gap.
BEFORE = {"21 labels": 3.96e-3, "16 labels, truncated linear, noise": 2.07e-2}


def certificates(rows: Rows, *, quick: bool) -> None:
    """Measure the default call against its moves alone, and its gap against a full search."""
    side, half = (64, 32) if quick else (256, 128)
    problems = (
        (side, "21 labels", many_labels(side, 21), 5.0),
        (half, "16 labels, truncated linear", depths(half, 16, structure=True), 10.0),
        (half, "16 labels, truncated linear, noise", depths(half, 16, structure=False), 10.0),
    )
    for size, name, field, goal in problems:
        moves = partial(sw.solve_map, field, "expansion", tol=np.inf, n_jobs=1)
        default = partial(sw.solve_map, field, n_jobs=1)
        rows.time(f"solve_map, {size}², {name}", "the moves alone", default, moves, goal, repeats=3)
        if name not in BEFORE:
            continue
        gap = default().relative_gap
        share = dict.fromkeys(("median", "low", "high"), gap / BEFORE[name])
        both = f"{gap:.2e}", f"{BEFORE[name]:.2e}"
        rows.add(f"relative gap of solve_map, {size}², {name}", *both, "before", share, 1.2)


def layers(rows: Rows, *, quick: bool) -> None:
    """Compare expansion with three layers of regions with the grid alone."""
    shape, labels = ((60, 80) if quick else (213, 320)), 5
    y, x = np.mgrid[: shape[0], : shape[1]].reshape(2, -1)
    unary, picture = scene(shape)
    edges = sw.fields.grid_edges(shape)
    weights = 0.2 + sw.fields.contrast_weights(picture, edges)
    grid = sw.fields.Field(unary[..., :labels].reshape(-1, labels)) + sw.fields.Potts(
        edges, weights
    )
    potentials = {
        "RegionConsistency": partial(sw.fields.RegionConsistency, weight=1.0, alpha=0.8),
        "RobustPn": partial(sw.fields.RobustPn, weight=1.0, truncation=0.3, relative=True),
    }
    for kind, potential in potentials.items():
        field = grid
        for side in (12, 24, 60):
            regions = (y // side) * (shape[1] // side + 1) + (x + side) // side
            field = field + potential(regions)
        rows.time(
            f"expansion, five labels, three layers of {kind}",
            "the grid alone",
            partial(sw.solve_map, field, "expansion", tol=np.inf, n_jobs=1),
            partial(sw.solve_map, grid, "expansion", tol=np.inf, n_jobs=1),
            5.0,
            repeats=3,
        )


def dimacs(rows: Rows, *, quick: bool) -> None:
    path = Path(os.environ.get("SETWISE_DATA", "")) / "maxflow" / "gl1.max.gz"
    if "SETWISE_DATA" not in os.environ or not path.exists():
        return
    n, edges, capacities, source, sink = read_dimacs(path)

    def ours() -> float:
        return maxflow(edges, capacities, n=n, source=source, sink=sink).value

    def theirs() -> float:
        graph = pymaxflow.Graph[float](n, len(edges))
        graph.add_nodes(n)
        graph.add_edges(edges[:, 0], edges[:, 1], capacities, np.zeros(len(edges)))
        graph.add_tedge(source, capacities.sum(), 0)
        graph.add_tedge(sink, 0, capacities.sum())
        return graph.maxflow()

    require_close("gl1", ours(), theirs(), 0)
    repeats = 3 if quick else 9
    rows.time("maxflow, DIMACS gl1", "PyMaxflow, edges", ours, theirs, 0.9, repeats=repeats)


def growth(*, quick: bool) -> dict[str, list[tuple[int, float]]]:
    """Return seconds for several sizes (two labels, also with PyMaxflow) and numbers of labels."""
    grown: dict[str, list[tuple[int, float]]] = {"solve_map": [], "PyMaxflow": [], "labels": []}
    for side in (64, 128) if quick else (64, 128, 256, 512, 1000, 1414, 2000):
        cut = blobs((side, side), 4)
        both = {"solve_map": partial(by_setwise, cut), "PyMaxflow": partial(by_pymaxflow, cut)}
        seconds = alternate(both, repeats=3, clock=time.process_time)
        for who, times in seconds.items():
            grown[who].append((side**2, float(np.median(times))))
    for labels in (3, 6) if quick else (3, 5, 8, 12, 16, 21):
        field = many_labels(64 if quick else 128, labels)
        call = partial(sw.solve_map, field, n_jobs=1)
        seconds = alternate({"labels": call}, repeats=3, clock=time.process_time)
        grown["labels"].append((labels, float(np.median(seconds["labels"]))))
    return grown


def plot(grown: dict[str, list[tuple[int, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for who, mark in (("solve_map", "o-"), ("PyMaxflow", "s--")):
        pixels, seconds = np.array(grown[who]).T
        axes[0].loglog(pixels, seconds, mark, label=who)
    pixels, seconds = np.array(grown["solve_map"]).T
    axes[0].loglog(pixels, seconds[0] * pixels / pixels[0], ":", color="0.4", label="linear")
    axes[0].set(xlabel="pixels", ylabel="seconds, one thread", title="Two labels, from arrays")
    axes[0].legend()
    labels, seconds = np.array(grown["labels"]).T
    axes[1].plot(labels, seconds, "o-")
    axes[1].set(xlabel="labels", ylim=(0, None), title="128 x 128, bound included")
    figure.savefig(RESULTS / "front_door_growth.png", dpi=150, metadata={"Software": None})


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    rows = Rows()
    for part in (threads, cuts, memory, first_call, grid_flows, certificates, layers, dimacs):
        part(rows, quick=args.quick)
    grown = growth(quick=args.quick)
    rows.data.append({"growth": grown})
    if not args.quick:
        plot(grown)
    goals = [row[-1] for row in rows.table[1:]]
    notes = [f"{goals.count('yes')} of {len(goals)} goals met."]
    notes.append(
        "Processor time of one thread, the calls from Python included; threads by the wall."
    )
    report("front_door", rows.table, rows.data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
