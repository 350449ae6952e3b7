"""The driver of iterative methods, which decides when a search ends and reports its progress.

A method is a ``Search``: a step, and a record of its state. ``drive`` makes the steps. It alone
handles the tolerance, the number of rounds, the time limit, Ctrl-C, the callback, the logger, the
history, stagnation, and the ``reason``. ``attempt`` and ``completed`` are for inner searches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Generic, TypeVar

from setwise._foundation import _kernels as _core
from setwise._foundation._clock import Deadline
from setwise._foundation._progress import is_observed, stops

P = TypeVar("P")
R = TypeVar("R")

# A search stagnates if more than this share of the gap is left after ``Search.patience`` rounds. At
# such a rate a gap ten times as small takes more than 200 times as many rounds. Not tuned.
STANDS_STILL = 0.99


class Search(ABC, Generic[P]):
    """An iterative method, which contains its mathematics and nothing else.

    Ctrl-C or the time limit may end a step at any point. Therefore a step stores the parts of its
    answer in one assignment, so that for instance a value and its labelling belong together.
    """

    relative_gap: float = inf
    """The relative gap after the last step; ``inf`` if it was not measured."""
    gap: float = inf
    """The gap after the last step, for the rule on stagnation."""
    patience: float = inf
    """The search ends when its gap has stagnated for more rounds than this."""
    has_answer: bool = False
    """Whether there is an answer before the first step, from a warm start."""
    calls_user: bool = False
    """Whether a step calls a function of the user. The time limit then ends the search between
    steps only: a search that such a function runs would end early, and its incomplete answer could
    be mistaken for a complete one."""
    ending: str = "the gap stands still"
    """The ``reason`` of a search that ended by itself above the tolerance."""

    @abstractmethod
    def step(self) -> bool:
        """Make one round. Return whether the method has ended."""

    def progress(self, n_iter: int, seconds: float) -> P | None:
        """Return the record of the state of the search, for the callback and the history.

        The record is None if there is nothing to report.
        """
        return None

    def has_converged(self, tol: float) -> bool:
        """Return whether the answer is as good as ``tol`` requires."""
        return self.relative_gap <= tol

    def finish(self) -> None:
        """Do the work after the last round, for instance a proof. Ctrl-C may end it like a step."""

    def reassess(self) -> None:
        """Compute what is missing in the answer after a callback, Ctrl-C or the time limit."""


@dataclass(eq=False)
class Control(Generic[P]):
    """The options that the caller of a search sets."""

    tol: float = 0.0
    max_iter: float = inf
    callback: Callable[[P], object] | None = None
    deadline: Deadline = field(default_factory=Deadline)
    keeps_history: bool = False
    began: float = field(default_factory=perf_counter)


@dataclass(frozen=True, eq=False)
class Ending(Generic[P]):
    """The record of how a search ended."""

    n_iter: int
    converged: bool
    cut_short: bool
    """Whether a callback, Ctrl-C or the time limit ended it early."""
    expired: bool
    """Whether the time limit ended it early."""
    reason: str
    history: list[P]

    @property
    def interrupted(self) -> bool:
        """Whether a callback or Ctrl-C ended it early."""
        return self.cut_short and not self.expired


def drive(search: Search[P], control: Control[P]) -> Ending[P]:
    """Make steps until the search converges, ends by itself, or has to end.

    Ctrl-C before the end of the first step raises ``KeyboardInterrupt``, unless the search already
    has an answer. The time limit does not end a search without an answer.
    """
    n_iter, done, callback_ends, cut_short = 0, False, False, False
    history: list[P] = []
    gaps: list[float] = []
    deadline = control.deadline

    def make_rounds() -> None:
        nonlocal n_iter, done, callback_ends
        deadline.armed = deadline.armed or search.has_answer
        while not (done or callback_ends or n_iter >= control.max_iter):
            deadline.check()
            _core.poll()
            done = search.step()
            n_iter += 1
            gaps.append(search.gap)
            done = done or search.has_converged(control.tol) or _stands_still(gaps, search.patience)
            now = None
            if control.keeps_history or is_observed(control.callback):
                now = search.progress(n_iter, perf_counter() - control.began)
                if control.keeps_history and now is not None:
                    history.append(now)
            search.has_answer = deadline.armed = True
            callback_ends = now is not None and stops(control.callback, now)
        search.finish()

    try:
        if search.calls_user:
            make_rounds()
        else:
            deadline.run(make_rounds)
    except KeyboardInterrupt:
        if not search.has_answer:
            raise
        cut_short = True
    cut_short = cut_short or (callback_ends and not (done or search.has_converged(control.tol)))
    if cut_short:
        search.reassess()
    converged = search.has_converged(control.tol)
    if cut_short:
        reason = deadline.sentence if deadline.expired else "a callback or Ctrl-C ended it"
    elif converged:
        reason = f"the relative gap is within tol={control.tol:g}"
    else:
        reason = search.ending if done else f"max_iter={control.max_iter} rounds made"
    return Ending(n_iter, converged, cut_short, deadline.expired and cut_short, reason, history)


def _stands_still(gaps: list[float], patience: float) -> bool:
    if len(gaps) <= patience:
        return False
    return gaps[-1] > STANDS_STILL * gaps[-1 - int(patience)]


def attempt(function: Callable[..., R], *arguments: object) -> tuple[R | None, bool]:
    """Return what the function returns, and whether Ctrl-C or the time limit cut it short.

    This is for calls whose answer is optional: without it, the caller keeps what it knows.
    """
    try:
        return function(*arguments), False
    except KeyboardInterrupt:
        return None, True


def completed(result: R) -> R:
    """Return the result, or raise ``KeyboardInterrupt`` if Ctrl-C cut it short.

    Searches and fits end at Ctrl-C with their best answer and set ``interrupted``. A caller whose
    own answer has no such flag must not use an incomplete result. A result without the flag is
    complete, because functions without the flag let ``KeyboardInterrupt`` pass.
    """
    if getattr(result, "interrupted", False):
        raise KeyboardInterrupt
    return result
