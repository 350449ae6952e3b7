"""Learners below the estimators: cutting planes, paths, boosting, weak learners."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import diags_array
from sklearn.tree import DecisionTreeClassifier

from benchmarks.problems import Problem, Recorder, call, named
from benchmarks.shared.multilabel import problem
from setwise import learning
from setwise.learning._weak_learners._perceptrons import Perceptron
from setwise.learning._weak_learners._stumps import Stump


class Hinge:
    """The mean hinge loss of labels +1 and -1, and its parts."""

    def __init__(self, y: np.ndarray) -> None:
        self.y, self.offsets = y, np.array([0, len(y)])

    def each(self, scores: np.ndarray) -> Any:
        slack = 1 - self.y * scores
        return np.maximum(slack, 0), diags_array(np.where(slack > 0, -self.y, 0.0)).tocsr()

    def __call__(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        slack = 1 - self.y * scores
        return np.maximum(slack, 0).mean(), np.where(slack > 0, -self.y, 0) / len(slack)


def by(learner: str, n: int, loss: str, C: float, tol: float, **options: Any) -> Any:
    """Fit the learners' benchmark."""
    whole, one, dimension = problem(n, loss)
    oracle = (whole,) if learner == "one_slack" else (one, n)
    return call(getattr(learning, learner), *oracle, dimension, C, tol=tol, **options)


def path(n: int, loss: str, grid: np.ndarray) -> Any:
    """Fit along C, each fit from the previous one."""
    whole, _, dimension = problem(n, loss)
    fit, fits = None, []
    for C in grid:
        fit = call(learning.one_slack, whole, dimension, C, init=fit)
        fits.append(fit)
    return fits


def draw(m: int, d: int, values: int | None, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (m, d), and weights (columns, m) that depend a little on a few features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d)) if values is None else rng.integers(0, values, (m, d)) * 1.0
    signs = np.sign(X - np.median(X, axis=0))
    weights = rng.normal(size=(n_columns, m)) + signs[:, :n_columns].T * rng.random((n_columns, 1))
    return X, weights


def search(name: str, X: np.ndarray, n_columns: int) -> Any:
    options: dict[str, Any] = {"n_columns": n_columns}
    if name == "ClassifierSearch":
        tree = DecisionTreeClassifier(max_depth=2, random_state=0)
        options |= {"estimator": tree, "drop": 0.1, "rng": 0}
    return call(named(learning, name), X, **options)


def answers(name: str, X: np.ndarray, weights: np.ndarray) -> Any:
    columns = search(name, X, len(weights))(weights.ravel())
    return [
        [column, column.learner.predict(X), column.learner.importances(X.shape[1])]
        for column in columns
    ]


def boosted(m: int, slack: str, per_round: int, name: str) -> Any:
    rng = np.random.default_rng(m)
    X = rng.normal(size=(m, 6))
    y = np.where(X[:, 0] + 0.7 * X[:, 1] - 0.4 * X[:, 2] + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)
    rounds = Recorder("n_iter", "value", "bound")
    fit = learning.struct_boost(
        Hinge(y),
        search(name, X, 1),
        20.0,
        n_estimators=25,
        slack=slack,
        columns_per_round=per_round,
        callback=rounds,
    )
    return {"fit": fit, "rounds": rounds}


def wide() -> Iterator[Problem]:
    for loss in ("jaccard", "hamming"):
        for C in (0.01, 0.1):
            for learner in ("one_slack", "n_slack"):
                yield f"{learner} {loss} {C}", partial(by, learner, 40, loss, C, 1e-2, max_iter=60)
        yield f"path {loss}", partial(path, 60, loss, np.geomspace(0.01, 1.0, 4))
    yield (
        "one_slack nonnegative",
        partial(by, "one_slack", 40, "jaccard", 0.1, 1e-3, nonnegative=[0, 3, 5], least_risk=0.0),
    )
    for name in ("StumpSearch", "StepSearch", "PerceptronSearch", "ClassifierSearch"):
        for values in (None, 5):
            for n_columns in (1, 3):
                X, weights = draw(200, 6, values, n_columns)
                yield f"{name} {values} {n_columns}", partial(answers, name, X, weights)
        for slack in ("one", "example"):
            yield f"struct_boost {name} {slack}", partial(boosted, 60, slack, 1, name)
    yield "struct_boost several", partial(boosted, 60, "one", 3, "StumpSearch")
    fit = learning.one_slack(problem(20, "jaccard")[0], 120, 0.1)
    yield (
        "executors",
        lambda: [
            learning.Serial().map(abs, [-1, 2]),
            learning.Serial().sums(np.sqrt, np.arange(1.0, 12.0), most=3),
            learning.tree_sum(np.sqrt(np.arange(1.0, 12.0))),
            in_threads(),
            fit.planes,
            fit.history.primal,
            Stump(feature=1, threshold=0.5, sign=-1).predict(np.eye(3)),
            Perceptron(np.array([1.0, -1.0]), 0.5).predict(np.eye(2)),
        ],
    )


def in_threads() -> Any:
    threads = learning.Threads(2)
    try:
        return threads.map(abs, [-3, 4, -5])
    finally:
        threads.close()


def timed() -> Iterator[Problem]:
    for learner, n, C in (("one_slack", 4000, 0.01), ("n_slack", 60, 0.05)):
        yield f"learners {learner}", partial(by, learner, n, "jaccard", C, 1e-2)
    yield "path", partial(path, 200, "hamming", np.geomspace(0.01, 0.3, 5))
    for values in (None, 100):
        X, weights = draw(40_000, 80, values, 10)
        ready = search("StumpSearch", X, 10)
        yield (
            f"stumps {values}",
            lambda ready=ready, w=weights: [
                column.response for _ in range(3) for column in ready(w.ravel())
            ],
        )
        yield f"stumps sorted {values}", lambda X=X: search("StumpSearch", X[:, :20], 10).exact
    X, weights = draw(3000, 30, None, 4)
    perceptrons = search("PerceptronSearch", X, 4)
    yield "perceptrons", lambda: [column.response for column in perceptrons(weights.ravel())]
    yield "struct_boost one", partial(boosted, 20_000, "one", 1, "StumpSearch")
    yield "struct_boost example", partial(boosted, 300, "example", 1, "StumpSearch")
