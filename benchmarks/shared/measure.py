"""Times answers to one question side by side, and writes down what came out.

Machines have moods: a figure alone says little. So every repeat runs all contenders on the same
input, one right after the other, and what is reported is the ratio of neighbours: its median and
its range over the repeats. One thread, unless threads are the question. One thread may be timed by
``time.process_time``: what other programs take on a shared machine does not count.
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
)
THREADS = 1

with suppress(ModuleNotFoundError):  # a machine with a GPU may have NumPy and torch alone
    from threadpoolctl import threadpool_limits

    threadpool_limits(THREADS)


def arguments(question: str) -> argparse.Namespace:
    """The command line of every script."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="a few seconds, nothing written")
    return parser.parse_args()


def nothing_to_measure(reason: str) -> NoReturn:
    """Ends a script that lacks a device, data or a browser: one line, and automake's "skipped"."""
    print(reason, file=sys.stderr)
    raise SystemExit(77)


def require_close(what: str, ours: Any, theirs: Any, tolerance: float) -> float:
    """The 1-norm of the difference relative to theirs; an error if it is over the tolerance.

    To be called before any time is reported: a fast wrong answer is no answer.
    """
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    difference = float(np.abs(ours - theirs).sum() / max(np.abs(theirs).sum(), 1e-300))
    if not difference <= tolerance:
        sys.exit(f"{what}: the answers differ by {difference:.1e}, more than {tolerance:.0e}")
    return difference


def in_turn(call: Callable[..., object], inputs: Sequence[tuple]) -> Callable[[], object]:
    """A contender that takes the inputs one after the other, for ever.

    On the same small input again and again a branch predictor would learn the answer by heart.
    """
    turn = cycle(inputs)
    return lambda: call(*next(turn))


def how_many(p: int) -> int:
    """How many inputs of p elements are more than a branch predictor remembers."""
    return max(1, min(1000, 300_000 // p))


def alternate(
    contenders: dict[str, Callable[[], object]],
    *,
    repeats: int,
    least: float = 2e-3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, np.ndarray]:
    """Seconds a call, one figure a repeat for each contender.

    A fast contender is called as often in a row as it takes to last ``least`` seconds. The order
    turns with the repeats, so that nobody always inherits the same neighbour's caches.
    """
    calls = {}
    for name, contender in contenders.items():
        contender()  # the warm-up: caches, tables kept by the library, pages of memory
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
    """How many times as long theirs took, repeat by repeat: median and range."""
    ratios = theirs / ours
    low, median, high = (float(f(ratios)) for f in (np.min, np.median, np.max))
    return {"median": median, "low": low, "high": high}


def as_ratio(r: dict[str, float]) -> str:
    """A ratio with its range, for a table."""
    return f"{_digits(r['median'])} ({_digits(r['low'])} to {_digits(r['high'])})"


def as_seconds(seconds: float) -> str:
    """A time for a table."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _digits(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def verdict(reached: float, target: float) -> str:
    """Whether a ratio reaches its target, in words."""
    return f"{_digits(reached)} against a target of {target:g}: " + (
        "met" if reached >= target else "NOT met"
    )


def markdown(table: Sequence[Sequence[str]]) -> str:
    """A table, its head first, as markdown that can also be read in a terminal."""
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
    """Prints the table and the notes; writes results/NAME.json, unless it was a quick look."""
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
    """Versions, processor, commit: what a reader needs to judge the figures, and no more."""
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
    """The commit, marked if the library differs from it; results and documents may."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", RESULTS.parent, *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "../src", "../cpp")
        return git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
