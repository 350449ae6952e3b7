"""Probabilities of classes from scores that were held out: a softmax, or one class at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._calibration import Calibration

METHODS = ("softmax", "sigmoid", "isotonic")
# Of the biases, so that a class that no held-out row has keeps a finite one; of examples' weights.
_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    r"""Scores of k classes, (n, k), as probabilities.

    "softmax": :math:`p_y \propto \exp(t f_y + b_y)` with one temperature and a bias a class, those
    of least log-loss. "sigmoid", "isotonic": each class against the others, by Platt's sigmoid or a
    monotone function, divided by the sum.

    Two classes have one score, (n,): half of it for the second, and minus half for the first.
    """

    maps: Any

    @classmethod
    def fit(
        cls, method: str, scores: FloatArray, y: IntArray, weight: FloatArray, k: int
    ) -> ClassProbabilities:
        """From scores, places of the true classes and weights of the rows."""
        scores = _of_classes(scores)
        if method == "softmax":
            return cls(_softmax_map(scores, y, weight / weight.sum(), k))
        positive = y[:, None] == np.arange(k)
        return cls(Calibration.fit(method, expit(scores), positive, weight))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """(n, k), rows of sum 1."""
        scores = _of_classes(scores)
        if isinstance(self.maps, tuple):
            slope, bias = self.maps
            return np.asarray(softmax(slope * scores + bias, axis=1))
        told = self.maps(expit(scores))
        sums = told.sum(axis=1, keepdims=True)
        # Where every class is ruled out, nothing is known.
        shares: FloatArray = np.where(
            sums > 0, told / np.where(sums > 0, sums, 1), 1 / told.shape[1]
        )
        return shares


def _of_classes(scores: FloatArray) -> FloatArray:
    return scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1) / 2


def _softmax_map(
    scores: FloatArray, y: IntArray, weight: FloatArray, k: int
) -> tuple[float, FloatArray]:
    """The temperature, not negative, and biases of least log-loss; convex."""
    unit = max(float(np.abs(scores).max(initial=0.0)), 1e-300)
    scaled = scores / unit
    hot = (y[:, None] == np.arange(k)).astype(np.float64)

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        z = x[0] * scaled + x[1:]
        logs = log_softmax(z, axis=1)
        off = weight[:, None] * (np.exp(logs) - hot)
        value = -float(weight @ (hot * logs).sum(axis=1)) + _RIDGE / 2 * float(x[1:] @ x[1:])
        return value, np.concatenate([[np.sum(off * scaled)], off.sum(axis=0) + _RIDGE * x[1:]])

    start = np.concatenate([[1.0], np.zeros(k)])
    bounds = [(0.0, 1e6)] + [(None, None)] * k
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]) / unit, np.asarray(found[1:])
