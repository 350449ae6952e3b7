"""The field of a photograph with scribbles, which separates an object from the rest.

As in Section 4.1 of the paper, a transductive support vector machine learns from the scribbled
superpixels and from the others, by colour and texture. Contrast-sensitive Potts edges join
superpixels that touch.
"""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC

import setwise as sw
from experiments.diverse._list_scores import Case
from experiments.diverse._scribbles import Marked
from experiments.shared.regions import appearances, contrast_edges, majority, superpixels

SUPERPIXELS = 500  # the requested number; about 400 result
SMOOTHING = 2.0  # weight of the Potts edges
STEEPNESS = 2.0  # log odds of a superpixel on the margin
PENALTY = 10.0  # C of the support vector machine
SHARES = 0.01 * 4.0 ** np.arange(6)  # weights of unmarked relative to marked superpixels
SURE = 1e3  # energy of a label that a scribble contradicts


def transductive_scores(X: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Return scores (n,), positive for the object, of points with features (n, d).

    ``marks`` are 1, 0, or -1 where the label is not known; both 0 and 1 must occur. A support
    vector machine with a Gaussian kernel is trained on the marked points first. It is then trained
    repeatedly on all points, the unmarked ones with the labels that it predicted. Their weight
    grows from a hundredth of the marked points' weight to the same weight. The two labels have
    equal total weights.
    """
    known = marks >= 0
    weights = np.zeros(len(marks))
    for value in (0, 1):
        weights[marks == value] = known.sum() / (2 * np.sum(marks == value))
    spread = 1 / X.var(axis=0).sum()

    def scores(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
        machine = SVC(C=PENALTY, gamma=spread)
        machine.fit(X[rows], labels[rows], sample_weight=weights[rows])
        return machine.decision_function(X)

    found = scores(marks, known)
    for share in np.minimum(SHARES, 1.0):
        weights[~known] = share * known.sum() / max(np.sum(~known), 1)
        found = scores(np.where(known, marks, found > 0), np.full(len(X), True))
    return found


def cutout(marked: Marked) -> Case:
    """Return the superpixels of a photograph and their field; label 1 is the object, 0 the rest."""
    regions = superpixels(marked.image, SUPERPIXELS)
    marks = majority(regions, marked.marks, 2)
    log_odds = STEEPNESS * transductive_scores(appearances(marked.image, regions), marks)
    unary = np.stack([np.logaddexp(0, log_odds), np.logaddexp(0, -log_odds)], axis=1)
    unary[marks == 0, 1] += SURE
    unary[marks == 1, 0] += SURE
    field = sw.fields.Field(unary) + contrast_edges(marked.image, regions, SMOOTHING)
    return Case.of(marked.name, marked.photograph, marked.image, marked.truth, regions, field)
