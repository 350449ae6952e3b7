"""Time several contenders on one problem, in turn, and store the results.

The speed of a machine varies, so a single time says little. Therefore every repeat runs all
contenders on the same input, one right after the other, and the ratio of successive times is
reported: its median and its range over the repeats. One thread is used, unless the question is
about threads. A single thread may be timed by ``time.process_time``, in which other programs on a
shared machine do not count.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import metadata
from itertools import cycle
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import setwise as sw

RESULTS = Path(__file__).resolve().parents[1] / "results"
PACKAGES = (
    "numpy",
    "scikit-learn",
    "highspy",
    "clarabel",
    "torch",
    "segmentation-models-pytorch",
    "kornia",
    "PyMaxflow",
    "gco-wrapper",
    "ortools",
    "rankseg",
    "xcolumns",
    "pytoulbar2",
    "MAPIE",
)
THREADS = 1

with suppress(ModuleNotFoundError):  # a machine with a GPU may have only NumPy and torch
    from threadpoolctl import threadpool_limits

    threadpool_limits(THREADS)


def arguments(question: str) -> argparse.Namespace:
    """Parse the command line of a script."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="a few seconds, nothing written")
    return parser.parse_args()


def nothing_to_measure(reason: str) -> NoReturn:
    """Exit a script that lacks a device, data or a browser, with automake's status "skipped"."""
    print(reason, file=sys.stderr)
    raise SystemExit(77)


def require_close(what: str, ours: Any, theirs: Any, tolerance: float) -> float:
    """Return the 1-norm of the difference relative to theirs; fail if it exceeds the tolerance.

    Call it before any time is reported, because a fast wrong answer is worthless.
    """
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    difference = float(np.abs(ours - theirs).sum() / max(np.abs(theirs).sum(), 1e-300))
    if not difference <= tolerance:
        sys.exit(f"{what}: the answers differ by {difference:.1e}, more than {tolerance:.0e}")
    return difference


def in_turn(call: Callable[..., object], inputs: Sequence[tuple]) -> Callable[[], object]:
    """Return a call that takes the inputs in an endless cycle.

    On a single small input a branch predictor would learn the answer.
    """
    turn = cycle(inputs)
    return lambda: call(*next(turn))


def how_many(p: int) -> int:
    """Return how many inputs of p elements exceed the memory of a branch predictor."""
    return max(1, min(1000, 300_000 // p))


def alternate(
    contenders: dict[str, Callable[[], object]],
    *,
    repeats: int,
    least: float = 2e-3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, np.ndarray]:
    """Return seconds per call, one figure per repeat for each contender.

    A fast contender is called in a row until ``least`` seconds have passed. The order rotates with
    the repeats, so that the same contender does not always run before another and fill its caches.
    """
    calls = {}
    for name, contender in contenders.items():
        contender()  # warm-up: caches, tables kept by the library, pages of memory
        once = timeit.timeit(contender, timer=clock, number=1)
        calls[name] = max(1, round(least / max(once, 1e-9)))
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for repeat in range(repeats):
        turn = repeat % len(names)
        gc.collect()
        for name in names[turn:] + names[:turn]:
            total = timeit.timeit(contenders[name], timer=clock, number=calls[name])
            seconds[name].append(total / calls[name])
    return {name: np.array(times) for name, times in seconds.items()}


def ratio(theirs: np.ndarray, ours: np.ndarray) -> dict[str, float]:
    """Return the median and range over the repeats of their time divided by ours."""
    ratios = theirs / ours
    low, median, high = (float(f(ratios)) for f in (np.min, np.median, np.max))
    return {"median": median, "low": low, "high": high}


def as_ratio(r: dict[str, float]) -> str:
    """Format a ratio with its range for a table."""
    return f"{_digits(r['median'])} ({_digits(r['low'])} to {_digits(r['high'])})"


def as_seconds(seconds: float) -> str:
    """Format a time for a table."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _digits(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def verdict(reached: float, target: float) -> str:
    """Say in words whether a ratio reaches its target."""
    return f"{_digits(reached)} against a target of {target:g}: " + (
        "met" if reached >= target else "NOT met"
    )


def markdown(table: Sequence[Sequence[str]]) -> str:
    """Format a table, its head first, as markdown that is also readable in a terminal."""
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in table
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def report(
    name: str,
    table: Sequence[Sequence[str]],
    data: object,
    *,
    notes: Sequence[str] = (),
    measured: str = "Medians (range over the repeats), one thread unless a row says otherwise",
    quick: bool,
) -> None:
    """Print the table and the notes; write results/NAME.json, unless ``--quick`` was given."""
    print(markdown(table), *notes, "", sep="\n")
    if quick:
        return
    RESULTS.mkdir(exist_ok=True)
    content = {
        "name": name,
        "measured": measured,
        "environment": environment(),
        "table": table,
        "notes": notes,
        "data": data,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def environment() -> dict[str, object]:
    """Return versions, processor and commit, which a reader needs to interpret the figures."""
    versions = {"setwise": sw.__version__}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": THREADS,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "commit": _commit(),
    }


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """Return the commit, marked if the library has changed since; other files do not count."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", RESULTS.parent, *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "../src", "../cpp")
        return git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
