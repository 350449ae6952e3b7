"""Per-pixel unaries for MSRC-21, in place of TextonBoost's, of which four images are to be had.

    python experiments/msrc_unaries.py [--quick]

Trains on the 276 training images and puts class probabilities of the validation images, and of the
four test images that have TextonBoost's, into the cache. Two classifiers in a row: the first sees
colour and texture around a pixel, the second also what the first said around it. The second trains
on answers for images that the first had not seen.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from _msrc import (
    BANDWIDTHS,
    LABELS,
    classes,
    energies,
    enlarge,
    image,
    names,
    store,
    textonboost,
    trimap,
    truth,
)
from _pixels import PixelClassifier, calibrate
from _report import Table, arguments, progress, report
from _texture import CELL, appearance, channels, context, filter_bank
from scipy.special import softmax
from skimage.color import rgb2lab
from sklearn.cluster import MiniBatchKMeans

FOLDS = 4


@dataclass(frozen=True)
class Effort:
    """How much is spent: the quick look has less of everything."""

    images: int
    textons: int
    points: int
    epochs: int
    trees: int
    seed: int
    jobs: int

    def classifier(self) -> PixelClassifier:
        """An untrained one."""
        return PixelClassifier(
            LABELS, seed=self.seed, jobs=self.jobs, epochs=self.epochs, trees=self.trees
        )


@dataclass(frozen=True, eq=False)
class Points:
    """Training pixels of one image: cells, labels, and how many pixels each stands for."""

    y: np.ndarray
    x: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


def learn_textons(train: list[str], effort: Effort) -> tuple[np.ndarray, np.ndarray]:
    """The scale of each filter response, and the centres of clusters of the scaled responses."""
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
    """At most ``count`` labelled cells of a map, rare labels more often than common ones.

    A cell with label c is drawn with probability proportional to n_c^(-1/2), where n_c counts the
    cells with that label; its weight, the inverse of how often it is drawn, undoes that.
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
    """Rows and columns of all cells, one after the other."""
    y, x = np.indices(shape[:2])
    return y.ravel(), x.ravel()


def first_answers(model: PixelClassifier, cells: np.ndarray) -> np.ndarray:
    """Probabilities (rows, columns, L) of the first classifier at all cells."""
    log_p = model.log_probabilities(appearance(cells, *everywhere(cells.shape)))
    return np.exp(log_p).reshape(*cells.shape[:2], LABELS)


