"""Is it an 8? All digits of a sample are one set, judged by one Jaccard index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.learning import one_slack
from setwise.losses import Hamming, Jaccard
from setwise.surrogates import LovaszHinge, Surrogate

# One seed for the outer and the inner folds.
SEED = 0
SURROGATES = {"lovasz": "Lovász hinge of Jaccard", "hinge": "plain hinge"}


@dataclass(frozen=True)
class Settings:
    """How much work the experiment does; the same for both surrogates."""

    n_folds: int = 5
    n_inner: int = 4
    Cs: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
    max_iter: int = 1000
    tol: float = 1e-3


QUICK = Settings(n_folds=2, n_inner=2, Cs=(1.0, 1000.0), max_iter=100)


@dataclass(frozen=True)
class Fit:
    """A linear scorer, and the proof of how near it is to the best one."""

    w: FloatArray
    relative_gap: float


@dataclass(frozen=True)
class Outcome:
    """One surrogate on one fold."""

    surrogate: str
    validation: FloatArray
    """For each C, the mean Jaccard index on digits held out of the training part."""
    C: float
    """The one that is best there; the scorer is then fitted on the whole training part."""
    jaccard: float
    """Jaccard index on the test part."""
    error: float
    """Share of wrong answers on the test part."""
    relative_gap: float
    """Of that last fit."""


def load() -> tuple[FloatArray, BoolArray]:
    """The digits of scikit-learn, ink between 0 and 1 and a constant column; which are an 8."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    return np.column_stack([images / 16.0, np.ones(len(images))]), digits == 8


def surrogate_for(name: str, p: int) -> Surrogate:
    """The surrogate of a set of p elements; each is 1 where all scores are 0."""
    if name == "lovasz":
        return LovaszHinge("jaccard")
    return LovaszHinge((1.0 / p) * Hamming())


def fit(
    surrogate: Surrogate,
    X: FloatArray,
    y: BoolArray,
    C: float,
    *,
    max_iter: int,
    tol: float,
) -> Fit:
    r"""Minimise :math:`P(w) = \frac12 |w|^2 + C R(w)`, R(w) the surrogate at the scores Xw.

    By one-slack cutting planes: R is convex, so that at every w its value and subgradient give a
    plane below it. The planes met so far give a lower bound of P, and the best P an upper one.
    Nothing is drawn at random.
    """

    def risk(w: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = surrogate.value_and_gradient(y, X @ w)
        return float(value), X.T @ gradient

    found = one_slack(risk, X.shape[1], C, max_iter=max_iter, tol=tol)
    return Fit(found.w, found.relative_gap)


def jaccard_index(fitted: Fit, X: FloatArray, y: BoolArray) -> float:
    """Intersection over union of the digits called an 8 and those that are."""
    return 1.0 - float(Jaccard()(y, X @ fitted.w > 0))


def run(settings: Settings) -> list[Outcome]:
    """Both surrogates on every fold: every digit is in one test part."""
    X, y = load()
    outcomes = []
    for train, test in _folds(y, settings.n_folds):
        for name in SURROGATES:
            validation = _validate(name, X[train], y[train], settings)
            C = settings.Cs[int(validation.argmax())]
            final = _fit(name, X[train], y[train], C, settings)
            wrong = (X[test] @ final.w > 0) != y[test]
            outcomes.append(
                Outcome(
                    name,
                    validation,
                    C,
                    jaccard_index(final, X[test], y[test]),
                    float(wrong.mean()),
                    final.relative_gap,
                )
            )
    return outcomes


def _validate(name: str, X: FloatArray, y: BoolArray, settings: Settings) -> FloatArray:
    """For each C, the mean Jaccard index on each fold when trained on the others."""
    indices = np.empty((settings.n_inner, len(settings.Cs)))
    for row, (a, b) in zip(indices, _folds(y, settings.n_inner), strict=True):
        row[:] = [
            jaccard_index(_fit(name, X[a], y[a], C, settings), X[b], y[b]) for C in settings.Cs
        ]
    return np.asarray(indices.mean(axis=0))


def _fit(name: str, X: FloatArray, y: BoolArray, C: float, settings: Settings) -> Fit:
    surrogate = surrogate_for(name, len(y))
    return fit(surrogate, X, y, C, max_iter=settings.max_iter, tol=settings.tol)


def _folds(y: BoolArray, n_folds: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Train and test parts, each with its share of 8s."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(n_folds, shuffle=True, random_state=SEED)
    yield from folds.split(y, y)
