"""What every learner returns: the weights, and how far they can be from the best."""

from __future__ import annotations

from dataclasses import dataclass, field

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import Measured
from setwise._foundation._timings import Timings
from setwise.learning._history import History
from setwise.learning._room import room_of


@dataclass(frozen=True, eq=False)
class Planes:
    """Affine lower bounds of the risk, risk(w) >= offsets + slopes w: they hold for every C.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    >>> fit.planes.slopes.shape[1]
    1
    """

    slopes: FloatArray
    offsets: FloatArray


@dataclass(frozen=True, eq=False)
class PlaneShares:
    """Planes below the surrogate of each set in its scores, and their shares, which sum to 1.

    Set i has ``counts[i]`` of them, those of one set after those of the other: what a dual over
    planes of every set ends with, a start for any price.
    """

    counts: IntArray
    shares: FloatArray
    heights: FloatArray
    slopes: FloatArray


Dual = FloatArray | PlaneShares


@dataclass(frozen=True, eq=False)
class Fit(Measured):
    """The minimiser of 1/2 |w|^2 + C risk(w) as far as it was found, with its certificate.

    Attributes
    ----------
    w : array of shape (d,)
        The best weights met.
    value : float
        Their objective (the primal).
    bound : float
        No weights have a lower objective (the dual).
    n_iter : int
        Rounds.
    converged : bool
        Whether the relative gap came down to the tolerance.
    interrupted : bool
        Whether a callback or Ctrl-C ended the fit; ``w`` is then the best so far all the same.
    history : History
        Primal, dual and seconds of each round.
    C : float
        The price of the risk.
    risk_at_zero : float
        The risk of w = 0.
    least_risk : float or None
        The risk is nowhere lower, if that is known.
    rounding : float
        The rounding error of the sums that value and bound are: a smaller gap is none.
    size : float
        The magnitude of the terms that the bound is summed from, which its rounding is a share of.
    learner : str
        Which one ran: "one_slack", "n_slack", "block_frank_wolfe", "dual_blocks", "splitting",
        "kept_planes" or "interior_point".
    dual : array, PlaneShares or None
        Where the learner keeps it, a start for any other C: the share of each element in the
        weights, divided by C, or the shares of planes of each set.
    certified : bool
        Whether the bound is a proof. True: that the risk is convex and the oracle's answers are its
        subgradients is taken from the caller.
    reason : str
        Why it ended, in words: the gap, ``max_iter``, ``time_limit``, no progress any more, or who
        ended it.
    timings : mapping of str to float
        Where the time went, in seconds: "oracle", and "model" for all else. No part of the answer.

    ``relative_gap`` is the gap as a share of ``room``: w = 0 has 1, unless it is the minimum, then
    0. It changes neither with the unit of the risk or of the features nor with a constant added to
    the risk and to the least of it.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    >>> fit.value >= fit.bound, fit.relative_gap <= 1e-3
    (True, True)
    """

    w: FloatArray
    value: float
    bound: float
    n_iter: int
    converged: bool
    interrupted: bool
    history: History
    planes: Planes = field(repr=False)
    C: float
    risk_at_zero: float
    least_risk: float | None
    rounding: float
    size: float
    learner: str
    dual: Dual | None = field(default=None, repr=False)
    certified: bool = True
    reason: str = ""
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        self.w.flags.writeable = False

    @property
    def room(self) -> float:
        """What there is to gain over w = 0, P(0) - bound, or to lose, P - C least_risk.

        The smaller one: a gap that is small beside it is small beside both.
        """
        least = None if self.least_risk is None else self.C * self.least_risk
        return room_of(self.value, self.bound, self.C * self.risk_at_zero, least)

    def _measures(self) -> tuple[float, float, float]:
        return self.gap, self.room, self.rounding
