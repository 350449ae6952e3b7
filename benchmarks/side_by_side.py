"""Compare the speed of two builds on the same problems, in turn.

    python benchmarks/side_by_side.py OLD/src [NEW/src]

One process per build stays alive and receives over a pipe which problem to run (``problems``, the
timed ones, with inputs made beforehand) and how many times in a row. Rounds go old, new, new, old,
... so that variations of the machine affect both. Times are ``time.process_time``, processor time
of one thread, so that other programs do not count; their effect on caches does. For each problem
the output has the best times, the ratio new / old of the best, and the median and range of the
ratios of successive times. If both ratios are above the limit, the problem is measured again by new
processes, whose memory has other addresses, with more rounds, at most twice. A problem that is
above the limit every time is flagged, and the exit status is 1. Nothing is written. NEW defaults to
this tree.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


class Failed(Exception):
    """A problem that one of the builds cannot solve."""


class Build:
    """A process of a script that answers requests with the library of one folder."""

    def __init__(self, source: Path, script: Path, arguments: list[str]) -> None:
        self.source = source
        environment = os.environ | {"PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen(
            [sys.executable, str(script.resolve()), "--child", *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        hello = self.read()
        if Path(hello["package"]).parent != source.resolve():
            sys.exit(f"{source} was asked for, {hello['package']} was imported")
        self.names: list[str] = hello["names"]

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            sys.exit("a build ended before it answered: its error stands above")
        return json.loads(line)

    def ask(self, *request: object) -> dict:
        """Send a request and return its answer."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.read()

    def seconds(self, name: str, times: int = 1) -> float:
        """Return the processor seconds of a number of calls in a row."""
        answer = self.ask(name, times)
        if "error" in answer:
            raise Failed(f"{name} failed in {self.source}: {answer['error']}")
        return answer["seconds"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def child(modules: list[str]) -> None:
    """Answer the parent's requests until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr
    import gc

    import benchmarks.shared.chosen_build
    import benchmarks.shared.measure  # noqa: F401  one thread
    import setwise
    from benchmarks.problems import problems

    known = dict(problems("timed", modules or None))
    hello = {"package": str(Path(setwise.__file__).resolve().parent), "names": list(known)}
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        name, times = json.loads(line)
        run = known[name]
        gc.collect()
        start = time.process_time()
        try:
            for _ in range(times):
                run()
            answer = {"seconds": time.process_time() - start}
        except Exception as error:  # such as an argument that the older build lacks
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def measure(
    sources: tuple[Path, Path],
    modules: list[str],
    wanted: Iterable[str] | None,
    rounds: int,
    least: float,
) -> dict[str, np.ndarray]:
    """Return the seconds per call, (2, rounds), of the old build and of the new one."""
    builds = [Build(source, Path(__file__), modules) for source in sources]
    common = [name for name in builds[0].names if name in builds[1].names]
    found = {}
    for name in common if wanted is None else wanted:
        try:
            for build in builds:
                build.seconds(name)  # the warm-up: caches, pages of memory
            once = min(build.seconds(name) for build in builds)
        except Failed as failure:
            print(failure, file=sys.stderr, flush=True)
            continue
        times = max(1, round(least / max(once, 1e-6)))
        seconds = np.empty((2, rounds))
        for k in range(rounds):
            for which in (0, 1) if k % 2 == 0 else (1, 0):
                seconds[which, k] = builds[which].seconds(name, times) / times
        found[name] = seconds
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for build in builds:
        build.close()
    return found


def ratios(seconds: np.ndarray) -> tuple[float, np.ndarray]:
    """Return new / old of the best times, and of successive times."""
    best = seconds.min(axis=1)
    return float(best[1] / best[0]), seconds[1] / seconds[0]


def is_slower(seconds: np.ndarray, limit: float) -> bool:
    best, neighbors = ratios(seconds)
    return best > limit and bool(np.median(neighbors) > limit)


def show(found: dict[str, np.ndarray], slower: set[str]) -> None:
    from benchmarks.shared.measure import as_seconds, markdown

    table = [["problem", "old", "new", "new / old", "median", "range", ""]]
    for name, seconds in found.items():
        best, near = ratios(seconds)
        table.append(
            [
                name,
                *map(as_seconds, seconds.min(axis=1)),
                f"{best:.3f}",
                f"{np.median(near):.3f}",
                f"{near.min():.2f} to {near.max():.2f}",
                "SLOWER" if name in slower else "",
            ]
        )
    print(markdown(table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=ROOT / "src")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.1, help="seconds of calls in a row")
    parser.add_argument("--limit", type=float, default=1.05, help="new / old that is slower")
    parser.add_argument("--only", nargs="+", default=[], help="these modules of problems alone")
    args = parser.parse_args()
    sources = (args.old.resolve(), args.new.resolve())
    found = measure(sources, args.only, None, args.rounds, args.least)
    slower = {name for name, seconds in found.items() if is_slower(seconds, args.limit)}
    for again in (2, 4):
        if not slower:
            break
        print(f"again, {again} times the rounds: {', '.join(sorted(slower))}", file=sys.stderr)
        names = [name for name in found if name in slower]
        found |= measure(sources, args.only, names, again * args.rounds, args.least)
        slower = {name for name in names if is_slower(found[name], args.limit)}
    show(found, slower)
    every = np.array([ratios(seconds)[0] for seconds in found.values()])
    print(
        f"\n{len(found)} problems, processor time; new / old: geometric mean "
        f"{np.exp(np.log(every).mean()):.3f}, {every.min():.3f} to {every.max():.3f}; "
        f"{len(slower)} above {args.limit:g}"
    )
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main()
