"""Per-pixel unaries for MSRC-21, since TextonBoost's are available for four images only.

    python experiments/msrc21/unaries.py [--quick]

The script trains on the 276 training images. It writes class probabilities to the cache, for the
validation images and for the four test images that have TextonBoost's unaries; see
``_two_classifiers`` for the method.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.msrc21._two_classifiers import FOLDS, Effort, Unaries
from experiments.shared.msrc import (
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
from experiments.shared.report import Table, arguments, progress, report
from experiments.shared.texture import CELL


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
        """Return accuracy over pixels and over labels, log loss, and accuracy in the trimaps."""
        total = self.confusion.sum(axis=1)
        by_label = self.by_label()[total > 0]
        numbers = [self.confusion.trace() / total.sum(), by_label.mean(), self.loss / total.sum()]
        numbers += [hit / max(count, 1) for hit, count in self.near]
        return [f"{number:.3f}" for number in numbers]

    def by_label(self) -> np.ndarray:
        """Return the share of each label's pixels that were found."""
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
        __file__,
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
