"""The progress of searches: callbacks, the logger, and the display of ``verbose``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from inspect import signature
from math import log10
from time import perf_counter
from typing import Generic, ParamSpec, TypeVar, cast

from setwise._foundation._arguments import as_flag, check_callback
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Certificate
from setwise._foundation._clock import without_time_limit

P = TypeVar("P")
Shown = TypeVar("Shown", bound="Progress")
A = ParamSpec("A")
R = TypeVar("R")

_LOG = logging.getLogger("setwise")


@dataclass(frozen=True, eq=False, repr=False)
class Progress(Record, Certificate):
    """The state of a search after a round, which is passed to callbacks.

    Attributes
    ----------
    n_iter : int
        The number of rounds so far.
    value : float
        The best value so far.
    bound : float
        The best bound so far, infinite if there is none.
    relative_gap : float
        The relative gap; ``inf`` if there is no bound.
    seconds : float
        The seconds since the start of the search.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rounds = []
    >>> fit = sw.learning.one_slack(
    ...     lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, callback=rounds.append
    ... )
    >>> len(rounds) == fit.n_iter, rounds[-1].gap == fit.gap
    (True, True)
    """

    n_iter: int
    value: float
    bound: float
    relative_gap: float
    seconds: float

    def __str__(self) -> str:
        """Return a line for a log, without arrays and lists of weak learners."""
        entries = ((field.name, getattr(self, field.name)) for field in fields(self))
        plain = (
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in entries
            if isinstance(value, int | float | str) or (isinstance(value, dict) and value)
        )
        return f"{type(self).__name__}({', '.join(plain)})"


@dataclass(frozen=True, eq=False)
class ForwardingCallback(Generic[P]):
    """A callback that adds information to a round and passes it on by calling ``stops`` itself.

    ``stops`` does not log a round that it passes to such a callback, because the inner call of
    ``stops`` logs it.
    """

    forward: Callable[[P], bool]

    def __call__(self, progress: P) -> bool:
        return self.forward(progress)


def is_observed(callback: Callable[[P], object] | None) -> bool:
    """Return whether rounds are reported to a callback, or to the logger at level DEBUG."""
    return callback is not None or _LOG.isEnabledFor(logging.DEBUG)


def stops(callback: Callable[[P], object] | None, progress: P) -> bool:
    """Report a round, and return whether the callback, if there is one, ends the search.

    Any true return value of the callback ends it. A value without truth value, such as an array,
    raises an error. Every ``Certificate`` is also logged by the logger "setwise" at level DEBUG;
    other progress of inner searches is not.
    """
    is_outer = isinstance(progress, Certificate) and not isinstance(callback, ForwardingCallback)
    if is_outer and _LOG.isEnabledFor(logging.DEBUG):
        without_time_limit(_LOG.debug, "%s", progress)
    return callback is not None and bool(without_time_limit(callback, progress))


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
    callback: Callable[[Shown], object] | None,
    *,
    what: str = "fit",
    rounds: int | None = None,
) -> Iterator[Callable[[Shown], object] | None]:
    """Yield the user's callback, preceded by a display of the gap if ``verbose``.

    The bar shows the progress of the gap towards ``tol``, or the share of ``rounds`` done.
    """
    if not verbose:
        yield callback
        return

    def done(progress: Progress) -> float:
        return _share(progress.relative_gap, tol) if rounds is None else progress.n_iter / rounds

    with _display(done, what) as show:

        def both(progress: Shown) -> bool:
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
    columns = TextColumn(what), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn()
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(what, total=1.0, state="")

        def draw(progress: Progress) -> None:
            state = (
                f"round {progress.n_iter}, relative gap {progress.relative_gap:.1e}, "
                f"value {progress.value:.6g}, bound {progress.bound:.6g}"
            )
            bar.update(task, completed=done(progress), state=state)

        yield draw


def _share(gap: float, tol: float) -> float:
    """Return the progress of the gap from 1 to the tolerance, as a share on a logarithmic scale."""
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