def second_answers(model: PixelClassifier, cells: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Log probabilities (rows, columns, L) of the second classifier, not calibrated yet."""
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
        """Probabilities at the cells of an image: the first classifier's, and the final ones."""
        cells = channels(pixels, self.textons)
        first = first_answers(self.first, cells)
        log_p = second_answers(self.second, cells, first)
        return first, softmax(self.slope * log_p + self.offsets, axis=2)


class Tally:
    """Counts over images of hits by label, of hits in trimaps, and the sum of log losses."""

    def __init__(self) -> None:
        self.confusion = np.zeros((LABELS, LABELS), np.int64)
        self.near = np.zeros((len(BANDWIDTHS), 2), np.int64)
        self.loss = 0.0

    def add(self, probabilities: np.ndarray, labels: np.ndarray) -> None:
        """Count one image: probabilities (h, w, L) and its truth (h, w), -1 for void."""
        seen = labels >= 0
        cost = energies(probabilities).reshape(probabilities.shape)
        guess = cost.argmin(axis=2)
        np.add.at(self.confusion, (labels[seen], guess[seen]), 1)
        self.loss += float(np.take_along_axis(cost[seen], labels[seen][:, None], 1).sum())
        for k, bandwidth in enumerate(BANDWIDTHS):
            band = trimap(labels, bandwidth)
            self.near[k] += np.sum(guess[band] == labels[band]), np.sum(band)

    def row(self) -> list[str]:
        """Accuracy over pixels and over labels, log loss, accuracy in the trimaps."""
        total = self.confusion.sum(axis=1)
        by_label = self.by_label()[total > 0]
        numbers = [self.confusion.trace() / total.sum(), by_label.mean(), self.loss / total.sum()]
        numbers += [hit / max(count, 1) for hit, count in self.near]
        return [f"{number:.3f}" for number in numbers]

    def by_label(self) -> np.ndarray:
        """The share of each label's pixels that were found."""
        return self.confusion.diagonal() / np.maximum(self.confusion.sum(axis=1), 1)


def main() -> None:
    given = arguments("Unaries for MSRC-21", repeats=1)
    common = {"seed": given.seed, "jobs": given.jobs}
    if given.quick:
        effort = Effort(images=40, textons=40, points=200, epochs=5, trees=10, **common)
    else:
        effort = Effort(images=276, textons=100, points=600, epochs=10, trees=40, **common)
    start = time.process_time()
    unaries = Unaries(names("train")[: effort.images], effort)
    trained = time.process_time()
    validation, test = names("validation")[: effort.images // 4], names("textonboost")
    rows = ("validation, first", "validation", "test, ours", "test, TextonBoost")
    tallies = {row: Tally() for row in rows}
    for name in progress(validation + test, "prediction"):
        first, final = unaries.predict(image(name))
        labels = truth(name)
        if not given.quick:
            store("unaries", name, final.astype(np.float16))
        probabilities = enlarge(final, labels.shape, CELL)
        if name in test:
            tallies["test, ours"].add(probabilities, labels)
            tallies["test, TextonBoost"].add(textonboost(name), labels)
        else:
            tallies["validation"].add(probabilities, labels)
            tallies["validation, first"].add(enlarge(first, labels.shape, CELL), labels)
    done = time.process_time()
    head = ["images", "pixels", "labels", "log loss", *(f"trimap {h}" for h in BANDWIDTHS)]
    table = Table("Accuracy of the most probable label, void left out", head)
    table.rows.extend([row, *tally.row()] for row, tally in tallies.items())
    final_tally = tallies["validation"]
    share = final_tally.confusion.sum(axis=1) / final_tally.confusion.sum()
    by_label = Table("Validation images by label", ["label", "share of pixels", "found"])
    by_label.rows.extend(
        [name, f"{a:.3f}", f"{b:.3f}"]
        for name, a, b in zip(classes(), share, final_tally.by_label(), strict=True)
    )
    report(
        "msrc_unaries",
        "MSRC-21: unaries",
        [table, by_label],
        choices={
            "data": f"{effort.images} training images; {len(validation)} validation images and the "
            f"{len(test)} test images with TextonBoost's unaries, none of them seen in training",
            "features": f"L*a*b*, {effort.textons} textons of TextonBoost's 17 filters, directions "
            "of edges, local binary patterns, averaged over windows of 10 to 122 pixels and the "
            "whole image; colours and edges of 16 windows beside the pixel; place",
            "classifier": f"geometric mean of a network (128 hidden, {effort.epochs} epochs, "
            f"penalty 5) and {effort.trees} extremely randomised trees",
            "second": "the same again, given also the first one's probabilities in those windows, "
            f"for training by {FOLDS} folds over the images",
            "sample": f"{effort.points} pixels an image, drawn with probability n_c^(-1/2)",
            "calibration": f"softmax(a log p + b), a = {unaries.slope:.2f}, by the held-out folds, "
            "weighted back to the shares of the labels in the training images",
            "resolution": "probabilities at cells of 2 x 2 pixels, bilinear between them; at least "
            "0.001 each",
            "chosen": "features, network and trees by one fold of the training images; nothing by "
            "the validation images",
            "seed": given.seed,
        },
        notes=[
            f"held-out folds of the training images, before calibration: "
            f"{unaries.held_out_accuracy:.3f} of the pixels",
            f"{trained - start:.0f} s of processor time for training, {done - trained:.0f} s for "
            "prediction",
        ],
        data={
            "rows": {row: tally.row() for row, tally in tallies.items()},
            "confusion": final_tally.confusion,
            "held-out accuracy": unaries.held_out_accuracy,
            "seconds": {"training": trained - start, "prediction": done - trained},
        },
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
