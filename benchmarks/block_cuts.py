"""Two labels on large grids: time, memory and open voxels of cuts in blocks, as the grid grows.

Each grid is cut in blocks, which is what `solve_map` does, and in one piece, by the same build in
turn. The open share is the part of the voxels that no block has decided, before the rest is cut.
The last rows are independent noise with stiff edges in three dimensions, where blocks decide
little. Photographs are read from $SETWISE_DATA, if it is set.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from setwise import _core
from setwise.fields._edges import grid_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import (
    RESULTS,
    alternate,
    arguments,
    as_ratio,
    as_seconds,
    ratio,
    report,
)
from benchmarks.shared.two_labels import Cut, blobs, photographs, random_cut

LEAST_MEMORY = 60.0  # the goal: bytes per voxel beyond the caller's arrays


def stiff(side: int) -> Cut:
    """Return noise in a cube with one weight of 0.5, where labels depend on voxels far away."""
    cut = random_cut((side,) * 3, 6)
    rng = np.random.default_rng(1)
    unary = np.stack([np.zeros(side**3), rng.normal(size=side**3)], axis=1)
    return Cut(cut.shape, 6, unary, cut.edges, np.full(len(cut.edges), 0.5))


def problems(*, quick: bool) -> Iterator[tuple[str, Cut]]:
    """Yield the grids by kind, small ones first."""
    flat = (200, 300) if quick else (500, 1000, 2000, 4000)
    deep = (32, 48) if quick else (64, 96, 128, 192, 256)
    for side in flat:
        yield f"blobs, {side}²", blobs((side, side), 4)
    for side in flat[-3:-1]:
        for name, cut in photographs(side, most=2):
            yield f"photograph {name}, {side}²", cut
    for side in deep:
        yield f"blobs, {side}³", blobs((side,) * 3, 6)
    for side in deep[:3]:
        yield f"noise, {side}³", random_cut((side,) * 3, 6)
    for side in deep[:2]:
        yield f"stiff noise, {side}³", stiff(side)


def solve(cut: Cut, block: int) -> np.ndarray:
    """Return the labels by blocks of about ``block`` voxels; 0 stands for the default size."""
    grid = grid_of(cut.edges)
    assert grid is not None
    labels, answer = np.empty(len(cut.unary), np.int64), np.empty(5)
    sides, steps = np.array(grid.sides), np.array(grid.steps)
    arrays = cut.unary, sides, steps, cut.weights, labels, answer
    assert _core.cut_grid(*arrays, 1, block=block, halo=16)
    return labels


def open_share(cut: Cut, side: int) -> float:
    """Return the share of the voxels that one pass of blocks of a side leaves open."""
    grid = grid_of(cut.edges)
    assert grid is not None
    sides, steps = np.array(grid.sides), np.array(grid.steps)
    known = np.full(len(cut.unary), 2, np.uint8)
    counts = [-(-s // side) for s in grid.sides]
    for at in np.ndindex(*counts):
        box = [(s * k // c, s * (k + 1) // c) for s, k, c in zip(sides, at, counts, strict=True)]
        arrays = cut.unary, sides, steps, cut.weights, known, np.array(box)
        _core.cut_window(*arrays, 16, float(cut.weights.max()))
    return float((known > 1).mean())


MEMORY = """
import sys; sys.path.insert(0, {here!r})
import setwise as sw
from benchmarks.shared.two_labels import blobs
cut = blobs({shape}, {connectivity})
field = sw.fields.Field(cut.unary) + sw.fields.Potts(cut.edges, cut.weights)
import gc; gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])
sw.solve_map(field, n_jobs={jobs})
after = int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
print((after - before) * 1024 / len(cut.unary))
"""


def memory(shape: tuple[int, ...], connectivity: int, jobs: int = 1) -> float:
    """Return the peak bytes per voxel of `solve_map` beyond the user's arrays, on Linux."""
    here = str(RESULTS.parents[1])
    code = MEMORY.format(here=here, shape=shape, connectivity=connectivity, jobs=jobs)
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def plot(data: list[dict[str, object]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    kinds = {
        "blobs, 2-D": ("blobs", "²"),
        "blobs, 3-D": ("blobs", "³"),
        "noise, 3-D": ("noise", "³"),
        "stiff noise, 3-D": ("stiff noise", "³"),
    }
    for name, (begin, end) in kinds.items():
        rows = [
            row
            for row in data
            if str(row["problem"]).startswith(begin + ",") and str(row["problem"]).endswith(end)
        ]
        voxels = [row["voxels"] for row in rows]
        (line,) = axes[0].loglog(voxels, [row["blocks"] for row in rows], "o-", label=name)
        color = line.get_color()
        axes[0].loglog(voxels, [row["whole"] for row in rows], ":", color=color)
        axes[2].semilogx(voxels, [100 * row["open"] for row in rows], "o-", color=color)
        known = [row for row in rows if row["memory"]]
        axes[1].semilogx(
            [row["voxels"] for row in known], [row["memory"] for row in known], "o-", color=color
        )
    axes[0].set(xlabel="voxels", ylabel="seconds, one thread", title="Blocks; dotted: one piece")
    axes[0].legend()
    axes[1].set(xlabel="voxels", ylim=(0, None), title="Peak bytes per voxel")
    axes[2].set(xlabel="voxels", ylim=(-2, 102), title="Percent left open by the blocks")
    figure.savefig(RESULTS / "block_cuts_growth.png", dpi=150, metadata={"Software": None})


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    table = [["grid", "blocks", "one piece", "share of the time", "left open", "bytes per voxel"]]
    data: list[dict[str, object]] = []
    for name, cut in problems(quick=args.quick):
        n = len(cut.unary)
        ours, whole = partial(solve, cut, 0), partial(solve, cut, n)
        if not np.array_equal(ours(), whole()):
            sys.exit(f"{name}: blocks give other labels than one piece")
        repeats = 2 if args.quick or n > 2e6 else 5
        both = {"blocks": ours, "whole": whole}
        seconds = alternate(both, repeats=repeats, clock=time.process_time)
        share = ratio(seconds["blocks"], seconds["whole"])
        left = open_share(cut, 362 if cut.connectivity == 4 else 50)
        used = None
        if name.startswith("blobs") and sys.platform == "linux":
            used = memory(cut.shape, cut.connectivity)
        middle = {who: float(np.median(times)) for who, times in seconds.items()}
        table.append(
            [
                name,
                as_seconds(middle["blocks"]),
                as_seconds(middle["whole"]),
                as_ratio(share),
                f"{100 * left:.3g} %",
                f"{used:.0f}" if used else "",
            ]
        )
        row = {"problem": name, "voxels": n, "share": share, "open": left, "memory": used}
        data.append({**row, **middle})
        print(*table[-1], flush=True)
    notes = []
    if not args.quick:
        plot(data)
        used = float(next(row for row in data if row["problem"] == "blobs, 256³")["memory"] or 0)
        met = "met" if used <= LEAST_MEMORY else "NOT met"
        notes.append(
            f"peak bytes per voxel of solve_map, blobs, 256³: {used:.0f} against a goal of "
            f"{LEAST_MEMORY:g}: {met}"
        )
    report("block_cuts", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
