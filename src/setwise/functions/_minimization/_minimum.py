"""The record of a minimisation: a set, and the proof of how good it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise._foundation._certificate import Measured
from setwise._foundation._timings import Timings


@dataclass(frozen=True, eq=False)
class Minimum(Measured):
    """What ``minimize`` found, and the proof of how good it is.

    Attributes
    ----------
    mask : boolean array of shape (n,)
        The best set met.
    value : float
        F(mask).
    bound : float
        No set has a lower value, if ``certified``. It is F(empty) + sum_i min(x_i, 0), less all
        that rounding can have done to these sums; or the value, where all values of F are multiples
        of a unit (integers) and that is less than one unit below.
    x : array of shape (n,)
        The point of the base polytope that gives the bound.
    n_iter : int
        Greedy passes of the search.
    converged : bool
        Whether the set is ``exact``, or ``relative_gap`` came down to the tolerance.
    certified : bool
        Whether F is known to be submodular. If not, ``bound`` is a number without a meaning.
    excess : float
        No set is lower by more than this, if ``certified``. It is at most the gap, into which the
        rounding of ``value`` and ``bound`` goes: that of F(empty), if it is large.
    room : float
        What there was to gain: F(mask) less the trivial bound
        F(empty) + sum_i min(0, F(V) - F(V - i)).
    rounding : float
        What of the excess is the rounding of ties: the set is ``exact`` if that is all of it. A tie
        is an element whose coordinate of the proof is 0 but for rounding. What is granted there
        stays below a millionth of the smallest number that F is made of, so that no part of F can
        hide in it.
    interrupted : bool
        Whether a callback or Ctrl-C stopped it before it was done.
    reason : str
        Why it ended, in words: the gap, ``max_iter``, ``time_limit``, rounding, or who stopped it.
        Empty on the way.
    timings : mapping of str to float
        Where the time went, in seconds: "set-up", "search" and "proof". No part of the answer.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.functions.minimize(sw.functions.Modular([1.0, -2.0]))
    >>> best.value, best.bound, best.gap
    (-2.0, -2.0, 0.0)
    """

    mask: BoolArray
    value: float
    bound: float
    x: FloatArray
    n_iter: int
    converged: bool
    certified: bool
    excess: float
    room: float
    rounding: float = 0.0
    interrupted: bool = False
    reason: str = ""
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self.mask.flags.writeable = self.x.flags.writeable = False

    def _measures(self) -> tuple[float, float, float]:
        return self.excess, self.room, self.rounding
