"""The Hamming loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise.functions import Modular
from setwise.losses._base import Loss, LossTraits
from setwise.losses._families import ModularRows, Weights
from setwise.losses._labels import Labels


def flat_weights(weights: FloatArray | None, labels: Labels) -> FloatArray:
    """Return one weight per element of each set; raise an error if a set has another size."""
    if weights is None:
        return np.ones(len(labels.positive))
    wrong = labels.sizes != len(weights)
    if wrong.any():
        raise ValueError(
            f"y must have {len(weights)} elements a set, one for each weight of the loss, "
            f"got {labels.sizes[wrong][0]}"
        )
    return weights if labels.n == 1 else np.tile(weights, labels.n)


class Hamming(Loss):
    r"""The sum of the weights of the mistakes: :math:`\sum_{i \in I} \beta_i`, modular.

    It is a count, not a mean as in scikit-learn's ``hamming_loss``. Its Lovász hinge is the sum of
    the hinge losses (Proposition 8).

    Parameters
    ----------
    weights : array of shape (p,), optional
        Not negative; by default 1 for every element, in sets of any size.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.losses.Hamming()([1, 0, 1], [0, 0, 0])
    2.0
    >>> sw.losses.Hamming([1.0, 0.5, 0.2])([1, 0, 1], [0, 0, 0])
    1.2
    """

    weights: FloatArray | None

    def __init__(self, weights: ArrayLike | None = None) -> None:
        self._set(
            weights=None if weights is None else as_numbers(weights, "weights", nonnegative=True)
        )

    def function_of(self, positive: BoolArray) -> Modular:
        if self.weights is None:
            return Modular(np.ones(len(positive)))
        if len(self.weights) != len(positive):
            raise ValueError(
                f"y must have {len(self.weights)} elements a set, one for each weight of the "
                f"loss, got {len(positive)}"
            )
        return Modular(self.weights)

    def _key(self, positive: BoolArray) -> object:
        return len(positive)

    def _family(self, labels: Labels) -> ModularRows:
        return ModularRows(flat_weights(self.weights, labels), labels, self._common)

    def _common(self) -> float | None:
        """Return the weight that all elements share, or None if they differ."""
        if self.weights is None or not self.weights.size:
            return 1.0
        return float(self.weights[0]) if np.all(self.weights == self.weights[0]) else None

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        if self.weights is None:
            return labels.counts(mistakes).astype(np.float64)
        return super()._values(labels, mistakes)

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        if self.weights is None:
            return np.ones(len(order))
        flat_weights(self.weights, labels)
        return self.weights[order]

    @property
    def _traits(self) -> LossTraits:  # type: ignore[override]
        equal = self.weights is None
        return LossTraits(is_modular=True, is_symmetric=equal, is_count=equal)

    @property
    def _form(self) -> Weights:
        return Weights(self.weights)

    def _has_maximizer(self, *, slack: bool) -> bool:
        return not slack or self.weights is None

    def _element_weights(self, labels: Labels) -> FloatArray:
        return flat_weights(self.weights, labels)

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Hamming()" if self.weights is None else f"Hamming({self.weights.tolist()})"
