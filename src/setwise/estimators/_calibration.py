"""Calibration of probabilities on held-out rows, with one map per label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from setwise._foundation._arguments import FloatArray

# Probabilities are clipped to [CERTAIN, 1 - CERTAIN] before a logit is taken: near the rounding
# error of single precision, in which many classifiers compute them.
CERTAIN = 1e-7
METHODS = ("sigmoid", "isotonic")


class NeedsCalibrate:
    """A method that exists only with ``calibrate``; without it, access raises ``AttributeError``.

    scikit-learn's ``available_if`` would hide the message in the cause of the error.
    """

    def __init__(self, function: Callable[..., Any], methods: Sequence[str]) -> None:
        self.function, self.methods = function, methods

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is not None and not set(words_of(model.calibrate)) - {"threshold"}:
            kind, name = type(model).__name__, self.function.__name__
            words = f"{kind!r} object has no attribute {name!r}"
            if "calibrate" in model.get_params(deep=False):
                values = " or ".join(map(repr, self.methods))
                given = f"calibrate={model.calibrate!r}"
                words = f"{name} of {kind} needs calibrate={values}, got {given}"
            # Passing a name suppresses Python's own suggestion.
            raise AttributeError(words, name=name)
        return self.function.__get__(model, owner)


def words_of(calibrate: object) -> tuple[Any, ...]:
    """Return the words in a value of ``calibrate``."""
    if calibrate is None:
        return ()
    return tuple(calibrate) if isinstance(calibrate, list | tuple) else (calibrate,)


def needs_calibrate(*methods: str) -> Callable[[Callable[..., Any]], Any]:
    """Make a method exist only with one of these values of ``calibrate``."""
    return partial(NeedsCalibrate, methods=methods)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A map of probabilities per label: Platt's sigmoid of the logits, or a monotone function."""

    maps: tuple[Any, ...]

    @classmethod
    def fit(
        cls,
        method: str,
        p: FloatArray,
        positive: NDArray[np.bool_],
        weight: FloatArray | None = None,
    ) -> Calibration:
        """Fit to probabilities out of fold, with optional weights of the rows."""
        columns = zip(np.atleast_2d(p.T), np.atleast_2d(positive.T), strict=True)
        return cls(tuple(_map_of(method, x, y, weight) for x, y in columns))

    def __call__(self, p: FloatArray) -> FloatArray:
        """Return calibrated probabilities of the same shape."""
        mapped = [g(x) for g, x in zip(self.maps, np.atleast_2d(p.T), strict=True)]
        return np.stack(mapped, axis=1).reshape(p.shape)


def better_calibration(p: FloatArray, positive: NDArray[np.bool_]) -> str:
    """Choose the method with the lower log loss on held-out rows; the sigmoid if they tie.

    Probabilities are clipped to [1 / n, 1 - 1 / n] for n rows, because an isotonic map of few rows
    is overconfident.
    """
    n_folds = 5
    folds = np.arange(len(p)) % n_folds
    losses = dict.fromkeys(METHODS, 0.0)
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        for method in METHODS:
            predicted = Calibration.fit(method, p[train], positive[train])(p[test])
            predicted = np.clip(predicted, 1.0 / len(p), 1.0 - 1.0 / len(p))
            losses[method] -= float(
                np.log(np.where(positive[test], predicted, 1.0 - predicted)).sum()
            )
    return min(METHODS, key=losses.__getitem__)


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
    return np.asarray(logit(np.clip(p, CERTAIN, 1 - CERTAIN)))
