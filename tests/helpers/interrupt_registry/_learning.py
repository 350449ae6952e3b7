"""Long calls of the learners, weak learners and executors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from interrupt_registry._calls import Call, long
from interrupt_registry._inference import grid_field
from setwise import fields, learning
from setwise.inference._diverse._baseline_lists import perturbed_list
from setwise.learning._boosting._problem import WeakLearnerSearch


def examples(size: int, p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40 * size, 4))
    return X, (X @ rng.normal(size=(4, p)) + rng.normal(size=(40 * size, p)) > 0.3).astype(int)


def hinge(size: int) -> tuple[Callable[[int, np.ndarray], tuple[float, np.ndarray]], int]:
    X, Y = examples(size)
    signs = 2.0 * Y[:, 0] - 1.0

    def oracle(i: int, w: np.ndarray) -> tuple[float, np.ndarray]:
        slack = 1.0 - signs[i] * float(X[i] @ w)
        return max(slack, 0.0), -signs[i] * X[i] * (slack > 0)

    return oracle, len(X)


@long("learning.one_slack")
def one_slack(size: int) -> Call:
    oracle, n = hinge(size)

    def risk(w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = zip(*(oracle(i, w) for i in range(n)), strict=True)
        return sum(values), np.sum(slopes, axis=0)

    return lambda: learning.one_slack(risk, 4, tol=1e-6)


@long("learning.n_slack")
def n_slack(size: int) -> Call:
    oracle, n = hinge(size)
    return lambda: learning.n_slack(oracle, n, 4)


class MeanHinge:
    def __init__(self, signs: np.ndarray) -> None:
        self._signs, self.offsets = signs, np.array([0, len(signs)])

    def __call__(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        slack = 1.0 - self._signs * scores
        return float(np.maximum(slack, 0.0).mean()), -self._signs * (slack > 0) / len(slack)


@long("learning.struct_boost", "stumps")
def struct_boost(size: int) -> Call:
    X, Y = examples(size)
    risk, search = MeanHinge(2.0 * Y[:, 0] - 1.0), learning.StumpSearch(X)
    return lambda: learning.struct_boost(risk, search, C=20.0, n_estimators=8 * size)


@long("learning.struct_boost", "perceptrons")
def struct_boost_of_perceptrons(size: int) -> Call:
    X, Y = examples(size)
    X, Y = X[: 10 * size], Y[: 10 * size]
    risk, search = (
        MeanHinge(2.0 * Y[:, 0] - 1.0),
        learning.PerceptronSearch(X, max_iter=5, n_jobs=2),
    )
    return lambda: learning.struct_boost(risk, search, C=20.0, n_estimators=2 * size)


def _search_with(make: Callable[[np.ndarray], WeakLearnerSearch]) -> Callable[[int], Call]:
    def call(size: int) -> Call:
        X, Y = examples(size)
        search, weights = make(X[: 20 * size]), 2.0 * Y[: 20 * size, 0] - 1.0
        return lambda: [column.response for column in search(weights)]

    return call


def _trees(X: np.ndarray) -> WeakLearnerSearch:
    from sklearn.tree import DecisionTreeClassifier

    return learning.ClassifierSearch(X, DecisionTreeClassifier(max_depth=2, random_state=0))


long("learning.StumpSearch.__call__")(_search_with(learning.StumpSearch))
long("learning.StepSearch.__call__")(_search_with(learning.StepSearch))
long("learning.PerceptronSearch.__call__")(
    _search_with(lambda X: learning.PerceptronSearch(X, max_iter=10))
)
long("learning.ClassifierSearch.__call__")(_search_with(_trees))


def labels_of_draws(field: fields.Field) -> np.ndarray:
    return perturbed_list(field, 2, n_jobs=1, rng=0)


@long("learning.Serial.map")
def serial(size: int) -> Call:
    batch = [grid_field(size, 3)] * 3
    return lambda: learning.Serial().map(labels_of_draws, batch)


@long("learning.Serial.sums")
def summed(size: int) -> Call:
    batch = [grid_field(size, 3)] * 3
    return lambda: learning.Serial().sums(labels_of_draws, batch)


@long("learning.Threads.sums")
def summed_by_threads(size: int) -> Call:
    batch, pool = [grid_field(size, 3)] * 4, learning.Threads(2)
    return lambda: pool.sums(labels_of_draws, batch)


@long("learning.Threads.map")
def threads(size: int) -> Call:
    batch, pool = [grid_field(size, 3)] * 4, learning.Threads(2)
    return lambda: pool.map(labels_of_draws, batch)
