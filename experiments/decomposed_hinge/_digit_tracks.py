"""Tracks made of handwritten digits, which replace the face tracks of the B_D paper.

The paper's tracks are film scenes of one person: 1437 tracks of 1 to over 100 frames, 19 on
average. All frames of a track have one label, and they are similar to each other. Here a track is
an image of a digit and its nearest neighbours among the images of that digit that no other track
contains. The sizes are drawn log-uniformly from 1 to 100.
"""

from __future__ import annotations

import warnings

import numpy as np

import setwise as sw
from experiments.decomposed_hinge._bags import Bags
from experiments.shared.data import standardized, svmlight, usps

LONGEST = 100
LOSSES = {k: sw.losses.FaceTrack(k) for k in (1, 2, 3, 4)}
# The digit that a linear classifier confuses most with others, and those others.
TASKS = {"usps": (8, (2, 3, 5, 9)), "pendigits": (5, (1, 3, 7, 8, 9))}
DESCRIPTION = (
    "a track is one digit: an image and its nearest unused neighbours of the same digit, its size "
    f"log-uniform in 1 to {LONGEST}; usps: 8 against 2, 3, 5, 9, pixels averaged to 8 x 8; "
    "pendigits: 5 against 1, 3, 7, 8, 9, 16 features; all standardised"
)


def expect_negative_parts() -> None:
    """Silence the library's warning about Δ3 and Δ4.

    B_D does not extend these losses, because their submodular parts are negative. The paper's
    columns "Δ_S negative" are about this case, and the tables show its effect.
    """
    warnings.filterwarnings("ignore", message="the submodular part of FaceTrack")


def tracks(task: str, rng: np.random.Generator) -> Bags:
    """Return all images of the task as tracks, in random order."""
    positive, others = TASKS[task]
    X, digits = _images(task)
    kept = np.isin(digits, (positive, *others))
    X, digits = standardized(X[kept])[0], digits[kept]
    members = [part for d in np.unique(digits) for part in _parts(X, digits == d, rng)]
    members = [members[i] for i in rng.permutation(len(members))]
    rows = np.concatenate(members)
    features = np.column_stack([X[rows], np.ones(len(rows))])
    return Bags(features, digits[rows] == positive, np.cumsum([0, *map(len, members)]))


def _images(task: str) -> tuple[np.ndarray, np.ndarray]:
    if task == "pendigits":
        sample = svmlight("pendigits.scale", "pendigits.scale.t").pooled()
        return sample.X, sample.y - 1
    sample = usps().pooled()
    blocks = sample.X.reshape(-1, 8, 2, 8, 2)
    return blocks.mean(axis=(2, 4)).reshape(len(sample), -1), sample.y


def _parts(X: np.ndarray, of_digit: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Cut the images of one digit into tracks."""
    left = rng.permutation(np.flatnonzero(of_digit))
    parts = []
    while len(left):
        size = int((LONGEST + 1) ** rng.random())
        nearest = np.argsort(((X[left] - X[left[0]]) ** 2).sum(axis=1), kind="stable")[:size]
        # The frames are shuffled, because a film does not show the nearest frames first.
        parts.append(rng.permutation(left[nearest]))
        left = np.delete(left, nearest)
    return parts
