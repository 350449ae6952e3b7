"""What a decision is: a set, what it is expected to cost, and what no set can be expected below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Decision:
    r"""The set of least expected loss, as far as it can be found, with a bound on every other.

    For one set numbers and ``bool``; for rows, groups and ragged sets an array with an entry a set.

    Attributes
    ----------
    mask : boolean array
        The decision, in the shape of the probabilities.
    expected : float or array
        The expected loss of the decision under ``law``.
    bound : float or array
        No set has an expected loss below this, under the same law.
    error : float or array
        How far rounding, quadrature or sampling may have moved ``expected``; by sampling with a
        probability of 1e-6 further.
    exact : bool or array
        Whether the decision is proved to be a best one, up to ``error``.
    method : str
        "integrals", "majority", "counts", "enumeration", "samples" or "candidates".
    law : str
        Under which law of the truth the rest holds.

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
        """``expected``, by the word that all results share."""
        return self.expected

    @property
    def gap(self) -> float | FloatArray:
        """``regret_bound``, by the word that all results share."""
        return self.regret_bound

    @property
    def regret_bound(self) -> float | FloatArray:
        """expected - bound: no set's expected loss is lower by more than this."""
        gap = np.maximum(np.asarray(self.expected) - np.asarray(self.bound), 0.0)
        return float(gap) if gap.ndim == 0 else gap

    def __repr__(self) -> str:
        how = f"by {self.method}, for {self.law}"
        if np.ndim(self.expected) == 0:
            chosen = int(np.count_nonzero(self.mask))
            proved = "exact" if self.exact else f"at most {self.regret_bound:.2g} above the best"
            return (
                f"Decision({chosen} of {self.mask.size}, expected {self.expected:.4g}, "
                f"{proved}, {how})"
            )
        exact = np.asarray(self.exact)
        mean = float(np.mean(self.expected)) if exact.size else 0.0
        return (
            f"Decision({exact.size} sets, expected {mean:.4g} on average, "
            f"{int(exact.sum())} exact, {how})"
        )
