"""What a booster returns: weak learners, their weights, and how far they can be from the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import Measured
from setwise._foundation._progress import Progress
from setwise._foundation._timings import Timings
from setwise.learning._boosting._problem import Column
from setwise.learning._history import History
from setwise.learning._room import measures


@dataclass(frozen=True, eq=False)
class BoostHistory(History):
    """How a fit went, one entry a round, with its sizes; the first has no weak learner yet.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import BoostHistory
    >>> history = BoostHistory(
    ...     *np.array([[2.0, 1.0], [0.5, 0.9], [0.0, 0.1]]), *np.array([[0, 1], [1, 3], [1, 3]])
    ... )
    >>> history.gap.round(2).tolist()
    [1.5, 0.1]
    """

    n_columns: NDArray[np.int64]
    """Weak learners; one that is shared counts once."""
    n_planes: NDArray[np.int64]
    """Planes in the linear program."""
    n_cuts: NDArray[np.int64]
    """Questions to the risk so far."""


@dataclass(frozen=True, eq=False)
class BoostProgress(Progress):
    """What a booster tells its callback after each round: its sizes and weak learners too.

    ``columns`` are the weak learners so far and ``w`` their weights, the best that were found;
    ``scores`` says how good they are on the sets that an estimator is judged by, such as
    ``eval_set``, by name, and is empty where there are none.

    Examples
    --------
    >>> from setwise.learning import BoostProgress
    >>> BoostProgress(1, 2.0, 0.5, 0.75, 0.1, n_columns=0, n_planes=1, n_cuts=1).value
    2.0
    """

    n_columns: int
    n_planes: int
    n_cuts: int
    columns: tuple[Column, ...] = ()
    w: FloatArray = field(default_factory=lambda: np.empty(0))
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class BoostFit(Measured):
    """The minimiser of 1'w + C R(f) over weak learners as far as it was found.

    Attributes
    ----------
    columns : tuple of Column
        The weak learners in the order of their arrival; of learners that are shared, one a segment,
        side by side.
    w : array of shape (n_columns,)
        Their weights, not negative; of any sign if they are shared.
    scores : array of shape (S,)
        f, the weighted sum of the responses.
    value : float
        1'w + C R(f), the primal.
    bound : float
        No weak learners and weights have a lower objective (the dual); if not ``certified``, none
        of those that the search met.
    zero : float
        C R(0), the objective without weak learners: ``zero - bound`` is what there was to gain.
    certified : bool
        Whether ``bound`` is a proof: the search was exact, so that it holds for all weak learners
        and not for those alone that were met. It does not say that the bound was reached; that is
        ``relative_gap``.
    n_iter : int
        Rounds.
    converged : bool
        Whether the relative gap came down to the tolerance.
    interrupted : bool
        Whether a callback or Ctrl-C ended the fit; the weights are the best so far all the same.
    stages : sparse array of shape (n_stages, n_columns)
        The best weights after each round that added weak learners, of those that were there.
    history : BoostHistory
        Primal, dual, seconds and sizes of each round.
    rounding : float
        The rounding error of the bound beyond that of its size, of sums whose terms cancel.
    reason : str
        Why it ended, in words: the gap, ``n_estimators``, ``time_limit``, no learner that would
        help, or who ended it.
    timings : mapping of str to float
        Where the time went, in seconds: "risk" (questions to it), "search" (for weak learners), and
        "program", the linear one, for all else. No part of the answer.

    ``relative_gap`` is gap / min(zero - bound, value), 0 where the gap is within rounding: no
    learners have 1, unless they are the best.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import Column, struct_boost
    >>> class Hinge:  # of two examples with labels +1 and -1
    ...     offsets = np.array([0, 2])
    ...
    ...     def __call__(self, f):
    ...         y = np.array([1.0, -1.0])
    ...         return np.maximum(1 - y * f, 0).mean(), np.where(y * f < 1, -y, 0) / 2
    >>> class Signs:  # of the weights themselves, the best there is
    ...     exact = True
    ...
    ...     def __call__(self, weights):
    ...         return [Column("sign", 0, np.sign(weights))]
    >>> fit = struct_boost(Hinge(), Signs(), C=10.0)
    >>> fit.w.tolist(), fit.value, fit.gap, fit.certified
    ([1.0], 1.0, 0.0, True)
    """

    columns: tuple[Column, ...]
    w: FloatArray
    scores: FloatArray
    value: float
    bound: float
    zero: float
    certified: bool
    n_iter: int
    converged: bool
    interrupted: bool
    stages: csr_array
    history: BoostHistory
    rounding: float = 0.0
    reason: str = ""
    timings: Timings = field(default_factory=Timings)

    def _measures(self) -> tuple[float, float, float]:
        return measures(self.value, self.bound, self.zero, self.rounding)
