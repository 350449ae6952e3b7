"""The choice of label biases, or of a temperature, by a set loss on held-out graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields import Field
from setwise.losses import Loss

Solve = Callable[[Sequence[Field]], list[IntArray]]

# The candidates for the bias of a label. With each, this share of the nodes takes the label if
# pairs are ignored.
_SHARES = np.linspace(0.02, 0.98, 33)
# Rounds over all labels, if there are more than two. Each takes 33 searches per label; the second
# corrects the first labels for the biases of the last.
_SWEEPS = 2
TEMPERATURES = np.geomspace(1 / 16, 16, 9)


class Measure:
    r"""The mean over the graphs of a set loss, relative to its value if all labels are wrong.

    A label's set is the set of its nodes. Here l is the second of two labels, or each one of more:
    :math:`\Delta(\{y_i = l\}, \{z_i = l\}) / \Delta(\{y_i = l\}, \{y_i \ne l\})`. Node weights are
    multiplicities, if the loss supports them.
    """

    def __init__(
        self,
        loss: Loss,
        truth: Sequence[NDArray[Any]],
        classes: NDArray[Any],
        weights: Sequence[FloatArray] | None,
    ) -> None:
        self._truth = truth
        self._sets = classes[1:] if len(classes) == 2 else classes
        self._losses: list[Loss] = [loss] * len(truth)
        if weights is not None and loss._traits.takes_multiplicity:
            self._losses = [loss._with_multiplicity(c) for c in weights]

    def __call__(self, labels: Sequence[NDArray[Any]]) -> float:
        """Return the measure of the labels of all graphs."""
        shares = []
        for loss, y, z in zip(self._losses, self._truth, labels, strict=True):
            for label in self._sets if len(y) else ():
                worst = float(loss(y == label, y != label))
                shares.append(float(loss(y == label, z == label)) / worst if worst > 0 else 0.0)
        return float(np.mean(shares)) if shares else 0.0


def best_biases(fields: Sequence[Field], measure: Measure, solve: Solve) -> FloatArray:
    """Return the bias of each label, (L,); with two labels that of the first is 0.

    The labels are searched one after the other, each over the biases of _SHARES.
    """
    unary = np.concatenate([field.unary for field in fields])
    n_labels = unary.shape[1]
    bias = np.zeros(n_labels)

    def value(tried: FloatArray) -> float:
        return measure(solve([field.with_unary(field.unary - tried) for field in fields]))

    least = value(bias)
    tuned = [1] if n_labels == 2 else range(n_labels)
    for _ in range(1 if n_labels == 2 else _SWEEPS):
        for label in tuned:
            others = np.delete(unary - bias, label, axis=1).min(axis=1)
            wanted = np.unique(np.quantile(unary[:, label] - others, _SHARES))
            values = [value(_with(bias, label, b)) for b in wanted]
            if min(values) < least:
                # If several biases are best, the middle one is taken.
                best = np.flatnonzero(np.array(values) == min(values))
                least, bias = min(values), _with(bias, label, wanted[best[len(best) // 2]])
    return bias


def _with(bias: FloatArray, label: int, value: float) -> FloatArray:
    changed = bias.copy()
    changed[label] = value
    return changed
