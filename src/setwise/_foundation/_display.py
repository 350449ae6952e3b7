"""The display of ``verbose``: a bar in a terminal or a notebook, else lines on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from math import log10
from time import perf_counter
from typing import ParamSpec, TypeVar, cast

from setwise._foundation._arguments import as_flag, check_callback
from setwise._foundation._progress import Progress

P = TypeVar("P", bound=Progress)
A = ParamSpec("A")
R = TypeVar("R")


def check_display(verbose: object, callback: object) -> None:
    """Raise a ``TypeError`` unless ``verbose`` is a flag and ``callback`` a callback or None."""
    as_flag(verbose, "verbose")
    check_callback(callback)


def displayed(what: str) -> Callable[[Callable[A, R]], Callable[A, R]]:
    """Make a function show the progress of its search, with ``what`` as the name beside the bar.

    The function has the keywords ``tol``, ``verbose`` and ``callback``, and ignores ``verbose``.
    """

    def decorate(function: Callable[A, R]) -> Callable[A, R]:
        tol = signature(function).parameters["tol"].default

        @wraps(function)
        def call(*arguments: A.args, **keywords: A.kwargs) -> R:
            verbose, callback = keywords.get("verbose", False), keywords.get("callback")
            check_display(verbose, callback)
            if not verbose:
                return function(*arguments, **keywords)
            goal = cast("float", keywords.get("tol", tol))
            user = cast("Callable[[Progress], object] | None", callback)
            with progress_callback(True, goal, user, what=what) as shown:
                keywords |= {"verbose": False, "callback": shown}  # type: ignore[assignment]
                return function(*arguments, **keywords)

        return call

    return decorate


@contextmanager
def progress_callback(
    verbose: bool,
    tol: float,
    callback: Callable[[P], object] | None,
    *,
    what: str = "fit",
    rounds: int | None = None,
) -> Iterator[Callable[[P], object] | None]:
    """Yield the user's callback, preceded by a display of the gap if ``verbose``.

    The bar shows the progress of the gap towards ``tol``, or the share of ``rounds`` done.
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
    """Yield a function that shows progress, with rich in a terminal or notebook, else as lines."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ImportError:
        with _lines() as show:
            yield show
        return
    console = Console(stderr=True)
    if not (
        console.is_terminal or console.is_jupyter
    ):  # rich writes a bar into a file only at the end
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
    """Return the share done from a gap of 1 to the tolerance, on a logarithmic scale."""
    if gap <= max(tol, 1e-300):
        return 1.0
    if gap >= 1.0:
        return 0.0
    return min(1.0, log10(1.0 / gap) / log10(1.0 / min(max(tol, 1e-12), 0.5)))


@contextmanager
def _lines() -> Iterator[Callable[[Progress], None]]:
    """Yield a function that prints rounds 1, 2, 4, 8 ..., every hundredth, and the last."""
    unprinted: list[str] = []
    began = perf_counter()

    def show(progress: Progress) -> None:
        unprinted[:] = [
            f"round {progress.n_iter}: value {progress.value:.6g}, bound {progress.bound:.6g}, "
            f"relative gap {progress.relative_gap:.1e}, {perf_counter() - began:.1f} s\n"
        ]
        if progress.n_iter & (progress.n_iter - 1) == 0 or progress.n_iter % 100 == 0:
            sys.stderr.write(unprinted.pop())

    yield show
    sys.stderr.writelines(unprinted)
