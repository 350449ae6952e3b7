"""The record of a minimisation: a set with its proof."""

from __future__ import annotations

from dataclasses import dataclass, field

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Measured
from setwise._foundation._clock import Timings


@dataclass(frozen=True, eq=False, repr=False)
class Minimum(Record, Measured):
    """The result of ``minimize``: a set with its proof.

    Attributes
    ----------
    mask : boolean array of shape (n,)
        The best set found.
    value : float
        F(mask).
    bound : float
        No set has a lower value, if ``certified``. It is F(empty) + sum_i min(x_i, 0), rounded
        downwards by the possible rounding errors. If all values of F are multiples of a unit (for
        instance integers) and this is less than one unit below the value, the bound is the value.
    x : array of shape (n,)
        The point of the base polytope that gives the bound.
    n_iter : int
        The number of greedy passes of the search.
    converged : bool
        Whether the set is ``exact`` or ``relative_gap`` is at most the tolerance.
    certified : bool
        Whether F is known to be submodular. If not, ``bound`` has no meaning.
    excess : float
        An upper bound on ``value`` minus the minimum, if ``certified``. It is at most the gap,
        because the gap also contains the rounding errors of ``value`` and ``bound``, for instance
        those of a large F(empty).
    gap_scale : float
        F(mask) minus the trivial bound
        F(empty) + sum_i min(0, F(V) - F(V - i)).
    rounding : float
        The part of the excess that is the rounding of ties. The set is ``exact`` if this is the
        whole excess. A tie is an element whose coordinate in the proof is 0 up to rounding. This
        rounding is limited to a millionth of the smallest number that defines F, so that no part of
        F is mistaken for rounding.
    interrupted : bool
        Whether a callback or Ctrl-C stopped it before it was done.
    reason : str
        Why the search ended, in words: the gap, ``max_iter``, ``time_limit``, rounding, or an
        interruption. It is empty while the search runs.
    timings : mapping of str to float
        The times in seconds of "set-up", "search" and "proof". They are not part of the answer.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.functions.minimize(sw.functions.Modular([1.0, -2.0]))
    >>> best.value, best.bound, best.gap
    (-2.0, -2.0, 0.0)
    """

    _printed = "value bound gap relative_gap exact mask n_iter converged interrupted reason timings"

    mask: BoolArray
    value: float
    bound: float
    x: FloatArray
    n_iter: int
    converged: bool
    certified: bool
    excess: float
    gap_scale: float
    rounding: float = 0.0
    interrupted: bool = False
    reason: str = ""
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self.mask.flags.writeable = self.x.flags.writeable = False

    def _measures(self) -> tuple[float, float, float]:
        return self.excess, self.gap_scale, self.rounding
