"""A progress bar with the gap: rich where it is installed, plain lines on stderr where not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import log10
from typing import TypeVar

from setwise._foundation._arguments import as_flag, check_callback
from setwise._foundation._progress import Progress, stops

P = TypeVar("P", bound=Progress)


def check_display(verbose: object, callback: object) -> None:
    """Raise a ``TypeError`` unless a fit can show and tell how it goes."""
    as_flag(verbose, "verbose")
    check_callback(callback)


@contextmanager
def progress_callback(
    verbose: bool, tol: float, callback: Callable[[P], object] | None
) -> Iterator[Callable[[P], object] | None]:
    """The user's callback, preceded by a display of the gap if ``verbose``."""
    if not verbose:
        yield callback
        return
    with _display(tol) as show:

        def both(progress: P) -> bool:
            show(progress)
            return stops(callback, progress)

        yield both


@contextmanager
def _display(tol: float) -> Iterator[Callable[[Progress], None]]:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield _print_line
        return
    columns = (
        TextColumn("fit"),
        BarColumn(),
        TextColumn("round {task.fields[round]}, relative gap {task.fields[gap]:.1e}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("fit", total=1.0, round=0, gap=1.0)

        def show(progress: Progress) -> None:
            bar.update(
                task,
                completed=_share(progress.relative_gap, tol),
                round=progress.n_iter,
                gap=progress.relative_gap,
            )

        yield show


def _share(gap: float, tol: float) -> float:
    """How much of the way from a gap of 1 to the tolerance is done, on a logarithmic scale."""
    if gap <= max(tol, 1e-300):
        return 1.0
    return min(1.0, max(0.0, log10(1.0 / gap) / log10(1.0 / min(max(tol, 1e-12), 0.5))))


def _print_line(progress: Progress) -> None:
    if progress.n_iter & (progress.n_iter - 1) == 0 or progress.n_iter % 100 == 0:
        sys.stderr.write(
            f"round {progress.n_iter}: value {progress.value:.6g}, bound {progress.bound:.6g}, "
            f"relative gap {progress.relative_gap:.1e}, {progress.seconds:.1f} s\n"
        )
