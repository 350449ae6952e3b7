"""How much memory a call takes at its peak, beyond the arrays that the user holds.

Each call runs in a process of its own, at two sizes, on one thread. The first figure is the
difference of the two peaks divided by the difference of the sizes, in bytes per unit of the last
column; the second is the peak at the larger size. Linux only. The peaks do not depend on other
programs that run at the same time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, nothing_to_measure, report

GRID = """
edges = sw.fields.grid_edges({shape})
field = sw.fields.Field(rng.normal(size=(n, {labels}))) + sw.fields.Potts(edges, 0.5)
"""
SQUARE = "side = round(n ** (1 / 2)); n = side**2"
CUBE = "side = round(n ** (1 / 3)); n = side**3"
TABLE = "X = rng.normal(size=(n, 20)); Y = X @ rng.normal(size=(20, 10)) > 1"


@dataclass(frozen=True)
class Case:
    """A call, what is made before it, two sizes n, and the number of units at a size."""

    name: str
    before: str
    call: str
    sizes: tuple[int, int]
    per: int
    unit: str


def grid(side: str, dimensions: int, labels: int) -> str:
    """Return the code of a field on a square or a cube, with random costs."""
    shape = "(" + "side, " * dimensions + ")"
    return side + GRID.format(shape=shape, labels=labels)


CASES = (
    Case(
        "solve_map, two labels, one piece",
        grid(SQUARE, 2, 2),
        "sw.solve_map(field, n_jobs=1)",
        (250_000, 810_000),
        1,
        "pixel",
    ),
    Case(
        "solve_map, two labels, in blocks",
        grid(CUBE, 3, 2),
        "sw.solve_map(field, n_jobs=1)",
        (1_000_000, 4_096_000),
        1,
        "voxel",
    ),
    Case(
        "solve_map, five labels",
        grid(SQUARE, 2, 5),
        "sw.solve_map(field, n_jobs=1, tol=0.05)",
        (40_000, 160_000),
        5,
        "pixel and label",
    ),
    Case(
        "solve_map, twenty labels",
        grid(SQUARE, 2, 20),
        "sw.solve_map(field, n_jobs=1, tol=0.05)",
        (40_000, 160_000),
        20,
        "pixel and label",
    ),
    Case(
        "EditableCut, costs in int8",
        CUBE + "; unary = rng.integers(-9, 9, (side,) * 3, dtype=np.int8)",
        "sw.inference.EditableCut(unary, 2, n_jobs=1)",
        (9_261_000, 15_625_000),
        1,
        "voxel",
    ),
    Case(
        "maxflow, any graph",
        "edges = rng.integers(0, n // 4, (n, 2)); edges = edges[edges[:, 0] != edges[:, 1]];"
        "capacities = rng.integers(0, 9, len(edges))",
        "sw.inference.maxflow(edges, capacities, source=0, sink=1, n_jobs=1)",
        (400_000, 1_600_000),
        1,
        "edge",
    ),
    Case(
        "marginals, projection, five labels",
        grid(SQUARE, 2, 5),
        "sw.marginals(field, 'projection', n_jobs=1, max_iter=3)",
        (40_000, 160_000),
        5,
        "pixel and label",
    ),
    Case(
        "marginals, trees, five labels",
        grid(SQUARE, 2, 5),
        "sw.marginals(field, 'trees', n_jobs=1, max_iter=3)",
        (40_000, 160_000),
        5,
        "pixel and label",
    ),
    Case(
        "diverse, five labellings of two labels",
        grid(SQUARE, 2, 2),
        "sw.diverse(field, 5, sw.diversities.DivMBest(0.1), n_jobs=1)",
        (40_000, 160_000),
        1,
        "pixel",
    ),
    Case(
        "decide, Jaccard, one set",
        "p = rng.random(n)",
        "sw.decide(p, 'jaccard')",
        (100_000, 400_000),
        1,
        "element",
    ),
    Case(
        "SetClassifier, 20 features, 10 labels",
        TABLE,
        "sw.SetClassifier('jaccard', C=0.1, max_iter=20).fit(X, Y)",
        (50_000, 200_000),
        1,
        "row",
    ),
    Case(
        "StructBoostClassifier, 20 features, 10 classes, 10 rounds",
        TABLE + "; y = (X @ rng.normal(size=(20, 10))).argmax(1)",
        "sw.StructBoostClassifier(n_estimators=10, C=10.0).fit(X, y)",
        (10_000, 40_000),
        1,
        "row",
    ),
)

PEAK = """
import gc, warnings
import numpy as np
import setwise as sw
warnings.simplefilter("ignore")
def prepare(n):
    rng = np.random.default_rng(0)
    {before}
    return n, locals()
def kib(word):
    return int(next(l for l in open("/proc/self/status") if l.startswith(word)).split()[1])
_, small = prepare(64); exec({call!r}, {{"sw": sw, "np": np}}, small)  # loads what it needs
n, held = prepare({n})
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = kib("VmRSS")
exec({call!r}, {{"sw": sw, "np": np}}, held)
print(n, (kib("VmHWM") - before) * 1024)
"""


def peak(case: Case, n: int) -> tuple[int, int]:
    """Return the size that was made, and the bytes that the call took beyond what was held."""
    before = case.before.strip().replace("\n", "\n    ")
    code = PEAK.format(before=before, call=case.call, n=n)
    command = [sys.executable, "-c", code]
    # With a fixed threshold glibc returns each freed array to the system at once.
    settings = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=settings)
    size, taken = map(int, run.stdout.split())
    return size, taken


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    if sys.platform != "linux":
        nothing_to_measure("peaks are read from /proc, on Linux alone")
    table = [["call", "bytes per unit", "peak", "at", "unit"]]
    data = []
    for case in CASES:
        sizes = tuple(n // 20 for n in case.sizes) if args.quick else case.sizes
        (small, least), (large, most) = (peak(case, n) for n in sizes)
        slope = (most - least) / ((large - small) * case.per)
        units = large * case.per
        table.append(
            [case.name, f"{slope:.0f}", f"{most / 2**20:.0f} MiB", f"{units:,} units", case.unit]
        )
        data.append(
            {"call": case.name, "slope": slope, "sizes": [small, large], "peaks": [least, most]}
        )
        print(*table[-1], sep=" | ", flush=True)
    measured = "Peaks beyond the user's arrays, each in a process of its own, one thread"
    report("memory", table, data, measured=measured, quick=args.quick)


if __name__ == "__main__":
    main()
