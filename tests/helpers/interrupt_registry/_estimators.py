"""Long calls of the estimators: fits, and answers that need inference."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

import setwise as sw
from interrupt_registry._calls import Call, long
from interrupt_registry._learning import examples
from setwise import fields


def graphs(size: int, n_labels: int) -> tuple[list[tuple[np.ndarray, ...]], list[np.ndarray]]:
    rng, side = np.random.default_rng(n_labels), 3 * size
    edges = fields.grid_edges((side, side))
    X, Y = [], []
    for _ in range(3):
        truth = np.add.outer(np.arange(side), np.arange(side)).ravel() * n_labels // (2 * side)
        nodes = np.eye(n_labels)[truth] + rng.normal(0.0, 0.7, (side * side, n_labels))
        X.append((nodes, edges, np.ones((len(edges), 1))))
        Y.append(truth)
    return X, Y


def _fitting(estimator: object, *data: object) -> Call:
    def call() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few learners to converge
            return estimator.fit(*data)  # type: ignore[attr-defined]

    return call


def _fit_of(estimator: object, data: Callable[[int], tuple[object, ...]]) -> Callable[[int], Call]:
    return lambda size: _fitting(estimator, *data(size))


def _answer_of(
    estimator: object, data: Callable[[int], tuple[object, ...]], method: str, *, with_truth: bool
) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        given = data(size)
        fitted = _fitting(estimator, *data(1))()
        answer = getattr(fitted, method)
        arguments = given if with_truth else given[:1]
        if method.startswith("staged"):
            return lambda: list(answer(*arguments))
        return lambda: answer(*arguments)

    return make


def classes(size: int) -> tuple[np.ndarray, np.ndarray]:
    X, Y = examples(size, 3)
    return X, (X @ np.arange(12.0).reshape(4, 3)).argmax(axis=1) + 0 * Y[:, 0]


def two_classes(size: int) -> tuple[np.ndarray, np.ndarray]:
    X, Y = examples(size)
    return X, Y[:, 0]


_SVM, _BOOST = sw.FieldSVM(), sw.FieldBoost(n_estimators=5)
long("estimators.SetClassifier.fit")(_fit_of(sw.SetClassifier(), examples))
long("estimators.SetClassifier.fit", "two threads")(_fit_of(sw.SetClassifier(n_jobs=2), examples))
_CV = {"Cs": [0.01, 0.1], "cv": 2}
long("estimators.SetClassifierCV.fit")(_fit_of(sw.SetClassifierCV(**_CV), examples))
long("estimators.SetClassifierCV.fit", "two threads")(
    _fit_of(sw.SetClassifierCV(**_CV, n_jobs=2), examples)
)
long("estimators.StructBoostClassifier.fit")(
    _fit_of(sw.StructBoostClassifier(n_estimators=5), classes)
)
long("estimators.StructBoostRanker.fit")(_fit_of(sw.StructBoostRanker(n_estimators=5), two_classes))
long("estimators.FieldSVM.fit", "two labels")(_fit_of(sw.FieldSVM(), lambda s: graphs(s, 2)))
long("estimators.FieldSVM.fit", "three labels")(_fit_of(sw.FieldSVM(), lambda s: graphs(s, 3)))
long("estimators.FieldSVM.fit", "two threads")(
    _fit_of(sw.FieldSVM(n_jobs=2), lambda s: graphs(s, 3))
)
long("estimators.FieldSVM.fit", "measure")(
    _fit_of(sw.FieldSVM(measure="jaccard", cv=3, label_costs=True), lambda s: graphs(s, 2))
)
long("estimators.FieldBoost.fit")(_fit_of(sw.FieldBoost(n_estimators=5), lambda s: graphs(s, 2)))
long("estimators.FieldBoost.fit", "three labels")(
    _fit_of(sw.FieldBoost(("feature", "stump"), n_estimators=3), lambda s: graphs(s, 3))
)
for _model in (sw.FieldSVM(), sw.FieldBoost(n_estimators=5)):
    _model.set_params(measure="jaccard", decision="marginals", cv=3)
    long(f"estimators.{type(_model).__name__}.decide")(
        _answer_of(_model, lambda s: graphs(s, 2), "decide", with_truth=False)
    )
for _model, _labels in ((_SVM, 3), (_BOOST, 2)):
    for _method, _truth in (("predict", False), ("score", True), ("staged_predict", False)):
        if hasattr(_model, _method):
            long(f"estimators.{type(_model).__name__}.{_method}")(
                _answer_of(_model, lambda s, n=_labels: graphs(s, n), _method, with_truth=_truth)
            )
long("estimators.FieldSVM.predict", "two threads")(
    _answer_of(sw.FieldSVM(n_jobs=2), lambda s: graphs(s, 3), "predict", with_truth=False)
)


def frames() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    background, target = rng.random((40, 60)), rng.random((12, 12))
    moved = []
    for k in range(4):
        frame = background.copy()
        frame[14:26, 10 + 2 * k : 22 + 2 * k] = target
        moved.append(frame)
    return moved


@long("estimators.StructBoostTracker.start")
def start(size: int) -> Call:
    tracker = sw.StructBoostTracker(n_candidates=50, n_training=10 * size, n_estimators=5 * size)
    first = frames()[0]
    return lambda: tracker.start(first, (10, 14, 12, 12)).estimator_weights_


@long("estimators.StructBoostTracker.update")
def update(size: int) -> Call:
    """The same call gives the same answer: it is made on a copy of what the last one left."""
    from copy import deepcopy

    options = {"n_candidates": 50, "n_training": 10 * size, "n_estimators": 5 * size}
    tracker = sw.StructBoostTracker(update_every=1, **options)
    first, second, *_ = frames()
    tracker.start(first, (10, 14, 12, 12))
    before = deepcopy(tracker)

    def call() -> object:
        tracker.__dict__.update(deepcopy(before).__dict__)
        box = tracker.update(second)
        return box, (tracker.estimator_weights_, tracker.n_frames_)

    return call


@long("estimators.SetDecision.fit")
def _calibrated(size: int) -> Call:
    X, Y = examples(size)
    return lambda: sw.SetDecision(calibrate="isotonic", cv=2).fit(X, Y).predict_proba(X)


@long("estimators.thin")
def _thinned(size: int) -> Call:
    from sklearn.ensemble import RandomForestClassifier

    X, y = classes(size)
    forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X[::2], y[::2])
    return lambda: sw.thin(forest, X, y, cv=2)
