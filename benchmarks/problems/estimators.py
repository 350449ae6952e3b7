"""Estimators: the fitted attributes and predictions of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import setwise as sw
from benchmarks.problems import Problem, attempt

SURROGATES = ("lovasz", "margin", "slack", "decomposed", "hinge")


def quietly(run: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Ignore the warnings of fits that end after few rounds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(*args, **options)


def boosting(model: Callable[..., Any], **options: Any) -> Any:
    """Make an estimator; keywords that are no parameters of it are expert options."""
    known = signature(model).parameters
    if "edge_estimator" in options and "edge_estimator" not in known:
        options["estimator"] = options["estimator"], options.pop("edge_estimator")
    expert = {name: options.pop(name) for name in list(options) if name not in known}
    if expert:
        options["options"] = sw.learning.BoostOptions(**expert)
    return model(**options)


def rows(n: int, d: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal((d, p)) / np.sqrt(d) + rng.standard_normal((n, p)) > 0


def classified(loss: Any, surrogate: str, kind: str, n: int = 80, **options: Any) -> Any:
    """Fit a ``SetClassifier`` on sets of every kind, weighted and not."""
    X, Y = rows(n, 6, 4)
    rng = np.random.default_rng(1)
    model = sw.SetClassifier(loss, surrogate, C=0.5, max_iter=60, **options)
    if kind == "rows":
        y, given = Y.astype(int), {}
    elif kind in ("columns", "cells"):
        y, given = Y.astype(int), {}
        model.set_params(sets=kind)
    elif kind == "weighted rows":
        y, given = np.where(Y, 1, -1), {"sample_weight": rng.uniform(0.5, 2.0, n)}
    else:
        y = np.where(Y[:, 0], "yes", "no")
        given = {} if kind == "sample" else {"groups": rng.integers(0, 9, n)}
        if kind == "weighted groups":
            given["sample_weight"] = rng.integers(1, 4, n)  # elements of a set, counted
    model.fit(X, y, **given)
    return [model, model.predict(X), model.decision_function(X), model.score(X, y, **given)]


def cross_validated(kind: str) -> Any:
    """Fit a ``SetClassifierCV``, by its own score and by a scorer."""
    X, Y = rows(60, 6, 4)
    groups = np.random.default_rng(1).integers(0, 9, 60)
    y, given = (Y, {}) if kind in ("rows", "columns") else (Y[:, 0], {})
    if kind == "groups":
        given = {"groups": groups}
    answers: list[Any] = []
    for scoring in (None, sw.losses.scorer("dice", sets=kind)):
        model = sw.SetClassifierCV(
            "jaccard", Cs=[0.1, 1.0], cv=3, scoring=scoring, sets=kind, max_iter=60
        ).fit(X, y, **given)
        answers += [model, model.scores_, model.predict(X), model.score(X, y, **given)]
    return answers


def decided(kind: str, calibrate: str | None) -> Any:
    """Return labels, probabilities and expected losses of a ``SetDecision``."""
    X, Y = rows(60, 6, 4)
    given = {"groups": np.random.default_rng(1).integers(0, 9, 60)} if kind == "groups" else {}
    y = Y.astype(int) if kind in ("rows", "columns", "cells") else Y[:, 0].astype(int)
    model = sw.SetDecision(loss="dice", sets=kind, calibrate=calibrate, cv=3).fit(X, y, **given)
    return [model.predict(X, **given), model.predict_proba(X), model.expected_loss(X, **given)]


def boosted(make: Callable[[], Any], X: np.ndarray, y: np.ndarray, **given: Any) -> Any:
    model = make().fit(X, y, **given)
    staged = getattr(model, "staged_decision_function", None)
    return [
        model,
        model.predict(X),
        model.decision_function(X),
        [] if staged is None else list(staged(X))[-2:],
    ]


def graphs(n: int, side: int, L: int) -> tuple[list[Any], list[np.ndarray], list[np.ndarray]]:
    """Return noisy labels of small grids, features of edges, weights of nodes."""
    rng = np.random.default_rng(0)
    edges = sw.fields.grid_edges((side, side))
    X, Y, weights = [], [], []
    for _ in range(n):
        labels = np.kron(rng.integers(0, L, (2, 2)), np.ones((side // 2, side // 2), int)).ravel()
        nodes = rng.normal(size=(len(labels), 4)) + 1.2 * np.eye(L, 4)[labels]
        pairs = np.column_stack([np.ones(len(edges)), rng.random(len(edges))])
        X.append((nodes, edges, pairs))
        Y.append(labels)
        weights.append(rng.uniform(0.5, 2.0, len(labels)))
    return X, Y, weights


def on_graphs(make: Callable[[], Any], data: Any, weighted: bool = False) -> Any:
    X, Y, weights = data
    given = {"node_weights": weights} if weighted else {}
    model = make().fit(X, Y, **given)
    staged = getattr(model, "staged_predict", None)
    return [
        model,
        model.predict(X),
        model.decision_function(X),
        model.score(X, Y, **given),
        model.to_field(X[0]).unary,
        [] if staged is None else list(staged(X))[-1],
    ]


def followed(n_frames: int, **options: Any) -> Any:
    """Track a textured square that moves over noise."""
    rng = np.random.default_rng(0)
    square = rng.random((16, 16))
    tracker = sw.StructBoostTracker(**options)
    boxes = []
    for t in range(n_frames):
        frame = 0.3 * rng.random((60, 80))
        frame[20 + t : 36 + t, 10 + 2 * t : 26 + 2 * t] = square
        if t == 0:
            tracker.start(frame, (10, 20, 16, 16))
        else:
            boxes.append(tracker.update(frame))
    return [np.array(boxes), tracker.score_boxes(frame, boxes[-3:]), tracker]


def thinned(ensemble: Any, X: Any, y: Any) -> Any:
    """Return trees, weights and certificate of a ``ThinnedEnsemble``."""
    found = sw.thin(ensemble, X, y, 20.0)
    return [found.indices_, found.weights_, found.value_, found.bound_, found.decision_function(X)]


def wide() -> Iterator[Problem]:
    for surrogate in SURROGATES:
        for kind in ("rows", "weighted rows", "sample", "groups", "weighted groups"):
            for loss in ("jaccard", "dice", "hamming", "exponential", "early_detection"):
                yield (
                    f"SetClassifier {loss} {surrogate} {kind}",
                    partial(quietly, attempt, classified, loss, surrogate, kind),
                )
    for loss, surrogate, kind in product(
        ("jaccard", "dice"), ("auto", "slack"), ("columns", "cells")
    ):
        yield (
            f"SetClassifier {loss} {surrogate} {kind}",
            partial(quietly, classified, loss, surrogate, kind),
        )
    for kind in ("rows", "columns", "sample", "groups"):
        yield f"SetClassifierCV {kind}", partial(quietly, cross_validated, kind)
    if hasattr(sw, "SetDecision"):
        for kind, calibrate in product(("rows", "columns", "sample", "groups"), (None, "sigmoid")):
            yield f"SetDecision {kind} {calibrate}", partial(quietly, decided, kind, calibrate)
    own = sw.losses.Jaccard() + 0.1 * sw.losses.Hamming()
    yield "SetClassifier sum", partial(quietly, classified, own, "lovasz", "rows")
    for name, options in (
        ("balanced", {"class_weight": "balanced"}),
        ("no intercept", {"fit_intercept": False}),
        ("threads", {"n_jobs": 2}),
    ):
        yield (
            f"SetClassifier {name}",
            partial(quietly, classified, "jaccard", "lovasz", "sample", **options),
        )
    X, Y = rows(150, 6, 3)
    classes = Y.argmax(axis=1)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 150)
    for estimator in ("stump", "tree", "perceptron", "linear"):
        of_all = {"estimator": estimator, "n_estimators": 12, "C": 20.0, "random_state": 0}
        for name, options in (
            ("", {}),
            (" example", {"slack": "example"}),
            (" augmented", {"label_form": "augmented"}),
            (" several", {"columns_per_round": 3}),
            (" taxonomy", {"taxonomy": [3, 3, 4, 4, -1]}),
        ):
            make = partial(boosting, sw.StructBoostClassifier, **of_all, **options)
            yield (
                f"StructBoostClassifier {estimator}{name}",
                partial(quietly, attempt, boosted, make, X, classes, sample_weight=weight),
            )
        for name, options, y in (
            ("", {}, Y[:, 0]),
            (" ordinal", {"ordinal": True}, classes),
            (" example", {"slack": "example"}, Y[:, 0]),
        ):
            make = partial(boosting, sw.StructBoostRanker, **of_all, **options)
            yield (
                f"StructBoostRanker {estimator}{name}",
                partial(quietly, attempt, boosted, make, X, y, sample_weight=weight),
            )
    make = partial(sw.StructBoostRanker, n_estimators=12, C=20.0)
    queries = {"groups": np.arange(150) % 5, "sample_weight": weight}
    yield "StructBoostRanker groups", partial(quietly, boosted, make, X, Y[:, 0], **queries)
    forest = RandomForestClassifier(20, random_state=0).fit(X[:75], Y[:75, 0])
    yield "thin", partial(quietly, attempt, thinned, forest, X[75:], Y[75:, 0])
    features = {"estimator": "feature", "edge_estimator": "feature", "n_estimators": 8}
    for L in (2, 3):
        data = graphs(3, 6, L)
        for weighted in (False, True):
            for name, model in (
                ("FieldSVM", partial(sw.FieldSVM, 0.1, max_iter=30)),
                ("FieldBoost", partial(sw.FieldBoost, n_estimators=8, random_state=0)),
                ("FieldBoost features", partial(boosting, sw.FieldBoost, **features)),
                ("FieldBoost tree", partial(sw.FieldBoost, "tree", n_estimators=6, random_state=0)),
            ):
                yield (
                    f"{name} {L} {weighted}",
                    partial(quietly, attempt, on_graphs, model, data, weighted),
                )
    for name, options in (
        ("", {}),
        (" pixels", {"features": ("pixels",), "memory": 3, "update_every": 1}),
        (" scales", {"scales": (0.9, 1.0, 1.1)}),
    ):
        small = {"n_estimators": 20, "n_candidates": 150, "n_training": 40} | options
        yield f"StructBoostTracker{name}", partial(quietly, followed, 7, **small)


def timed() -> Iterator[Problem]:
    for n, loss, surrogate in (
        (5000, "hamming", "lovasz"),
        (10_000, "jaccard", "lovasz"),
        (1000, "jaccard", "margin"),
        (2000, "dice", "decomposed"),
    ):
        X, Y = rows(n, 50, 20)
        model = sw.SetClassifier(loss, surrogate, C=30.0 / n, tol=1e-2, max_iter=60)
        yield f"learning {loss} {surrogate}", partial(quietly, model.fit, X, Y.astype(np.int8))
    X, Y = rows(40_000, 20, 1)
    groups = np.random.default_rng(0).integers(0, 4000, 40_000)
    model = sw.SetClassifier("jaccard", C=0.01, tol=1e-2, max_iter=60)
    yield "learning groups", partial(quietly, model.fit, X, Y[:, 0], groups=groups)
    digits, classes = load_digits(return_X_y=True)
    for estimator, rounds, per_round in (("stump", 25, 1), ("perceptron", 6, 1), ("tree", 40, 10)):
        model = boosting(
            sw.StructBoostClassifier,
            estimator=estimator,
            n_estimators=rounds,
            C=100.0,
            columns_per_round=per_round,
            random_state=0,
        )
        yield f"struct_boost {estimator}", partial(quietly, model.fit, digits, classes)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 20))
    y = X @ rng.normal(size=20) + 3 * rng.normal(size=10_000) > 7
    ranker = sw.StructBoostRanker(C=20.0, n_estimators=12)
    yield "auc", partial(quietly, ranker.fit, X, y)
    for L in (2, 3):
        nodes, labels, _ = graphs(8, 16, L)
        model = sw.FieldSVM(0.02, tol=1e-2, max_iter=40)
        yield f"FieldSVM {L}", partial(quietly, model.fit, nodes, labels)
    nodes, labels, _ = graphs(6, 12, 2)
    boost = sw.FieldBoost(n_estimators=10, random_state=0)
    yield "FieldBoost", partial(quietly, boost.fit, nodes, labels)
    small = {"n_estimators": 30, "n_candidates": 300, "n_training": 60}
    yield "tracker", partial(quietly, followed, 7, **small)
