"""Compare the answers of two builds to the last bit.

    PYTHONPATH=OLD/src python benchmarks/same_answers.py save FILE.npz
    PYTHONPATH=NEW/src python benchmarks/same_answers.py compare FILE.npz

Runs the benchmarks' kinds of input at moderate sizes and small problems that call every public
function and estimator (``problems``), and stores all arrays and numbers of the answers by name:
values, bounds, gaps, labels, coefficients, gradients, rounds, methods, but no times. ``compare``
prints which answers differ, are missing or are new, and which problems raise an error in both
builds, and exits with status 1 if any does. A refactoring must cause no difference. ``--only`` runs
only some parts, and replaces them in a file that has all parts. One thread is used, so that two
runs on one machine can be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import benchmarks.shared.chosen_build
import benchmarks.shared.measure  # noqa: F401  one thread
import setwise as sw
from benchmarks.problems import MODULES, Failure, Refusal, problems
from benchmarks.problems.answers import FAILED, parts


def run(modules: list[str] | None, verbose: bool) -> dict[str, np.ndarray]:
    """Return the arrays and numbers of all answers."""
    kept: dict[str, np.ndarray] = {}
    seconds: Counter[str] = Counter()
    kinds: Counter[type] = Counter()
    for kind in ("wide", "timed"):
        for name, ask in problems(kind, modules):
            start = time.perf_counter()
            try:
                answer = ask()
            except Exception as error:  # report it, and continue with the other problems
                answer = Failure(f"{type(error).__name__}: {error}")
                print(f"FAILED {name}: {answer}", flush=True)
            took = time.perf_counter() - start
            seconds[name.split("/")[0]] += took
            kinds[type(answer)] += 1
            if verbose and (took > 0.5 or isinstance(answer, Refusal)):
                print(f"{took:6.2f} s  {name}", answer if isinstance(answer, Refusal) else "")
            for path, array in parts(name, answer):
                if path in kept:
                    raise KeyError(f"two answers are called {path}")
                kept[path] = array
    spent = ", ".join(f"{module} {total:.0f} s" for module, total in seconds.items())
    print(
        f"{len(kept)} numbers and arrays of {kinds.total()} answers of {Path(sw.__file__).parent}; "
        f"{kinds[Refusal]} calls refused, {kinds[Failure]} failed"
    )
    print(spent, flush=True)
    return kept


def failed(answer: np.ndarray) -> bool:
    """Return whether an answer stands for an error that no build should raise."""
    return answer.dtype.kind == "U" and str(answer) == FAILED


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether the bits of two arrays are the same, or the characters of two texts."""
    if a.dtype.kind == b.dtype.kind == "U":
        return a.shape == b.shape and bool((a == b).all())
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def near(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether floats differ only by rounding; a changed method causes larger differences."""
    if a.dtype != b.dtype or a.shape != b.shape or a.dtype.kind != "f":
        return False
    return np.allclose(a, b, rtol=1e-9, atol=1e-13, equal_nan=True)


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """Describe the difference of two arrays in words."""
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind or a.dtype.kind not in "fiub":
        return f"{short(a)} became {short(b)}"
    with np.errstate(invalid="ignore"):
        apart = np.abs(a.astype(float) - b.astype(float))
    if a.ndim == 0:
        return f"{a} became {b}"
    largest = np.nanmax(apart, initial=0.0)
    return f"{np.count_nonzero(apart)} of {a.size} entries, by {largest:.3g} at most"


def short(a: np.ndarray) -> str:
    return f"{str(a)[:60]!r} {a.dtype} {a.shape}"


def compare(before: dict[str, np.ndarray], now: dict[str, np.ndarray], most: int) -> bool:
    """Print the differences, some names per kind, and return whether there is none."""
    differ = [name for name in before if name in now and not alike(before[name], now[name])]
    groups = {
        "differ": [name for name in differ if not near(before[name], now[name])],
        "differ in the last digits": [name for name in differ if near(before[name], now[name])],
        "are missing": [name for name in before if name not in now],
        "are new": [name for name in now if name not in before],
        "fail in both builds": [
            name for name in before if name in now and failed(before[name]) and failed(now[name])
        ],
    }
    for kind, names in groups.items():
        print(f"{len(names)} {kind}")
        for name in names[:most]:
            print(f"    {name}", difference(before[name], now[name]) if name in differ else "")
        if len(names) > most:
            counts = Counter(name.split("/")[0] for name in names)
            print(f"    and {len(names) - most} more; by part: {dict(counts)}")
    return not any(groups.values())


def write(path: Path, answers: dict[str, np.ndarray]) -> None:
    """Write one array for all answers of a type and shape, because most are single numbers."""
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for name, array in answers.items():
        groups.setdefault((array.dtype.str, array.shape), []).append(name)
    stacks = {
        str(k): np.stack([answers[name] for name in names])
        for k, names in enumerate(groups.values())
    }
    np.savez_compressed(path, names=np.array(json.dumps([*groups.values()])), **stacks)


def read(path: Path, modules: Collection[str]) -> dict[str, np.ndarray]:
    """Return the answers of some parts of a file."""
    with np.load(path) as file:
        return {
            name: np.asarray(array)
            for k, names in enumerate(json.loads(file["names"].item()))
            for name, array in zip(names, file[str(k)], strict=True)
            if name.split("/")[0] in modules
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["save", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="+", choices=MODULES, help="these parts alone")
    parser.add_argument("--most", type=int, default=40, help="names to print of each kind")
    parser.add_argument("--verbose", action="store_true", help="name what is slow or refused")
    args = parser.parse_args()
    if args.action == "compare" and not args.file.exists():
        parser.error(f"{args.file} does not exist: save answers first")
    warnings.simplefilter("ignore")  # fits that end early and some losses warn
    answers = run(args.only, args.verbose)
    if args.action == "save":
        kept = args.only is not None and args.file.exists()
        others = read(args.file, set(MODULES) - set(args.only)) if kept else {}
        write(args.file, others | answers)
        return
    same = compare(read(args.file, args.only or MODULES), answers, args.most)
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
