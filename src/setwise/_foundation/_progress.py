"""What a search tells on its way, and one rule for what is answered: any true value ends it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

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


def is_heard(callback: Callable[[P], object] | None) -> bool:
    """Whether anybody is told of rounds: a callback, or the logger "setwise" at DEBUG."""
    return callback is not None or _LOG.isEnabledFor(logging.DEBUG)


def stops(callback: Callable[[P], object] | None, progress: P) -> bool:
    """Whether the callback, if there is one, ends the search that stands there.

    Any true value does, not True alone; what has no truth value, such as an array, raises. The
    logger "setwise" is told of every round, for those who listen to it at DEBUG; what an inner
    search says of itself is no record of a round.
    """
    if isinstance(progress, Certificate) and _LOG.isEnabledFor(logging.DEBUG):
        shielded(_LOG.debug, "%s", progress)
    return callback is not None and bool(shielded(callback, progress))
