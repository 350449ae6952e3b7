"""The record of a decision: a set, its expected loss, and a bound for all sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise._foundation._base_classes import Versioned


@dataclass(frozen=True, eq=False)
class Decision(Versioned):
    r"""The set of least expected loss that was found, with a bound for all other sets.

    For a single set the attributes are numbers and ``bool``; for rows, groups and ragged sets they
    are arrays with one entry per set.

    Attributes
    ----------
    mask : boolean array
        The decision, in the shape of the probabilities; in CSR format if they are sparse.
    expected : float or array
        The expected loss of the decision under ``law``.
    bound : float or array
        No set has an expected loss below this, under the same law.
    error : float or array
        The error of ``expected`` by rounding, quadrature or sampling; a sampling error is larger
        with probability 1e-6.
    exact : bool or array
        Whether the decision is proved to be optimal, up to ``error``.
    method : str
        "integrals", "majority", "counts", "enumeration", "samples" or "candidates".
    law : str
        The assumed distribution of the truth.

    Examples
    --------
    >>> import setwise as sw
    >>> decision = sw.decide([0.9, 0.45, 0.4, 0.1], "jaccard")
    >>> decision.mask.tolist(), decision.exact
    ([True, True, True, False], True)
    >>> decision
    Decision(3 of 4, expected 0.4313, exact, by integrals, for independent elements)
    """

    mask: BoolArray
    expected: float | FloatArray
    bound: float | FloatArray
    error: float | FloatArray
    exact: bool | BoolArray
    method: str
    law: str

    @property
    def value(self) -> float | FloatArray:
        """``expected``, under the name that all results share."""
        return self.expected

    @property
    def gap(self) -> float | FloatArray:
        """``regret_bound``, under the name that all results share."""
        return self.regret_bound

    @property
    def regret_bound(self) -> float | FloatArray:
        """The difference expected - bound: no set's expected loss is lower by more than this."""
        gap = np.maximum(np.asarray(self.expected) - np.asarray(self.bound), 0.0)
        return float(gap) if gap.ndim == 0 else gap

    def __repr__(self) -> str:
        how = f"by {self.method:.40}, for {self.law:.100}"
        if np.ndim(self.expected) == 0:
            chosen = int(self.mask.sum())
            proved = "exact" if self.exact else f"at most {self.regret_bound:.2g} above the best"
            return (
                f"Decision({chosen} of {prod(self.mask.shape)}, expected {self.expected:.4g}, "
                f"{proved}, {how})"
            )
        exact = np.asarray(self.exact)
        mean = float(np.mean(self.expected)) if exact.size else 0.0
        return (
            f"Decision({exact.size} sets, expected {mean:.4g} on average, "
            f"{int(exact.sum())} exact, {how})"
        )
