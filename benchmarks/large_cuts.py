"""`solve_map` on large grids of two labels: against an older build, on two threads, and its memory.

    python benchmarks/large_cuts.py before --old OLD/src [--only blobs 2000]
    python benchmarks/large_cuts.py threads memory

An older build is the `src` of another tree with its compiled module. Each build has a process of
its own, which stays alive. Both make the same problem, and then they solve it in turn: old, new,
new, old, ... Their values must agree. Times of one thread are processor time, those of two threads
are seconds on the clock, with one thread and two threads in turn.

The parts may be run one by one, and `--only` takes the problems whose names contain all of some
words, so that each run is short. Rows of earlier runs are kept if they come from the same commit,
processor and versions. Photographs are read from $SETWISE_DATA, if it is set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.side_by_side import ROOT, Build

PHOTOGRAPHS = ("106024", "124084", "153077")
LARGE = 1_000_000  # voxels from which two threads have a goal
GOALS = {"mean": 0.8, "row": 1.05, "noise": 1.1, "threads": 1 / 1.5, "bytes": 60.0}


def problems(*, quick: bool) -> dict[str, tuple[str, int, int]]:
    """Return kind, side and number of axes of each problem by its name."""
    flat, deep = ((200,), (32,)) if quick else ((2000, 4000), (128, 192, 256))
    found = {}
    side = 100 if quick else 1000
    for kind in ("regions", "label costs"):
        found[f"blobs with {kind}, {side}²"] = (kind, side, 2)
    for kind in ("blobs", "noise"):
        found |= {f"{kind}, {side}²": (kind, side, 2) for side in flat}
        found |= {f"{kind}, {side}³": (kind, side, 3) for side in deep}
    if "SETWISE_DATA" in os.environ:
        for name in PHOTOGRAPHS:
            found |= {f"photograph {name}, {side}²": (name, side, 2) for side in flat}
    return found


def make(kind: str, side: int, axes: int) -> Any:
    """Return the arrays of a problem."""
    from benchmarks.shared.two_labels import blobs, photographs, random_cut

    if kind in PHOTOGRAPHS:
        return dict(photographs(side, names=[kind]))[kind]
    return (random_cut if kind == "noise" else blobs)((side,) * axes, 2 * axes)


def field_of(cut: Any, kind: str) -> Any:
    """Return the field of a problem."""
    import setwise as sw

    field = sw.fields.Field(cut.unary) + sw.fields.Potts(cut.edges, cut.weights)
    if kind == "label costs":
        field = field + sw.fields.LabelCost([5.0, 7.0])
    if kind == "regions":
        y, x = np.indices(cut.shape).reshape(2, -1)
        for side in (12, 60, cut.shape[0]):
            numbers = y // side * (cut.shape[1] // side + 1) + x // side
            field = field + sw.fields.RegionConsistency(numbers, weight=1.0, alpha=0.8)
    return field


def child() -> None:
    """Answer requests for calls until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr
    import gc

    import benchmarks.shared.chosen_build
    import benchmarks.shared.measure  # noqa: F401  one thread
    import setwise as sw

    hello = {"package": str(Path(sw.__file__).resolve().parent), "names": []}
    print(json.dumps(hello), file=answers, flush=True)
    known, cut, field = None, None, None

    def from_arrays() -> float:
        return sw.solve_map(field_of(cut, known[0]), n_jobs=1).value

    def from_field(n_jobs: int) -> float:
        return sw.solve_map(field, n_jobs=n_jobs).value

    for line in sys.stdin:
        problem, n_jobs = json.loads(line)
        if problem != known:
            cut = field = None
            gc.collect()
            known, cut = problem, make(*problem)
            field = field_of(cut, known[0])
        call: Callable[[], float] = partial(from_field, n_jobs) if n_jobs else from_arrays
        clock = time.perf_counter if n_jobs else time.process_time
        gc.collect()
        start = clock()
        value = call()
        seconds = clock() - start
        print(json.dumps({"seconds": seconds, "value": value}), file=answers, flush=True)


