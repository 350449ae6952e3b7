"""The dual over planes of every set, by Newton's steps where the weights are not too many."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Dual, PlaneShares
from setwise.learning._dual_blocks._blocks import Blocks
from setwise.learning._dual_blocks._central_path import CentralPath
from setwise.learning._dual_blocks._linear_sets import LinearSets

# The matrix of a step takes 64 megabytes at the most, and so do the planes.
_MOST_WEIGHTS, _MOST_NUMBERS = 2800, 1 << 23
# Planes of a set: those with the least share go.
_KEPT = 64


def takes_steps(sets: LinearSets) -> bool:
    """Whether Newton's steps have room: for few weights, of the labels of rows."""
    if not (sets.by_label and sets.surrogate.is_convex and sets.n > 0):
        return False
    few = sets.dimension <= _MOST_WEIGHTS
    return few and sets.n * max(_KEPT * sets.p, sets.columns) <= _MOST_NUMBERS


class PathBlocks(Blocks):
    """The central path of the program over planes; a pass is one step, and planes where it led."""

    name = "interior_point"

    def __init__(self, sets: LinearSets, C: float, start: Dual | None, gap: float) -> None:
        self.features = sets.features
        self._sets = sets
        self._path = CentralPath(dense(sets), C * sets.weights, sets.p, _KEPT)
        if isinstance(start, PlaneShares):
            self._path.begin_with(start, gap)
        else:
            self._path.begin(*self._risks())
        self.renew()
        self.inner = self._path.W

    def _risks(self) -> tuple[FloatArray, FloatArray]:
        """The surrogate of each set where the path is, and its slopes."""
        values, slopes = self._sets.surrogate._of_labels(self._sets.labels, self._path.scores)
        return np.asarray(values, np.float64), np.asarray(slopes, np.float64)

    def renew(self) -> None:
        """From the shares."""
        self.total, v = self._path.dual()
        self.W = self.features.weights(v)

    def improve(self, passes: int, tol: float, room: float) -> None:
        """One step."""
        self._path.add(*self._risks())
        self.stuck = not self._path.step()
        self.passes += 1
        self.inner = self._path.W
        self.renew()

    def excess(self) -> float:
        """Shares sum to 1."""
        return 1.0

    def dual(self, C: float) -> Dual:
        """Shares do not depend on C."""
        return self._path.used()


def dense(sets: LinearSets) -> FloatArray:
    """The features as a matrix, with that of the intercept."""
    X = sets.X.toarray() if issparse(sets.X) else np.asarray(sets.X, np.float64)
    return np.hstack([X, np.ones((sets.n, 1))]) if sets.intercept else X
