"""Scores of every model on every fold of the multi-label data, computed once and cached.

Rules that turn scores into sets take no time compared with the fits. With the cache, a new rule
needs no new fit, and an interrupted run can be resumed.
"""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from threadpoolctl import threadpool_limits

import setwise as sw
from experiments.decisions._decided_scores import score
from experiments.decisions._multilabel_sets import sample
from experiments.shared.cache import cache_folder, keep
from experiments.shared.data import standardized

FOLDS, INNER = 5, 3
CS = [0.01, 0.1, 1.0]
SET_CS = [0.001, 0.01, 0.1]
MOST_LABELS, MOST_FEATURES = 14, 100
KINDS = ["logistic", "logistic, balanced", "hinge", "Lovász hinge", "B_D of Dice"]
KINDS += ["chain", "boosting"]
# Models whose fit takes minutes per fold on these data sets.
SLOW = {
    "Lovász hinge": ["corel5k"],
    "B_D of Dice": ["medical", "enron", "corel5k"],
    "chain": ["enron"],
}
# Models whose scores are probabilities without calibration.
PROBABILITIES = {"logistic", "chain", "boosting"}


@dataclass(frozen=True)
class Fold:
    """A training part and a test part, and the folds inside the training part."""

    X_train: np.ndarray
    Y_train: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    inner: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, name: str, fold: int, seed: int, quick: bool) -> Fold:
        X, Y = sample(name)
        train, test = [*KFold(FOLDS, shuffle=True, random_state=seed).split(X)][fold]
        if quick:
            train, test = train[:300], test[:100]
        X_train, X_test = standardized(X[train], X[test])
        usable = Y[train].any(axis=0) & ~Y[train].all(axis=0)
        inner = [*KFold(INNER, shuffle=True, random_state=seed).split(X_train)]
        return cls(X_train, Y[train][:, usable], X_test, Y[test][:, usable], inner)


@dataclass(frozen=True)
class Scores:
    """Scores out of fold for the training part, and of the full model for the test part."""

    out_of_fold: np.ndarray
    test: np.ndarray
    C: float
    seconds: float


def model_of(kind: str, p: int, d: int) -> tuple[object, list[float]] | None:
    """Return a maker that takes C, and the candidates for C; None if the data are too large."""

    def logistic(C: float, **options: object) -> LogisticRegression:
        return LogisticRegression(C=C, max_iter=300, **options)

    if kind in ("chain", "boosting") and p > MOST_LABELS:
        return None
    if kind == "boosting" and d > MOST_FEATURES:
        return None
    boosting = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    return {
        "logistic": (lambda C: MultiOutputClassifier(logistic(C)), CS),
        "logistic, balanced": (
            lambda C: MultiOutputClassifier(logistic(C, class_weight="balanced")),
            CS,
        ),
        "hinge": (partial(sw.SetClassifier, "hamming", "hinge", tol=1e-2), SET_CS),
        "Lovász hinge": (partial(sw.SetClassifier, "jaccard", "lovasz", tol=1e-2), SET_CS),
        "B_D of Dice": (partial(sw.SetClassifier, "dice", "decomposed", tol=1e-2), SET_CS),
        "chain": (lambda C: ClassifierChain(logistic(C), random_state=0), CS),
        "boosting": (lambda C: MultiOutputClassifier(boosting), [1.0]),
    }[kind]


def chances(model: object, X: np.ndarray) -> np.ndarray:
    """Return probabilities, or a monotone map of scores to (0, 1)."""
    if isinstance(model, sw.SetClassifier):
        return expit(model.decision_function(X))
    answer = model.predict_proba(X)
    if not isinstance(answer, list):
        return np.asarray(answer)
    columns = zip(answer, model.classes_, strict=True)
    return np.stack([t[:, -1] * (len(c) > 1 or c[0] == 1) for t, c in columns], axis=1)


def scores_of(name: str, fold: int, kind: str, seed: int, quick: bool) -> Scores | None:
    """Return scores from the cache or from a fit, or None if the model is not run on these data.

    C is chosen by scores out of fold.
    """
    if name in SLOW.get(kind, ()):
        return None
    words = re.sub(r"\W+", "_", f"{kind}")
    path = cache_folder() / "multilabel" / f"{name}_{fold}_{seed}_{words}.npz"
    if not quick and path.exists():
        with np.load(path) as found:
            return Scores(found["p"], found["test"], float(found["C"]), float(found["seconds"]))
    scores = fitted(Fold.of(name, fold, seed, quick), kind, quick)
    if not quick and scores is not None:
        given = {"C": scores.C, "seconds": scores.seconds}
        keep(path, p=scores.out_of_fold, test=scores.test, **given)
    return scores


def fitted(data: Fold, kind: str, quick: bool, given: list[float] | None = None) -> Scores | None:
    """Fit a model with the best C out of fold, from ``given`` or the kind's candidates."""
    warnings.simplefilter("ignore")
    threadpool_limits(1)  # the folds occupy the cores
    found = model_of(kind, data.Y_train.shape[1], data.X_train.shape[1])
    if found is None:
        return None
    make, Cs = found
    start = time.perf_counter()
    best = None
    for C in given or (Cs[:2] if quick else Cs):
        p = np.zeros(data.Y_train.shape)
        for a, b in data.inner:
            model = make(C).fit(data.X_train[a], data.Y_train[a].astype(int))
            p[b] = chances(model, data.X_train[b])
        if kind in PROBABILITIES or kind == "logistic, balanced":
            merit = -log_loss(data.Y_train.ravel(), p.ravel(), labels=[False, True])
        else:
            merit = score(data.Y_train, p > 0.5, "jaccard", "rows")
        if best is None or merit > best[0]:
            best = merit, C, p
    _, C, p = best
    model = make(C).fit(data.X_train, data.Y_train.astype(int))
    return Scores(p, chances(model, data.X_test), C, time.perf_counter() - start)
