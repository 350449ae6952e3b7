"""The record of a maximisation: a set, and what is known of how good it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from setwise._foundation._arguments import BoolArray, IntArray
from setwise._foundation._certificate import Measured
from setwise._foundation._timings import Timings


@dataclass(frozen=True, eq=False)
class Maximum(Measured):
    """What ``maximize`` found, and what is known of how good it is.

    Attributes
    ----------
    mask : boolean array of shape (n,)
        The set.
    value : float
        F(mask).
    bound : float
        No set in question has a higher value, if ``certified``.
    guarantee : float or None
        The share of the best value that the method reaches on every function that fulfils
        ``assumes``; None when F is not known to.
    assumes : str
        What the guarantee rests on, in a sentence.
    order : integer array
        The elements of the set, in the order in which they were chosen.
    method : str
        "greedy", "double", "double_random", or "whole" when F is increasing and nothing limits it.
    n_iter : int
        Steps: elements chosen by the greedy method, elements decided by the double one.
    certified : bool
        Whether F is known to be what the bound rests on. If not, ``bound`` is a number without a
        meaning.
    excess : float
        No set in question is higher by more than this, if ``certified``. It is at most the gap,
        into which the rounding of ``value`` and ``bound`` goes: that of F(empty), if it is large.
    room : float
        What there was to gain: the trivial bound F(empty) + sum_i max(0, F({i}) - F(empty)), over
        the k largest, less the value.
    rounding : float
        What of the excess is rounding, below a millionth of the smallest number that F is made of:
        the set is ``exact`` if that is all of it.
    interrupted : bool
        Whether Ctrl-C stopped it: the set is what had been chosen, and there is no guarantee.
    reason : str
        Why it ended: "done", "time_limit of 2 s reached" (as after Ctrl-C, the set is what had been
        chosen), or "Ctrl-C ended it".
    timings : mapping of str to float
        Where the time went, in seconds: "set-up", what rounding can do, and "search". No part of
        the answer.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.functions.maximize(sw.functions.Coverage([[0, 1], [1], [2]]), 2)
    >>> best.order.tolist(), best.value, best.gap
    ([0, 2], 3.0, 0.0)
    """

    _sense: ClassVar[float] = -1.0

    mask: BoolArray
    value: float
    bound: float
    guarantee: float | None
    assumes: str
    order: IntArray
    method: str
    n_iter: int
    certified: bool
    excess: float
    room: float
    rounding: float = 0.0
    interrupted: bool = False
    reason: str = "done"
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self.mask.flags.writeable = self.order.flags.writeable = False

    def _measures(self) -> tuple[float, float, float]:
        return self.excess, self.room, self.rounding
