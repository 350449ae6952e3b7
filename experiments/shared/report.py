"""The report of a script: the paper's figures beside ours, with every choice that was made."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import setwise as sw
from experiments.shared.cache import cache_folder

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "scipy", "scikit-learn", "scikit-image", "highspy", "torch")
T = TypeVar("T")
S = TypeVar("S")


def arguments(
    question: str, *, repeats: int, quick_repeats: int = 1, flags: Mapping[str, str] | None = None
) -> argparse.Namespace:
    """Parse the command line of a script: ``quick``, ``repeats``, ``seed``, ``jobs`` and ``flags``.

    This also limits products of matrices to one thread: they are small, and the processes of
    ``parallel`` occupy the cores. Quick runs use a cache of their own, so that a model trained for
    a minute is never mistaken for one trained for an hour.
    """
    threadpool_limits(1, user_api="blas")
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="a minute's look, nothing written")
    parser.add_argument("--repeats", type=int, help=f"default {repeats}, quick {quick_repeats}")
    parser.add_argument("--seed", type=int, default=0, help="of the random draws, default 0")
    parser.add_argument("--jobs", type=int, default=2, help="processes, default 2")
    for name, help_text in (flags or {}).items():
        parser.add_argument(f"--{name}", action="store_true", help=help_text)
    given = parser.parse_args()
    if given.repeats is None:
        given.repeats = quick_repeats if given.quick else repeats
    if given.quick:
        os.environ["SETWISE_CACHE"] = str(cache_folder() / "quick")
    return given


@dataclass(frozen=True)
class Estimate:
    """A mean over repeats, with its standard error (None for a single value)."""

    mean: float
    error: float | None = None

    def show(self, digits: int = 3) -> str:
        """Return the estimate as a cell of a table."""
        text = f"{self.mean:.{digits}f}"
        return text if self.error is None else f"{text} ± {self.error:.{digits}f}"


def estimate(values: Iterable[float]) -> Estimate:
    """Return mean and standard error of the repeats."""
    array = np.array(list(values), np.float64)
    if len(array) < 2:
        return Estimate(float(array.mean()))
    return Estimate(float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array))))


def beside(paper: Estimate | None, ours: Estimate, digits: int = 3) -> list[str]:
    """Return two cells: the paper's figure, or a dash if there is none, and ours."""
    return ["–" if paper is None else paper.show(digits), ours.show(digits)]


@dataclass(frozen=True)
class Table:
    """A title, a head, and rows of text."""

    title: str
    head: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def markdown(self) -> str:
        """Return the table as Markdown, with columns aligned for reading in a terminal."""
        cells = [list(self.head), *map(list, self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        lines = [
            "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
            for row in cells
        ]
        rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
        return "\n".join([f"**{self.title}**", "", lines[0], rule, *lines[1:]])


def report(
    script: str,
    title: str,
    tables: Sequence[Table],
    *,
    choices: Mapping[str, object],
    data: object,
    notes: Sequence[str] = (),
    quick: bool,
) -> None:
    """Print everything, and write NAME.md and NAME.json to results/ unless ``quick`` is set.

    ``script`` is the caller's ``__file__``: the results are stored in the folder beside it, under
    its name. ``choices`` gives the seed, the split, the grid and all that the paper left open.
    ``data`` holds the figures behind the tables, and may contain ``Estimate`` and arrays.
    """
    lines = [f"# {title}", ""]
    for table in tables:
        lines += [table.markdown(), ""]
    lines += [f"- {note}" for note in notes]
    lines += ["", "Choices:", ""] if notes else ["Choices:", ""]
    lines += [f"- {key}: {value}" for key, value in choices.items()]
    versions = _environment()
    lines += ["- versions: " + ", ".join(f"{k} {v}" for k, v in versions.items()), ""]
    print("\n".join(lines))
    if quick:
        print("A quick look: nothing was written.")
        return
    path = result(script)
    path.with_suffix(".md").write_text("\n".join(lines), encoding="utf-8")
    name = f"{path.parent.parent.name}/{path.stem}"
    content = {"name": name, "choices": dict(choices), "versions": versions, "data": data}
    text = json.dumps(content, indent=1, ensure_ascii=False, default=_plain)
    path.write_text(text + "\n", encoding="utf-8")


def result(script: str | Path, name: str | None = None) -> Path:
    """Return a path in the script's results folder: its .json file, or the file ``name``."""
    path = Path(script).resolve()
    folder = path.parent / "results"
    folder.mkdir(exist_ok=True)
    return folder / (name or f"{path.stem}.json")


def data_of(script: str | Path) -> Any:
    """Return the ``data`` that ``report`` wrote for another script. Exit if that has not run."""
    path = result(script)
    if not path.exists():
        sys.exit(f"missing {path.name}: run {Path(script).resolve().relative_to(REPOSITORY)} first")
    return json.loads(path.read_text(encoding="utf-8"))["data"]


def progress(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, and print on stderr how many are done and how long it took."""
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # type: ignore[arg-type]
    start = time.perf_counter()
    live = sys.stderr.isatty()
    for k, item in enumerate(items):
        if live:
            _say(f"\r{label}: {k}/{total}, {time.perf_counter() - start:.0f} s ")
        yield item
        if not live:
            _say(f"{label}: {k + 1}/{total}, {time.perf_counter() - start:.0f} s\n")
    if live:
        _say(f"\r{label}: done, {time.perf_counter() - start:.0f} s\n")


def parallel(
    function: Callable[[T], S], items: Sequence[T], label: str, jobs: int
) -> Iterator[tuple[T, S]]:
    """Yield each item with its answer, in order, computed by several processes."""
    answers = Parallel(n_jobs=jobs, batch_size=1, return_as="generator")(
        delayed(function)(i) for i in items
    )
    yield from zip(items, progress(answers, label, len(items)), strict=True)


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _environment() -> dict[str, str]:
    versions = {"python": platform.python_version(), "setwise": f"{sw.__version__} ({_commit()})"}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def _commit() -> str:
    """Return the commit, marked if the library has changed since."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(REPOSITORY), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "src", "cpp")
        return git("rev-parse", "--short", "HEAD") + (", changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "commit unknown"


def _plain(value: object) -> object:
    if isinstance(value, Estimate):
        return asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"no JSON for {type(value).__name__}")
