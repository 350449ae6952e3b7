"""Fitted estimators, by name: what is listed here is stored and shared by threads in tests."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import setwise as sw

X, y = load_iris(return_X_y=True)
X, y = X[::3], y[::3]
rng = np.random.default_rng(0)
CHAIN = np.array([(i, i + 1) for i in range(4)])
GRAPHS = [(rng.normal(size=(5, 2)), CHAIN, rng.random((4, 1))) for _ in range(4)]
TWO = [(x[:, 0] > 0).astype(int) for x, *_ in GRAPHS]
THREE = [np.digitize(x[:, 0], [-0.5, 0.5]) for x, *_ in GRAPHS]
FRAMES = np.zeros((2, 60, 80))
FRAMES[0, 20:40, 10:30] = FRAMES[1, 20:40, 12:32] = 1.0
FEW = {"C": 10.0, "n_estimators": 4}


def forest():
    return RandomForestClassifier(20, max_depth=2, random_state=0).fit(X, y)


# By the name of an estimator: how to fit it, and what to ask it.
ESTIMATORS = {
    "SetClassifier": (lambda: sw.SetClassifier("jaccard", C=0.1).fit(X, np.eye(3)[y]), "predict"),
    "SetClassifierCV": (
        lambda: sw.SetClassifierCV("jaccard", Cs=[0.1, 0.2], cv=2).fit(X, np.eye(3)[y]),
        "predict",
    ),
    "SetDecision": (
        lambda: sw.SetDecision(calibrate="sigmoid", cv=2).fit(
            np.vstack([X, X]), np.tile(np.eye(3, dtype=int)[y], (2, 1))
        ),
        "predict",
    ),
    "StructBoostClassifier": (lambda: sw.StructBoostClassifier(**FEW).fit(X, y), "predict"),
    "StructBoostRanker": (lambda: sw.StructBoostRanker(**FEW).fit(X, y == 1), "decision_function"),
    "FieldBoost": (lambda: sw.FieldBoost(**FEW).fit(GRAPHS, TWO), "decision_function"),
    "FieldSVM": (lambda: sw.FieldSVM().fit(GRAPHS, THREE), "decision_function"),
    "StructBoostTracker": (
        lambda: sw.StructBoostTracker(n_estimators=9, n_candidates=50).start(
            FRAMES[0], (10, 20, 20, 20)
        ),
        "update",
    ),
    "ThinnedEnsemble": (lambda: sw.thin(forest(), X, y, C=20.0, oob=True), "decision_function"),
}
OTHER_LEARNERS = {
    kind: (
        lambda kind=kind: sw.StructBoostClassifier(kind, **FEW, random_state=0).fit(X, y),
        "predict",
    )
    for kind in ("tree", "perceptron", "linear")
} | {
    "probabilities": (
        lambda: sw.StructBoostClassifier(**FEW, calibrate="softmax").fit(X, y, eval_set=(X, y)),
        "predict_proba",
    ),
    "words": (lambda: sw.StructBoostClassifier(**FEW).fit(X, np.array(list("abc"))[y]), "predict"),
    "taxonomy": (
        lambda: sw.StructBoostClassifier(**FEW, taxonomy=[[0], [1, 2]]).fit(X, y),
        "staged_predict",
    ),
    "field scores": (
        lambda: sw.FieldSVM(scores=DecisionTreeClassifier(), measure="dice").fit(GRAPHS, TWO),
        "predict",
    ),
    "feature": (lambda: sw.FieldBoost("feature", **FEW).fit(GRAPHS, TWO), "predict"),
}
EVERY = ESTIMATORS | OTHER_LEARNERS


def same(one, other):
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one is other is None or np.array_equal(one, other)


def answer(model, ask):
    if ask == "update":
        return model.update(FRAMES[1])
    given = GRAPHS if isinstance(model, sw.FieldSVM | sw.FieldBoost) else X
    said = getattr(model, ask)(given)
    return said if isinstance(said, np.ndarray) else list(said)


def fitted(name):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* stopped at n_estimators")
        return EVERY[name][0]()
