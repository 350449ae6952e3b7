"""The progress of searches for callbacks, any true return value of which ends the search."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from setwise._foundation._certificate import Certificate
from setwise._foundation._deadline import without_time_limit
from setwise._foundation._record import Record

P = TypeVar("P")
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
        told = ((field.name, getattr(self, field.name)) for field in fields(self))
        plain = (
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in told
            if isinstance(value, int | float | str) or (isinstance(value, dict) and value)
        )
        return f"{type(self).__name__}({', '.join(plain)})"


@dataclass(frozen=True, eq=False)
class ForwardingCallback(Generic[P]):
    """A callback that adds information to a round and passes it on by calling ``stops`` itself.

    ``stops`` does not log a round that it passes to such a callback, because that logs it.
    """

    tell: Callable[[P], bool]

    def __call__(self, progress: P) -> bool:
        return self.tell(progress)


def is_observed(callback: Callable[[P], object] | None) -> bool:
    """Return whether rounds are reported to a callback, or to the logger at level DEBUG."""
    return callback is not None or _LOG.isEnabledFor(logging.DEBUG)


def stops(callback: Callable[[P], object] | None, progress: P) -> bool:
    """Report a round, and return whether the callback, if there is one, ends the search.

    Any true return value of the callback ends it. A value without truth value, such as an array,
    raises an error. Every ``Certificate`` is also logged by the logger "setwise" at level DEBUG;
    other progress of inner searches is not.
    """
    heard = isinstance(progress, Certificate) and not isinstance(callback, ForwardingCallback)
    if heard and _LOG.isEnabledFor(logging.DEBUG):
        without_time_limit(_LOG.debug, "%s", progress)
    return callback is not None and bool(without_time_limit(callback, progress))
