"""The result of every learner: the weights and their certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Measured
from setwise._foundation._clock import Timings
from setwise.learning._history import History
from setwise.learning._relative_gap import gap_scale_of


@dataclass(frozen=True, eq=False, repr=False)
class Planes(Record):
    """Affine lower bounds of the risk, risk(w) >= offsets + slopes w, which hold for every C.

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
    """Planes below the surrogate of each set in its scores, with shares that sum to 1 per set.

    Set i has ``counts[i]`` planes, and the planes are ordered by set. They are the final point of a
    dual over planes of every set, and a warm start for any C.
    """

    counts: IntArray
    shares: FloatArray
    heights: FloatArray
    slopes: FloatArray


Dual = FloatArray | PlaneShares


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Record, Measured):
    """The minimiser of 1/2 |w|^2 + C risk(w), as far as it was found, with its certificate.

    Attributes
    ----------
    w : array of shape (d,)
        The best weights found.
    value : float
        Their objective (the primal).
    bound : float
        A lower bound of the objective over all weights (the dual).
    n_iter : int
        The number of rounds.
    converged : bool
        Whether the relative gap is at most the tolerance.
    interrupted : bool
        Whether a callback or Ctrl-C ended the fit. ``w`` is then the best so far.
    history : History
        Primal, dual and seconds of each round.
    C : float
        The weight of the risk.
    risk_at_zero : float
        The risk at w = 0.
    least_risk : float or None
        A lower bound of the risk; None if none is known.
    rounding : float
        The rounding error of value and bound. A smaller gap counts as zero.
    size : float
        The magnitude of the terms of the bound, to which its rounding error is relative.
    learner : str
        The learners that ran: "one_slack", "n_slack", "dual_blocks", "splitting",
        "kept_planes" or "interior_point".
    dual : array, PlaneShares or None
        The dual point, if the learner has one, as a warm start for any other C: the dual variable
        of each element divided by C, or the shares of the planes of each set.
    certified : bool
        Whether the bound is proved. If True, the proof assumes that the risk is convex and that the
        oracle returns its subgradients.
    reason : str
        The reason why the fit ended: the gap, ``max_iter``, ``time_limit``, a lack of progress, or
        an interruption.
    timings : mapping of str to float
        The seconds per part of the work: "oracle", and "model" for everything else.

    ``relative_gap`` is the gap as a share of ``gap_scale``. It is 1 at w = 0, unless w = 0 is the
    minimum. It depends neither on the units of the risk and the features, nor on a constant that is
    added to the risk and to ``least_risk``.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    >>> fit.value >= fit.bound, fit.relative_gap <= 1e-3
    (True, True)
    """

    _printed = (
        "value bound gap relative_gap certified converged w "
        "learner n_iter interrupted reason timings"
    )

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
    def gap_scale(self) -> float:
        """The scale of the relative gap: the smaller of P(0) - bound and P - C least_risk.

        The first is the largest possible gain over w = 0. The second is the objective above its
        trivial lower bound.
        """
        least = None if self.least_risk is None else self.C * self.least_risk
        return gap_scale_of(self.value, self.bound, self.C * self.risk_at_zero, least)

    def _measures(self) -> tuple[float, float, float]:
        return self.gap, self.gap_scale, self.rounding
