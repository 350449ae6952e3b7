"""Lists of labellings of superpixels, scored by the pixels of the best labelling in each list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import setwise as sw
from experiments.shared.regions import label_counts, superpixels

SEGMENTS = 60  # requested number of the larger regions that diversities over regions use


@dataclass(frozen=True, eq=False)
class Case:
    """An image as a field of its S superpixels, with the data to score a labelling.

    Attributes
    ----------
    name, group : str
        Cases of one group, such as two scribbles on a photograph, stay together in a split.
    image : array of uint8, shape (h, w, 3)
    truth : array of int8, shape (h, w)
        True labels, -1 for void, which no measure counts.
    regions : array of int, shape (h, w)
        The superpixel of each pixel.
    field : sw.fields.Field
        S variables, L labels.
    counts : array of int, shape (S, L)
        Pixels of each true label in each superpixel.
    segments : array of int, shape (S,)
        The larger region, one of about ``SEGMENTS``, that contains most of a superpixel.
    """

    name: str
    group: str
    image: np.ndarray
    truth: np.ndarray
    regions: np.ndarray
    field: sw.fields.Field
    counts: np.ndarray
    segments: np.ndarray

    @classmethod
    def of(
        cls,
        name: str,
        group: str,
        image: np.ndarray,
        truth: np.ndarray,
        regions: np.ndarray,
        field: sw.fields.Field,
    ) -> Case:
        """Make a case, with the counts of the true labels and the larger regions."""
        counts = label_counts(regions, truth, (field.n_variables, field.n_labels))
        larger = superpixels(image, SEGMENTS)
        inside = label_counts(regions, larger, (field.n_variables, int(larger.max()) + 1))
        return cls(name, group, image, truth, regions, field, counts, inside.argmax(axis=1))


@dataclass(frozen=True, eq=False)
class ListScores:
    """The correct pixels of the labellings of a list, label by label, in one image.

    Attributes
    ----------
    right, predicted : array of int, shape (m, L)
        The number of pixels to which a labelling gives a label correctly, and in total. Void is
        left out.
    true : array of int, shape (L,)
        Pixels of each true label.
    """

    right: np.ndarray
    predicted: np.ndarray
    true: np.ndarray

    @property
    def accuracies(self) -> np.ndarray:
        """The share of correct pixels of each labelling, shape (m,)."""
        return self.right.sum(axis=1) / self.true.sum()

    def first(self, m: int) -> ListScores:
        """Return the first m labellings of the list."""
        return ListScores(self.right[:m], self.predicted[:m], self.true)

    @property
    def overlaps(self) -> np.ndarray:
        """Mean IoU (m,) over the labels that a labelling or the truth uses."""
        union = self.predicted + self.true - self.right
        return np.nanmean(np.where(union > 0, self.right / np.maximum(union, 1), np.nan), axis=1)


def score_list(case: Case, labelings: np.ndarray) -> ListScores:
    """Count the pixels that each labelling (m, S) gets right."""
    labels = np.arange(case.field.n_labels)
    chosen = labelings[:, :, None] == labels
    right = (chosen * case.counts).sum(axis=1)
    predicted = (chosen * case.counts.sum(axis=1)[:, None]).sum(axis=1)
    return ListScores(right, predicted, case.counts.sum(axis=0))


def joined(lists: Sequence[ListScores]) -> ListScores:
    """Concatenate lists of one image."""
    return ListScores(
        np.concatenate([one.right for one in lists]),
        np.concatenate([one.predicted for one in lists]),
        lists[0].true,
    )


def oracle_accuracies(lists: Sequence[ListScores]) -> np.ndarray:
    """Return the share of correct pixels of the best labelling in each image's list, (n,)."""
    return np.array([one.accuracies.max() for one in lists])


def mean_accuracy(lists: Sequence[ListScores]) -> float:
    """Return the mean oracle accuracy over images."""
    return float(oracle_accuracies(lists).mean())


def object_overlaps(lists: Sequence[ListScores]) -> np.ndarray:
    """Return for each list the largest IoU of label 1 over its labellings, (n,)."""
    return np.array(
        [
            (one.right[:, 1] / (one.predicted[:, 1] + one.true[1] - one.right[:, 1])).max()
            for one in lists
        ]
    )


def mean_object_overlap(lists: Sequence[ListScores]) -> float:
    """Return the mean over images of the best IoU with the object."""
    return float(object_overlaps(lists).mean())


def corpus_overlap(lists: Sequence[ListScores]) -> float:
    """Return IoU of each label over all images, averaged over the labels that occur.

    Each list contributes the labelling with the largest overlap in its image, as in
    ``sw.inference.oracle_accuracy``.
    """
    best = [int(one.overlaps.argmax()) for one in lists]
    right = sum(one.right[k] for one, k in zip(lists, best, strict=True))
    predicted = sum(one.predicted[k] for one, k in zip(lists, best, strict=True))
    true = sum(one.true for one in lists)
    occurs = true > 0
    return float(np.mean(right[occurs] / (predicted + true - right)[occurs]))


def shares_of(m: int, parts: int) -> list[int]:
    """Return the number of the m - 1 labellings after the best one that each part contributes."""
    each, more = divmod(m - 1, parts)
    return [each + (k < more) for k in range(parts)]
