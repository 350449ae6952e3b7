"""Unary potentials by one AdaBoost per group of features of the horses, as in the paper.

A potential of a training image comes from a machine that was not trained on it; otherwise the
learner of the field would trust all potentials too much. They are computed once per split and
cached.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from skimage.color import rgb2lab
from sklearn.cluster import MiniBatchKMeans
from sklearn.svm import LinearSVC

from experiments.shared.cache import cache_folder, keep
from experiments.shared.report import progress
from experiments.shared.texture import filter_bank
from experiments.shared.weizmann import SET
from experiments.struct_boost._horse_graphs import GROUPS, Horse, features
from setwise.learning import StumpSearch

CODES = 200  # the number of visual words
FOLDS = 5
ROUNDS = 200
MACHINES = (1e-2, 1.0, 1e2, 1e4)  # values of C of the linear machine on visual words


def code_book(train: Sequence[Horse], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scales of the filter responses and the centres of their clusters."""
    rng = np.random.default_rng(seed)
    rows = []
    for one in train:
        responses = filter_bank(rgb2lab(one.reduced))
        flat = responses.reshape(-1, responses.shape[-1])
        rows.append(flat[rng.choice(len(flat), 1500, replace=False)])
    sample = np.vstack(rows)
    scale = sample.std(axis=0)
    means = MiniBatchKMeans(CODES, n_init=1, batch_size=2048, random_state=seed)
    return scale, means.fit(sample / scale).cluster_centers_


def potentials(
    train: Sequence[Horse], test: Sequence[Horse], seed: int, rounds: int = ROUNDS
) -> list[np.ndarray]:
    """Return scores (N, groups + 1) of the superpixels of each image, training images first.

    The columns are the scores of each group's AdaBoost, scaled to deviation 1 on the training
    images, and last those of a linear support vector machine on the visual words.
    """
    name = f"potentials_{train[0].name}_{len(train)}_{seed}_{rounds}.npz"
    path = cache_folder() / SET / name
    if not path.exists():
        keep(path, scores=_learn(train, test, seed, rounds))
    with np.load(path) as arrays:
        scores = arrays["scores"]
    ends = np.cumsum([len(one.counts) for one in (*train, *test)])
    return np.split(scores, ends[:-1])


def _learn(train: Sequence[Horse], test: Sequence[Horse], seed: int, rounds: int) -> np.ndarray:
    codes = code_book(train, seed)
    described = [features(one, codes) for one in progress((*train, *test), "features")]
    y = np.concatenate([one.labels for one in train])
    fold = np.concatenate([np.full(len(one.counts), k % FOLDS) for k, one in enumerate(train)])
    columns = []
    for group in progress(GROUPS, "AdaBoost, groups"):
        X = np.vstack([parts[group] for parts in described]).astype(float)
        scores = np.empty(len(X))
        scores[len(y) :] = ada_boost(X[: len(y)], y, rounds, X[len(y) :])
        for k in range(FOLDS):
            held = np.flatnonzero(fold == k)
            rest = np.flatnonzero(fold != k)
            scores[held] = ada_boost(X[rest], y[rest], rounds, X[held])
        columns.append(scores / scores[: len(y)].std())
    words = np.vstack([parts["words"] for parts in described])
    columns.append(_linear(words, y, fold))
    return np.column_stack(columns)


def ada_boost(X: np.ndarray, y: np.ndarray, rounds: int, others: np.ndarray) -> np.ndarray:
    """Return scores of ``others`` by AdaBoost over all decision stumps; labels y are 0 and 1."""
    search, sign = StumpSearch(X), 2.0 * y - 1.0
    weights, scores = np.full(len(y), 1.0 / len(y)), np.zeros(len(others))
    for _ in range(rounds):
        best = search(weights * sign)[0]
        edge = min(float(weights * sign @ best.response), 1.0 - 1e-9)
        height = 0.5 * np.log((1.0 + edge) / (1.0 - edge))
        weights *= np.exp(-height * sign * best.response)
        weights /= weights.sum()
        scores += height * best.learner.predict(others)
    return scores


def _linear(X: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return scores of a linear machine, with C chosen by cross-validation.

    Scores of training rows are out of fold, by the same folds.
    """
    known = X[: len(y)]
    X = (X - known.mean(axis=0)) / np.maximum(known.std(axis=0), 1e-9)
    best, kept = -1.0, np.empty(0)
    for C in MACHINES:
        held = np.empty(len(y))
        for k in range(FOLDS):
            rest = fold != k
            machine = LinearSVC(C=C / len(y), dual=False).fit(X[: len(y)][rest], y[rest])
            held[fold == k] = machine.decision_function(X[: len(y)][fold == k])
        right = float(np.mean((held > 0) == y))
        if right > best:
            machine = LinearSVC(C=C / len(y), dual=False).fit(X[: len(y)], y)
            best, kept = right, np.append(held, machine.decision_function(X[len(y) :]))
    return kept
