"""Calibration: probabilities made true on rows that a model did not see, one map a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from setwise._foundation._arguments import FloatArray

# Probabilities of 0 and 1 have no logit; what lies beyond these is as certain.
_CERTAIN = 1e-7
METHODS = ("sigmoid", "isotonic")


@dataclass(frozen=True, eq=False)
class Calibration:
    """A map of probabilities for each label: Platt's sigmoid of the logits, or a monotone one."""

    maps: tuple[Any, ...]

    @classmethod
    def fit(
        cls,
        method: str,
        p: FloatArray,
        positive: NDArray[np.bool_],
        weight: FloatArray | None = None,
    ) -> Calibration:
        """From probabilities out of fold, and perhaps weights of the rows."""
        columns = zip(np.atleast_2d(p.T), np.atleast_2d(positive.T), strict=True)
        return cls(tuple(_map_of(method, x, y, weight) for x, y in columns))

    def __call__(self, p: FloatArray) -> FloatArray:
        """Calibrated probabilities, in the shape given."""
        mapped = [g(x) for g, x in zip(self.maps, np.atleast_2d(p.T), strict=True)]
        return np.stack(mapped, axis=1).reshape(p.shape)


class _Sigmoid:
    def __init__(self, slope: float, shift: float) -> None:
        self.slope, self.shift = slope, shift

    def __call__(self, p: FloatArray) -> FloatArray:
        return np.asarray(expit(self.slope * _logits(p) + self.shift))


class _Constant:
    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, p: FloatArray) -> FloatArray:
        return np.full(len(p), self.value)


class _Isotonic:
    def __init__(
        self, p: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None
    ) -> None:
        self.model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        self.model.fit(p, positive, sample_weight=weight)

    def __call__(self, p: FloatArray) -> FloatArray:
        return np.asarray(self.model.predict(p))


def _map_of(
    method: str, p: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None
) -> Any:
    if positive.all() or not positive.any():
        return _Constant(float(positive.mean()))
    if method == "isotonic":
        return _Isotonic(p, positive, weight)
    model = LogisticRegression(C=1e3).fit(_logits(p)[:, None], positive, sample_weight=weight)
    return _Sigmoid(float(model.coef_[0, 0]), float(model.intercept_[0]))


def _logits(p: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(p, _CERTAIN, 1 - _CERTAIN)))
