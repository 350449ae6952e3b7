"""What a search tells on its way, and one rule for what is answered: any true value ends it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from setwise._foundation._certificate import Certificate
from setwise._foundation._deadline import shielded

P = TypeVar("P")
_LOG = logging.getLogger("setwise")


@dataclass(frozen=True, eq=False)
class Progress(Certificate):
    """Where a search stands after a round, for a callback: a true answer of it ends the search.

    Attributes
    ----------
    n_iter : int
        Rounds so far.
    value : float
        The best value so far.
    bound : float
        The best bound so far, infinite where there is none.
    relative_gap : float
        What is not proved of what there was to gain; ``inf`` where nothing is known.
    seconds : float
        Since the start of the search.

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
        """A line for a log: what is no array, and no list of weak learners."""
        told = ((field.name, getattr(self, field.name)) for field in fields(self))
        plain = (
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in told
            if isinstance(value, int | float | str) or (isinstance(value, dict) and value)
        )
        return f"{type(self).__name__}({', '.join(plain)})"


@dataclass(frozen=True, eq=False)
class Retold(Generic[P]):
    """A callback between a search and the user's that asks ``stops`` itself, with more to tell.

    The logger hears a round from it alone.
    """

    tell: Callable[[P], bool]

    def __call__(self, progress: P) -> bool:
        return self.tell(progress)


def is_heard(callback: Callable[[P], object] | None) -> bool:
    """Whether anybody is told of rounds: a callback, or the logger "setwise" at DEBUG."""
    return callback is not None or _LOG.isEnabledFor(logging.DEBUG)


def stops(callback: Callable[[P], object] | None, progress: P) -> bool:
    """Whether the callback, if there is one, ends the search that stands there.

    Any true value does, not True alone; what has no truth value, such as an array, raises. The
    logger "setwise" is told of every round, for those who listen to it at DEBUG; what an inner
    search says of itself is no record of a round.
    """
    heard = isinstance(progress, Certificate) and not isinstance(callback, Retold)
    if heard and _LOG.isEnabledFor(logging.DEBUG):
        shielded(_LOG.debug, "%s", progress)
    return callback is not None and bool(shielded(callback, progress))
