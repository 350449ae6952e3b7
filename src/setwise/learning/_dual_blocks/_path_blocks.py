"""The dual over planes of every set, solved by Newton steps if there are not too many weights."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Dual, PlaneShares
from setwise.learning._dual_blocks._blocks import Blocks
from setwise.learning._dual_blocks._central_path import CentralPath
from setwise.learning._dual_blocks._linear_sets import LinearSets

# The most weights, and the most numbers of all planes: the matrix of a step and the planes then
# take at most 64 megabytes each.
_MOST_NUMBERS = 1 << 23
# The most planes per set, which bounds memory. A new plane then replaces the one with the smallest
# share. Not tuned.
MOST_KEPT = 64


def takes_steps(sets: LinearSets) -> bool:
    """Return whether there is memory for Newton steps."""
    if not (sets.surrogate.is_convex and sets.n > 0 and sets.labels.n > 0):
        return False
    numbers = sets.labels.n * MOST_KEPT * (sets.p if sets.by_label else sets.columns)
    return fits_steps(sets.dimension, max(numbers, sets.n * sets.columns))


def fits_steps(n_weights: int, numbers: int) -> bool:
    """Return whether the matrix of a step and arrays of ``numbers`` entries are small enough."""
    return max(n_weights**2, numbers) <= _MOST_NUMBERS


class PathBlocks(Blocks):
    """Passes along the central path of the program over planes: a step and then new planes.

    The planes of a row are functions of the scores of its labels. The planes of a group are
    functions of the weights.
    """

    name = "interior_point"

    def __init__(self, sets: LinearSets, C: float, start: Dual | None, gap: float) -> None:
        self._sets, self._X = sets, dense(sets)
        prices = C * sets.weights
        if sets.by_label:
            self._path = CentralPath(self._X, prices, sets.p, MOST_KEPT)
        else:
            self._path = CentralPath(np.ones((sets.labels.n, 1)), prices, sets.columns, MOST_KEPT)
        if isinstance(start, np.ndarray) and sets.by_label:
            start = _one_plane_each(sets, start)
        if isinstance(start, PlaneShares):
            self._path.begin_with(start, gap)
        else:
            self._path.begin(*self._risks())
        self._renew_inner()

    def _risks(self) -> tuple[FloatArray, FloatArray]:
        """Return the surrogate of each set at the present weights, and its slopes."""
        labels, of_labels = self._sets.labels, self._sets.surrogate._of_labels
        if self._sets.by_label:
            values, slopes = of_labels(labels, self._path.scores)
            return np.asarray(values, np.float64), np.asarray(slopes, np.float64)
        values, slopes = of_labels(labels, self._X @ self._path.W[:, 0])
        of_weights = np.zeros((labels.n, self._X.shape[1]))
        some = labels.sizes > 0
        by_sample = np.asarray(slopes, np.float64)[:, None] * self._X
        if some.any():
            of_weights[some] = np.add.reduceat(by_sample, labels.offsets[:-1][some])
        return np.asarray(values, np.float64), of_weights

    def _renew_inner(self) -> None:
        self.inner = self._path.W if self._sets.by_label else self._path.W.T.copy()
        self.renew()

    def renew(self) -> None:
        """Recompute W and total from the shares."""
        self.total, v = self._path.dual()
        self.W = v.T @ self._X if self._sets.by_label else v.sum(axis=0, keepdims=True)

    def improve(self, passes: int, tol: float, gap_scale: float) -> None:
        """Add planes and make one step."""
        self._path.add(*self._risks())
        self.stuck = not self._path.step()
        self.passes += 1
        self._renew_inner()

    def excess(self) -> float:
        """Return 1, because shares sum to 1."""
        return 1.0

    def dual(self, C: float) -> Dual:
        """Return the shares, which do not depend on C."""
        return self._path.used()


def _one_plane_each(sets: LinearSets, start: FloatArray) -> PlaneShares:
    """Return the dual b of polymatroids as one plane per set, with slopes -y b / c."""
    counts = np.maximum(sets.weights, 1e-300)[:, None]
    b = start.reshape(sets.n, sets.p) / counts
    positive = sets.labels.positive.reshape(b.shape) != 0
    ones = np.ones(sets.n)
    slopes = np.where(positive, -b, b)
    return PlaneShares(ones.astype(np.int64), ones, b.sum(axis=1), slopes.ravel())


def dense(sets: LinearSets) -> FloatArray:
    """Return the features as a dense matrix, with a column for the intercept."""
    X = sets.X.toarray() if issparse(sets.X) else np.asarray(sets.X, np.float64)
    return np.hstack([X, np.ones((sets.n, 1))]) if sets.intercept else X
