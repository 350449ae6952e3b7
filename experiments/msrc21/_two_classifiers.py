"""Two pixel classifiers in a row, for the unaries of MSRC-21.

The first uses colour and texture around a pixel, the second also the first one's probabilities
around it. The second trains on probabilities for images that the first was not trained on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from skimage.color import rgb2lab
from sklearn.cluster import MiniBatchKMeans

from experiments.msrc21._pixel_classifier import PixelClassifier, calibrate
from experiments.shared.msrc import LABELS, image, truth
from experiments.shared.report import progress
from experiments.shared.texture import CELL, appearance, channels, context, filter_bank

FOLDS = 4


@dataclass(frozen=True)
class Effort:
    """The computational effort; a quick run uses less of everything."""

    images: int
    textons: int
    points: int
    epochs: int
    trees: int
    seed: int
    jobs: int

    def classifier(self) -> PixelClassifier:
        """Return an untrained classifier."""
        return PixelClassifier(
            LABELS, seed=self.seed, jobs=self.jobs, epochs=self.epochs, trees=self.trees
        )


@dataclass(frozen=True, eq=False)
class Points:
    """Training pixels of one image: cells, labels, and the number of pixels each represents."""

    y: np.ndarray
    x: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


def learn_textons(train: list[str], effort: Effort) -> tuple[np.ndarray, np.ndarray]:
    """Return the scale of each filter response, and cluster centres of the scaled responses."""
    rng = np.random.default_rng(effort.seed)
    parts = []
    for name in train[::3]:
        responses = filter_bank(rgb2lab(image(name))).reshape(-1, 17)
        parts.append(responses[rng.choice(len(responses), 400)])
    sample = np.concatenate(parts)
    scale = sample.std(axis=0)
    means = MiniBatchKMeans(effort.textons, random_state=effort.seed, n_init=1).fit(sample / scale)
    return scale, means.cluster_centers_.astype(np.float32)


def choose(labels: np.ndarray, count: int, rng: np.random.Generator) -> Points:
    """Draw at most ``count`` labelled cells of a map, rare labels more often than common ones.

    A cell with label c is drawn with probability proportional to n_c^(-1/2), where n_c counts the
    cells with that label. Its weight is the inverse of that probability.
    """
    y, x = np.nonzero(labels >= 0)
    of_cell = labels[y, x].astype(np.int64)
    root = np.sqrt(np.bincount(of_cell, minlength=LABELS))[of_cell]
    if len(y) <= count:
        return Points(y, x, of_cell, np.ones(len(y)))
    p = 1 / root / np.sum(1 / root)
    some = rng.choice(len(y), count, replace=False, p=p)
    return Points(y[some], x[some], of_cell[some], 1 / (count * p[some]))


def everywhere(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of all cells, in row-major order."""
    y, x = np.indices(shape[:2])
    return y.ravel(), x.ravel()


def first_answers(model: PixelClassifier, cells: np.ndarray) -> np.ndarray:
    """Return probabilities (rows, columns, L) of the first classifier at all cells."""
    log_p = model.log_probabilities(appearance(cells, *everywhere(cells.shape)))
    return np.exp(log_p).reshape(*cells.shape[:2], LABELS)


def second_answers(model: PixelClassifier, cells: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return log probabilities (rows, columns, L) of the second classifier, not yet calibrated."""
    y, x = everywhere(cells.shape)
    X = np.hstack([appearance(cells, y, x), context(first, y, x)])
    return model.log_probabilities(X).reshape(*cells.shape[:2], LABELS)


class Unaries:
    """Both classifiers and the calibration, learned from the named images."""

    def __init__(self, train: list[str], effort: Effort) -> None:
        self.textons = learn_textons(train, effort)
        rng = np.random.default_rng(effort.seed)
        points, X = [], []
        for name in progress(train, "features"):
            points.append(choose(truth(name)[::CELL, ::CELL], effort.points, rng))
            cells = channels(image(name), self.textons)
            X.append(appearance(cells, points[-1].y, points[-1].x).astype(np.float16))
        of_image = np.repeat(np.arange(len(train)), [len(p.y) for p in points])
        labels = np.concatenate([p.labels for p in points])
        weights = np.concatenate([p.weights for p in points])
        features = np.concatenate(X)
        fold = rng.permutation(len(train)) % FOLDS

        around = []
        held_out = [
            effort.classifier().fit(features[rows].astype(np.float32), labels[rows])
            for rows in (fold[of_image] != k for k in progress(range(FOLDS), "first, folds"))
        ]
        for k, name in enumerate(progress(train, "context")):
            cells = channels(image(name), self.textons)
            first = first_answers(held_out[fold[k]], cells)
            around.append(context(first, points[k].y, points[k].x).astype(np.float16))
        del held_out
        self.first = effort.classifier().fit(features.astype(np.float32), labels)

        features = np.hstack([features, np.concatenate(around)])
        log_p = np.zeros((len(labels), LABELS))
        for k in progress(range(FOLDS), "second, folds"):
            rows = fold[of_image] != k
            model = effort.classifier().fit(features[rows].astype(np.float32), labels[rows])
            log_p[~rows] = model.log_probabilities(features[~rows].astype(np.float32))
        self.held_out_accuracy = float(np.average(log_p.argmax(axis=1) == labels, weights=weights))
        self.slope, self.offsets = calibrate(log_p, labels, weights)
        self.second = effort.classifier().fit(features.astype(np.float32), labels)

    def predict(self, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first classifier's and the final probabilities at the cells of an image."""
        cells = channels(pixels, self.textons)
        first = first_answers(self.first, cells)
        log_p = second_answers(self.second, cells, first)
        return first, softmax(self.slope * log_p + self.offsets, axis=2)
