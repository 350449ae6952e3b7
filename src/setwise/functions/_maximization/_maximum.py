"""The record of a maximisation: a set with its bound and its guarantee."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from setwise._foundation._arguments import BoolArray, IntArray
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Measured
from setwise._foundation._clock import Timings


@dataclass(frozen=True, eq=False, repr=False)
class Maximum(Record, Measured):
    """The result of ``maximize``: a set with its bound and its guarantee.

    Attributes
    ----------
    mask : boolean array of shape (n,)
        The set.
    value : float
        F(mask).
    bound : float
        No feasible set has a higher value, if ``certified``.
    guarantee : float or None
        The share of the best value that the method reaches on every function that fulfils
        ``assumes``; None if F is not known to fulfil it.
    assumes : str
        The assumption of the guarantee, in a sentence.
    order : integer array
        The elements of the set, in the order in which they were chosen.
    method : str
        "greedy", "double", "double_random", or "whole" when F is increasing and nothing limits it.
    n_iter : int
        The number of steps: elements chosen by the greedy method, or decided by the double one.
    certified : bool
        Whether F is known to have the property that the bound needs. If not, ``bound`` has no
        meaning.
    excess : float
        An upper bound on the excess of the best feasible value over ``value``, if ``certified``. It
        is at most the gap, because the gap also contains the rounding errors of ``value`` and
        ``bound``, for instance those of a large F(empty).
    gap_scale : float
        The trivial bound F(empty) + sum_i max(0, F({i}) - F(empty)), over the k largest, minus the
        value.
    rounding : float
        The part of the excess that rounding can explain. It is below a millionth of the smallest
        number that defines F. The set is ``exact`` if this is the whole excess.
    interrupted : bool
        Whether Ctrl-C stopped it. The set then holds the elements chosen so far, and there is no
        guarantee.
    reason : str
        Why it ended: "done", "time_limit of 2 s reached" (the set then holds the elements chosen so
        far, as after Ctrl-C), or "Ctrl-C ended it".
    timings : mapping of str to float
        The times in seconds of "set-up" (the bounds on rounding) and "search". They are not part of
        the answer.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.functions.maximize(sw.functions.Coverage([[0, 1], [1], [2]]), 2)
    >>> best.order.tolist(), best.value, best.gap
    ([0, 2], 3.0, 0.0)
    """

    _printed = (
        "value bound gap relative_gap exact mask guarantee "
        "assumes method n_iter interrupted reason timings"
    )

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
    gap_scale: float
    rounding: float = 0.0
    interrupted: bool = False
    reason: str = "done"
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self.mask.flags.writeable = self.order.flags.writeable = False

    @property
    def converged(self) -> bool:
        """Whether the method ended by itself, and not by Ctrl-C or ``time_limit``."""
        return self.reason == "done"

    def _measures(self) -> tuple[float, float, float]:
        return self.excess, self.gap_scale, self.rounding
