"""Early detection: a loss of the mistakes up to every time."""

from __future__ import annotations

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_number
from setwise.functions import SetFunction
from setwise.losses._base import Loss
from setwise.losses._families import Family, PrefixRows
from setwise.losses._labels import Labels


class PrefixCardinality(SetFunction):
    r"""The function F(A) = :math:`\sum_i w_i \min(|A \cap \{0..i\}|, c_i)`.

    It is submodular and increasing. A greedy pass costs O(m n).
    """

    weights: FloatArray
    caps: FloatArray

    def __init__(self, weights: FloatArray, caps: FloatArray) -> None:
        self._set(n=len(weights), weights=weights, caps=caps)

    def _values(self, masks: BoolArray) -> FloatArray:
        return np.minimum(np.cumsum(masks, axis=1), self.caps) @ self.weights

    def _gains(self, order: IntArray) -> FloatArray:
        gains = np.empty(len(order))
        chains = np.array([0, len(order)])
        _core.prefix_gains(self.weights, self.caps, order, chains, gains)
        return gains

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool:
        return True


class EarlyDetection(Loss):
    r"""A loss in which earlier mistakes have larger weights, equations (49) and (50).

    .. math:: l(I) = \sum_{i=1}^p e^{-\lambda i} \min(|I_i|, \phi i),
        \qquad I_i = \{j \in I : j \le i\}

    The order of the elements is time. The loss is submodular and increasing. Margin rescaling is
    exact by a dynamic program over (i, number of mistakes so far), O(p^2).

    Parameters
    ----------
    rate : float
        The rate lambda, not negative; 1 in the paper.
    fraction : float
        phi, the share of mistakes above which further mistakes are free, in (0, 1]; 1/2 in the
        paper.

    Examples
    --------
    >>> import setwise as sw
    >>> loss = sw.losses.EarlyDetection()
    >>> round(loss([1, 1, 1, 1], [0, 1, 1, 1]), 3), round(loss([1, 1, 1, 1], [1, 1, 1, 0]), 3)
    (0.387, 0.018)
    """

    rate: float
    fraction: float

    def __init__(self, rate: float = 1.0, fraction: float = 0.5) -> None:
        share = as_number(fraction, "fraction", positive=True)
        if share > 1:
            raise ValueError(f"fraction must lie in (0, 1], got {fraction}")
        self._set(rate=as_number(rate, "rate", nonnegative=True), fraction=share)

    def _terms(self, p: int) -> tuple[FloatArray, FloatArray]:
        time = np.arange(1.0, p + 1.0)
        return np.exp(-self.rate * time), self.fraction * time

    def function_of(self, positive: BoolArray) -> PrefixCardinality:
        return PrefixCardinality(*self._terms(len(positive)))

    def _key(self, positive: BoolArray) -> object:
        return len(positive)

    def _family(self, labels: Labels) -> Family:
        # The terms of a shorter set are the first terms of a longer one.
        return PrefixRows(*self._terms(int(labels.sizes.max(initial=0))))

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        if labels.layout == "ragged":
            return super()._gains(labels, order, chains)
        gains = np.empty(len(order))
        p = int(labels.sizes[0]) if labels.n else 0
        _core.prefix_gains(*self._terms(p), order, chains, gains)
        return gains

    def _has_maximizer(self, *, slack: bool) -> bool:
        return not slack

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"EarlyDetection(rate={self.rate:g}, fraction={self.fraction:g})"
