"""What every learner returns: the weights, and how far they can be from the best."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from setwise.functions._arguments import FloatArray


@dataclass(frozen=True, eq=False)
class History:
    """How a fit went, one entry a round.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    >>> bool((fit.history.primal >= fit.history.dual).all())
    True
    """

    primal: FloatArray
    """The best objective so far."""
    dual: FloatArray
    """The best bound so far."""
    seconds: FloatArray
    """Since the start of the fit."""


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
class Fit:
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

    def __post_init__(self) -> None:
        self.w.flags.writeable = False

    @property
    def gap(self) -> float:
        """Value - bound, never negative."""
        return self.value - self.bound

    @property
    def relative_gap(self) -> float:
        """Gap / max(1, abs(value))."""
        return self.gap / max(1.0, abs(self.value))


@dataclass(frozen=True)
class Progress:
    """What a learner tells its callback after each round.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rounds = []
    >>> fit = sw.learning.one_slack(
    ...     lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, callback=rounds.append
    ... )
    >>> len(rounds) == fit.n_iter
    True
    """

    n_iter: int
    value: float
    bound: float
    relative_gap: float
    seconds: float


class Log:
    """The best primal and dual so far, written down after each round."""

    def __init__(self) -> None:
        self.rows: list[Progress] = []

    def add(self, value: float, bound: float, seconds: float) -> Progress:
        """Write a round down."""
        relative = (value - bound) / max(1.0, abs(value))
        self.rows.append(Progress(len(self.rows) + 1, value, bound, relative, seconds))
        return self.rows[-1]

    def history(self) -> History:
        """All rounds, as arrays."""
        columns = np.array([(row.value, row.bound, row.seconds) for row in self.rows])
        return History(*columns.reshape(-1, 3).T.copy())
