"""How a search goes, for people: a bar in a terminal or a notebook, lines on stderr elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import log10
from typing import TypeVar

from setwise._foundation._arguments import as_flag, check_callback
from setwise._foundation._progress import Progress

P = TypeVar("P", bound=Progress)


def check_display(verbose: object, callback: object) -> None:
    """Raise a ``TypeError`` unless a search can show and tell how it goes."""
    as_flag(verbose, "verbose")
    check_callback(callback)


@contextmanager
def progress_callback(
    verbose: bool,
    tol: float,
    callback: Callable[[P], object] | None,
    *,
    what: str = "fit",
    rounds: int | None = None,
) -> Iterator[Callable[[P], object] | None]:
    """The user's callback, preceded by a display of the gap if ``verbose``.

    The bar shows how far the gap has come to ``tol``, or how many of the ``rounds`` are done.
    """
    if not verbose:
        yield callback
        return

    def done(progress: Progress) -> float:
        return _share(progress.relative_gap, tol) if rounds is None else progress.n_iter / rounds

    with _display(done, what) as show:

        def both(progress: P) -> bool:
            show(progress)
            return callback is not None and bool(callback(progress))

        yield both


@contextmanager
def _display(done: Callable[[Progress], float], what: str) -> Iterator[Callable[[Progress], None]]:
    """A bar of rich, where that is installed and there is a place for one; else lines."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ImportError:
        with _lines() as show:
            yield show
        return
    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):  # a bar in a file is seen at its end only
        with _lines() as show:
            yield show
        return
    columns = TextColumn(what), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn()
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(what, total=1.0, told="")

        def draw(progress: Progress) -> None:
            told = (
                f"round {progress.n_iter}, relative gap {progress.relative_gap:.1e}, "
                f"value {progress.value:.6g}, bound {progress.bound:.6g}"
            )
            bar.update(task, completed=done(progress), told=told)

        yield draw


def _share(gap: float, tol: float) -> float:
    """How much of the way from a gap of 1 to the tolerance is done, on a logarithmic scale."""
    if gap <= max(tol, 1e-300):
        return 1.0
    if gap >= 1.0:
        return 0.0
    return min(1.0, log10(1.0 / gap) / log10(1.0 / min(max(tol, 1e-12), 0.5)))


@contextmanager
def _lines() -> Iterator[Callable[[Progress], None]]:
    """A line for the rounds 1, 2, 4, 8 and so on, for every hundredth, and for the last."""
    untold: list[Progress] = []

    def show(progress: Progress) -> None:
        untold[:] = [progress]
        if progress.n_iter & (progress.n_iter - 1) == 0 or progress.n_iter % 100 == 0:
            _print_line(untold.pop())

    yield show
    if untold:
        _print_line(untold.pop())


def _print_line(progress: Progress) -> None:
    sys.stderr.write(
        f"round {progress.n_iter}: value {progress.value:.6g}, bound {progress.bound:.6g}, "
        f"relative gap {progress.relative_gap:.1e}, {progress.seconds:.1f} s\n"
    )
