"""Piles of digits, a multi-label problem: each row has a set of labels, scored by Jaccard."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from setwise import SetClassifier, SetDecision
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray

NOISE = 0.5
MOST = 3
SHARE = 2 / 3  # share of the digits for training; the others are for testing
METHODS = {
    "half": "logistic regression, threshold 1/2",
    "tuned": "logistic regression, tuned threshold",
    "hinge": "plain hinge",
    "lovasz": "Lovász hinge of Jaccard",
    "decision": "logistic regression, SetDecision",
}


@dataclass(frozen=True)
class Settings:
    """The amount of work of the experiment, the same for all methods."""

    n_seeds: int = 5
    n_train: int = 600
    n_test: int = 2000
    n_inner: int = 3
    Cs: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0)


QUICK = Settings(n_seeds=2, n_train=120, n_test=200, n_inner=2, Cs=(0.1,))


@dataclass(frozen=True)
class Piles:
    """The test piles of one seed, and the predictions of each method."""

    X: FloatArray
    Y: BoolArray
    answers: dict[str, BoolArray]
    """For each method the predicted digits, (n, 10)."""
    probabilities: FloatArray
    """(n, 10), of the logistic regression."""

    @property
    def scores(self) -> dict[str, float]:
        """The mean Jaccard index of the rows, for each method."""
        return {name: jaccard(self.Y, answer) for name, answer in self.answers.items()}


def draw_piles(
    ink: FloatArray, digits: IntArray, n: int, rng: np.random.Generator
) -> tuple[FloatArray, BoolArray]:
    """Draw one to three digits on top of one another, with noise. Return ink and digits."""
    X, Y = np.empty((n, ink.shape[1])), np.zeros((n, 10), dtype=bool)
    for i in range(n):
        chosen = rng.choice(len(ink), rng.integers(1, MOST + 1), replace=False)
        X[i], Y[i, digits[chosen]] = ink[chosen].max(axis=0), True
    return X + NOISE * rng.normal(size=X.shape), Y


def jaccard(Y: BoolArray, answer: BoolArray) -> float:
    """Return the mean over the rows of |both| / |either|; every row of Y has a label."""
    return float(np.mean((Y & answer).sum(axis=1) / (Y | answer).sum(axis=1)))


def run(settings: Settings) -> list[Piles]:
    """For each seed, split the digits, draw piles from each part, and fit every method."""
    from sklearn.datasets import load_digits

    from setwise._foundation._threads import one_thread

    ink, digits = load_digits(return_X_y=True)
    results = []
    with one_thread():  # the matrices are small
        for seed in range(settings.n_seeds):
            rng = np.random.default_rng(seed)
            a, b = np.split(rng.permutation(len(ink)), [int(SHARE * len(ink))])
            X, Y = draw_piles(ink[a] / 16, digits[a], settings.n_train, rng)
            X_test, Y_test = draw_piles(ink[b] / 16, digits[b], settings.n_test, rng)
            results.append(_compare(X, Y, X_test, Y_test, settings))
    return results


def _compare(
    X: FloatArray, Y: BoolArray, X_test: FloatArray, Y_test: BoolArray, settings: Settings
) -> Piles:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, cross_val_predict
    from sklearn.multiclass import OneVsRestClassifier

    def searched(model: object, name: str) -> Any:
        grid = {name: settings.Cs}
        search = GridSearchCV(model, grid, scoring="jaccard_samples", cv=settings.n_inner)
        with warnings.catch_warnings():
            # A fit with a small C that predicts no label warns; the search sees its low score.
            warnings.simplefilter("ignore", UserWarning)
            return search.fit(X, Y).best_estimator_

    logistic = searched(OneVsRestClassifier(LogisticRegression(max_iter=2000)), "estimator__C")
    held_out = cross_val_predict(logistic, X, Y, cv=settings.n_inner, method="predict_proba")
    thresholds = np.linspace(0.05, 0.6, 56)
    tuned = thresholds[int(np.argmax([jaccard(Y, held_out > t) for t in thresholds]))]
    p = logistic.predict_proba(X_test)
    answers = {"half": p > 0.5, "tuned": p > tuned}
    for name, loss in (("hinge", "hamming"), ("lovasz", "jaccard")):
        model = searched(SetClassifier(loss, max_iter=1000), "C")
        answers[name] = model.predict(X_test) > 0
    answers["decision"] = SetDecision(logistic, "jaccard").fit(X, Y).predict(X_test) > 0
    return Piles(X_test, Y_test, answers, p)


def verdict(results: list[Piles], first: str, second: str) -> str:
    """Return a sentence on which method is ahead over the seeds, by Student's t at 95 %."""
    differences = np.array([one.scores[first] - one.scores[second] for one in results])
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / np.sqrt(len(differences))
    text = f"{METHODS[first]} minus {METHODS[second]}: {mean:+.3f} ± {error:.3f}"
    if abs(mean) <= stdtrit(len(differences) - 1, 0.975) * error:
        return f"{text}, no difference beyond chance."
    return f"{text}, {'ahead' if mean > 0 else 'behind'} by more than chance."