def in_turn(
    ask: list[Callable[[], dict[str, float]]], repeats: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the seconds of two contenders after a warm-up."""
    values = [one()["value"] for one in ask]
    if not abs(values[0] - values[1]) <= 1e-9 * abs(values[0]):
        sys.exit(f"{name}: the energies differ: {values}")
    seconds = np.empty((2, repeats))
    for k in range(repeats):
        for which in (0, 1) if k % 2 == 0 else (1, 0):
            seconds[which, k] = ask[which]()["seconds"]
    return seconds[0], seconds[1]


def row(part: str, name: str, ours: np.ndarray, theirs: np.ndarray) -> dict[str, object]:
    from benchmarks.shared.measure import ratio

    middle = {"ours": float(np.median(ours)), "theirs": float(np.median(theirs))}
    return {"part": part, "problem": name, **middle, "share": ratio(ours, theirs)}


def before(chosen: dict[str, tuple], old: Path, repeats: int) -> list[dict[str, object]]:
    """Return the time from arrays to a result as a share of that of an older build."""
    builds = [Build(source, Path(__file__), []) for source in (ROOT / "src", old.resolve())]
    rows = []
    for name, problem in chosen.items():
        ours, theirs = in_turn([partial(build.ask, problem, 0) for build in builds], repeats, name)
        rows.append(row("before", name, ours, theirs))
        show(rows[-1])
    for build in builds:
        build.close()
    return rows


def threads(chosen: dict[str, tuple], repeats: int) -> list[dict[str, object]]:
    """Return the time of two threads on the clock as a share of that of one thread."""
    build = Build(ROOT / "src", Path(__file__), [])
    rows = []
    for name, problem in chosen.items():
        two, one = in_turn([partial(build.ask, problem, jobs) for jobs in (2, 1)], repeats, name)
        rows.append(row("threads", name, two, one))
        show(rows[-1])
    build.close()
    return rows


MEMORY = """
import sys; sys.path.insert(0, {here!r})
import benchmarks.shared.chosen_build
import setwise as sw
from benchmarks.large_cuts import field_of, make
cut = make(*{problem})
field = field_of(cut, "blobs")
import gc; gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])
sw.solve_map(field, n_jobs={jobs})
after = int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
print((after - before) * 1024 / len(cut.unary))
"""


def memory(chosen: dict[str, tuple]) -> list[dict[str, object]]:
    """Return the peak bytes per voxel of `solve_map` beside the caller's arrays, on Linux."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    rows = []
    for name, problem in chosen.items():
        for jobs in (1, 2):
            code = MEMORY.format(here=str(ROOT), problem=problem, jobs=jobs)
            command = [sys.executable, "-c", code]
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment
            )
            what = f"{name}, {'one thread' if jobs == 1 else 'two threads'}"
            rows.append({"part": "memory", "problem": what, "bytes": float(done.stdout)})
            show(rows[-1])
    return rows


def show(line: dict[str, Any]) -> None:
    print(line["part"], line["problem"], line.get("share") or f"{line['bytes']:.0f}", flush=True)


def kept(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, after those of earlier runs in the same environment."""
    from benchmarks.shared.measure import RESULTS, environment

    path = RESULTS / "large_cuts.json"
    if not path.exists():
        return rows
    earlier = json.loads(path.read_text(encoding="utf-8"))
    if earlier["environment"] != json.loads(json.dumps(environment())):
        return rows
    fresh = {(line["part"], line["problem"]) for line in rows}
    return [x for x in earlier["data"] if (x["part"], x["problem"]) not in fresh] + rows


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each goal of which something was measured."""
    notes = []

    def note(what: str, figure: float, goal: float, form: str = ".2f") -> None:
        met = "met" if figure <= goal else "NOT met"
        notes.append(f"{what}: {figure:{form}} against a goal of {goal:.3g}: {met}")

    shares = {x["problem"]: x["share"]["median"] for x in rows if x["part"] == "before"}
    goal = ("blobs, ", "photograph")
    usual = [share for name, share in shares.items() if name.startswith(goal)]
    noise = [share for name, share in shares.items() if name.startswith("noise")]
    if usual:
        note(
            "photographs and blobs, geometric mean of the share of the older build's time",
            float(np.exp(np.mean(np.log(usual)))),
            GOALS["mean"],
        )
        note("the largest share of a photograph or blobs", max(usual), GOALS["row"])
    if noise:
        note("the largest share of noise", max(noise), GOALS["noise"])
    two = [x["share"]["median"] for x in rows if x["part"] == "threads"]
    if two:
        note("the largest share of two threads in the time of one", max(two), GOALS["threads"])
    used = [x["bytes"] for x in rows if x["part"] == "memory"]
    if used:
        note("peak bytes per voxel of solve_map", max(used), GOALS["bytes"], ".0f")
    return notes


def main() -> None:
    from benchmarks.shared.measure import as_ratio, as_seconds, report

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="before, threads, memory; all of them by default")
    parser.add_argument("--old", type=Path, help="the src of an older build, for `before`")
    parser.add_argument("--only", nargs="+", default=[], help="words in the names of problems")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a few seconds, nothing written")
    args = parser.parse_args()
    parts = args.parts or ["before", "threads", "memory"]
    if unknown := set(parts) - {"before", "threads", "memory"}:
        parser.error(f"parts must be before, threads or memory, got {', '.join(unknown)}")
    chosen = {
        name: problem
        for name, problem in problems(quick=args.quick).items()
        if all(word in name for word in args.only)
    }
    repeats = 2 if args.quick else args.repeats
    rows: list[dict[str, Any]] = []
    if "before" in parts and args.old is None:
        print("the older build is left out: --old names its src")
    elif "before" in parts:
        rows += before(chosen, args.old, repeats)
    if "threads" in parts:
        large = {name: p for name, p in chosen.items() if args.quick or p[1] ** p[2] > LARGE}
        rows += threads(large, repeats)
    if "memory" in parts and sys.platform == "linux":
        volumes = {name: p for name, p in chosen.items() if p[0] == "blobs"}
        rows += memory(volumes)
    if not args.quick:
        rows = kept(rows)
    heads = {"before": "the older build", "threads": "one thread, on the clock", "memory": ""}
    table = [["grid", "setwise", "beside", "which", "share"]]
    for line in rows:
        if line["part"] == "memory":
            table.append([line["problem"], f"{line['bytes']:.0f} bytes per voxel", "", "", ""])
            continue
        both = [as_seconds(line[who]) for who in ("ours", "theirs")]
        table.append([line["problem"], *both, heads[line["part"]], as_ratio(line["share"])])
    report("large_cuts", table, rows, notes=verdicts(rows), quick=args.quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child()
    else:
        main()
