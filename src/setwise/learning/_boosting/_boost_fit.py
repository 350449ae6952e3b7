"""The result of boosting: weak learners, their weights, and a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Measured
from setwise._foundation._clock import Timings
from setwise._foundation._progress import Progress
from setwise.learning._boosting._problem import Column
from setwise.learning._history import History
from setwise.learning._relative_gap import measures


@dataclass(frozen=True, eq=False, repr=False)
class BoostHistory(History):
    """The history of a fit, with one entry per round. The first entry has no weak learner yet.

    Examples
    --------
    >>> import setwise as sw
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = sw.StructBoostClassifier(C=10.0).fit(X, y)
    >>> history = model.history_
    >>> int(history.n_columns[0]), bool(history.gap[-1] <= history.gap[0])
    (0, True)
    """

    n_columns: NDArray[np.int64]
    """The number of weak learners. A shared one counts once."""
    n_planes: NDArray[np.int64]
    """The number of planes in the linear program."""
    n_cuts: NDArray[np.int64]
    """The number of evaluations of the risk so far."""


@dataclass(frozen=True, eq=False, repr=False)
class BoostProgress(Progress):
    """The progress of a booster, which its callback receives after each round.

    ``columns`` are the weak learners so far and ``w`` the best weights so far. ``scores`` are their
    scores on the evaluation sets of an estimator, such as ``eval_set``, by name. It is empty
    without such sets.

    Examples
    --------
    >>> import setwise as sw
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> rounds = []
    >>> model = sw.StructBoostClassifier(C=10.0).fit(X, y, callback=rounds.append)
    >>> rounds[0].n_iter, rounds[0].value >= rounds[-1].value
    (1, True)
    """

    n_columns: int
    n_planes: int
    n_cuts: int
    columns: tuple[Column, ...] = ()
    w: FloatArray = field(default_factory=lambda: np.empty(0))
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class BoostFit(Record, Measured):
    """The minimiser of 1'w + C R(f) over weak learners, as far as it was found.

    Attributes
    ----------
    columns : tuple of Column
        The weak learners in the order in which they were added. A shared learner has one column per
        segment, side by side.
    w : array of shape (n_columns,)
        The weights of the columns: nonnegative, or of any sign if columns are shared.
    scores : array of shape (S,)
        The scores f, the weighted sum of the responses.
    value : float
        The primal objective, 1'w + C R(f).
    bound : float
        A lower bound of the objective over all weak learners and weights (the dual), or, if not
        ``certified``, over the learners that the search has found.
    zero : float
        The objective without weak learners, C R(0). The largest possible gain is
        ``zero - bound``.
    certified : bool
        Whether ``bound`` is proved for all weak learners, because the search was exact.
        ``relative_gap`` measures how close the fit is to the bound.
    n_iter : int
        The number of rounds.
    converged : bool
        Whether the relative gap is at most the tolerance.
    interrupted : bool
        Whether a callback or Ctrl-C ended the fit. The weights are then the best so far.
    stages : sparse array of shape (n_stages, n_columns)
        The best weights after each round that added weak learners.
    history : BoostHistory
        Primal, dual, seconds and sizes of each round.
    rounding : float
        The additional rounding error of the bound from sums whose terms cancel.
    reason : str
        The reason why the fit ended: the gap, ``n_estimators``, ``time_limit``, no learner that
        lowers the objective, or an interruption.
    timings : mapping of str to float
        The seconds per part of the work: "risk" (its evaluation), "search" (for weak learners) and
        "program" (the linear program and everything else).

    ``relative_gap`` is gap / min(zero - bound, value), or 0 if the gap is within rounding. Without
    learners it is 1, unless using no learner is optimal.

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
    >>> class Signs:  # the best learner of all: the signs of the weights
    ...     exact = True
    ...
    ...     def __call__(self, weights):
    ...         return [Column("sign", 0, np.sign(weights))]
    >>> fit = struct_boost(Hinge(), Signs(), C=10.0)
    >>> fit.w.tolist(), fit.value, fit.gap, fit.certified
    ([1.0], 1.0, 0.0, True)
    """

    _printed = (
        "value bound gap relative_gap certified converged columns "
        "w n_iter interrupted reason timings"
    )

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
