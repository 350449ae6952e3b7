"""The history of a fit, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._base_classes import Versioned
from setwise._foundation._progress import Progress


@dataclass(frozen=True, eq=False, repr=False)
class History(Versioned):
    """The history of a fit, with one entry per round.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> fit = sw.learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)
    >>> bool((fit.history.primal >= fit.history.dual).all())
    True
    >>> print(fit.history)
    History(2 rounds, primal 0.5 to 0.375, dual 0.375 to 0.375, ... seconds)
    """

    primal: FloatArray
    """The best objective so far."""
    dual: FloatArray
    """The best bound so far."""
    seconds: FloatArray
    """The seconds since the start of the fit."""

    @property
    def gap(self) -> FloatArray:
        """The gap, primal - dual."""
        return self.primal - self.dual

    def __repr__(self) -> str:
        n = len(self.primal)
        if n == 0:
            return f"{type(self).__name__}(0 rounds)"
        ends = (
            f"{name} {values[0]:.4g} to {values[-1]:.4g}"
            for name, values in (("primal", self.primal), ("dual", self.dual))
        )
        return (
            f"{type(self).__name__}({n} rounds, {', '.join(ends)}, {self.seconds[-1]:.3g} seconds)"
        )


def columns_of(rounds: Sequence[Progress]) -> FloatArray:
    """Return value, bound and seconds of the rounds, (3, n_rounds)."""
    rows = np.array([(now.value, now.bound, now.seconds) for now in rounds])
    columns: FloatArray = rows.T.copy()
    return columns
