"""Biases of labels, or a temperature, chosen by a set loss of labels on graphs left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields import Field
from setwise.losses import Loss

Solve = Callable[[Sequence[Field]], list[IntArray]]

# Each bias is tried so that a share of the nodes, taken alone, goes over to its label.
_SHARES = np.linspace(0.02, 0.98, 33)
_SWEEPS = 2  # over the labels, where there are more than two
TEMPERATURES = np.geomspace(1 / 16, 16, 9)


class Measure:
    r"""The mean over the graphs of a set loss, as a share of that of everything wrong.

    A label's set are its nodes, and l is the second of two labels, or each of more in turn:
    :math:`\Delta(\{y_i = l\}, \{z_i = l\}) / \Delta(\{y_i = l\}, \{y_i \ne l\})`. Weights of nodes
    are how often they count, where the loss knows that.
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
        if weights is not None and loss._takes_multiplicity:
            self._losses = [loss._with_multiplicity(c) for c in weights]

    def __call__(self, labels: Sequence[NDArray[Any]]) -> float:
        """Return the measure of labels of each graph."""
        shares = []
        for loss, y, z in zip(self._losses, self._truth, labels, strict=True):
            for label in self._sets if len(y) else ():
                worst = float(loss(y == label, y != label))
                shares.append(float(loss(y == label, z == label)) / worst if worst > 0 else 0.0)
        return float(np.mean(shares)) if shares else 0.0


def best_biases(fields: Sequence[Field], measure: Measure, solve: Solve) -> FloatArray:
    """Return what to add to the score of each label, (L,); the first of two labels has none.

    One label after the other, each by a search over the biases that carry shares of the nodes.
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
                # The middle of what is best, where several biases are.
                best = np.flatnonzero(np.array(values) == min(values))
                least, bias = min(values), _with(bias, label, wanted[best[len(best) // 2]])
    return bias


def _with(bias: FloatArray, label: int, value: float) -> FloatArray:
    changed = bias.copy()
    changed[label] = value
    return changed
