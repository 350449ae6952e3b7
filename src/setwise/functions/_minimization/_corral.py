"""Wolfe's corral: the point of least norm in the convex hull of a growing set of vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS
from setwise._foundation._imports import load

_linalg = load("scipy.linalg")


class Corral:
    r"""Affinely independent points, and the point of least norm in their convex hull.

    It keeps a thin QR factorisation of the matrix M with columns :math:`(\sigma, q)`, one for each
    point q, where :math:`\sigma` is about the length of the first point: these columns are linearly
    independent exactly when the points are affinely independent. The point of least norm of the
    affine hull has the barycentric coordinates of the least-squares solution of
    :math:`M u = e_0`, that is :math:`R^{-1} Q^T e_0`, divided by their sum.

    Each point may carry a tag, which ``tags`` lists. Changing one point costs O(n k) for k points
    in n dimensions.
    """

    def __init__(self, first: FloatArray, tag: object = None) -> None:
        # The unit of length is a power of two: squares cannot overflow, and scaling is exact.
        self._unit = float(np.ldexp(1.0, np.frexp(np.abs(first).max(initial=0.0))[1] - 1))
        self.points = first[None, :] / self._unit
        self.weights = np.ones(1)
        self.tags: list[Any] = [tag]
        self._longest = float(np.linalg.norm(self.points))
        self._height = max(self._longest, 1.0)
        column = np.concatenate([[self._height], self.points[0]])
        norm = float(np.linalg.norm(column))
        self._q, self._r = (column / norm)[:, None], np.array([[norm]])

    def point(self) -> FloatArray:
        """Return the current point as a convex combination of the vertices, despite rounding."""
        return self.weights @ self.points * self._unit

    @property
    def vertices(self) -> FloatArray:
        """The points exactly as they were added, since scaling by the unit is not rounded."""
        return self.points * self._unit

    def length(self) -> float:
        """Return the norm of the point, in the unit of the corral."""
        return float(np.linalg.norm(self.weights @ self.points))

    def add(self, vertex: FloatArray, tag: object = None) -> bool:
        """Add a vertex and move to the least norm. Return False if rounding prevents this."""
        x, vertex = self.weights @ self.points, vertex / self._unit
        self._longest = max(self._longest, float(np.linalg.norm(vertex)))
        # Within the rounding of the two products, the vertex is not beyond the point: x is optimal.
        # The norm itself does not measure progress: its relative error is 1e-16 while that of x is
        # still 1e-8.
        if x @ x - x @ vertex <= 4 * EPS * np.linalg.norm(x) * self._longest:
            return False
        if not self._insert(vertex, tag):
            return False
        while True:
            target = self._barycentric()
            if target is None:
                break
            falling = np.flatnonzero(target < 0)
            if not len(falling):
                self.weights = target
                break
            # Move towards the target until a weight is zero, and remove the vertices of weight
            # zero. After a step of 1e-17 the new vertex, which is the last, has weight zero too. It
            # stays unless its own weight decreases.
            steps = self.weights[falling] / (self.weights[falling] - target[falling])
            step = float(steps.min())
            self.weights += step * (target - self.weights)
            self.weights[falling[steps == step]] = 0.0
            light = self.weights <= EPS
            light[-1] = self.weights[-1] == 0.0 and target[-1] < 0
            for k in np.flatnonzero(light)[::-1]:
                self._delete(int(k))
            self.weights /= self.weights.sum()
        return not np.array_equal(x, self.weights @ self.points)

    def _insert(self, vertex: FloatArray, tag: object) -> bool:
        """Insert a vertex. Return False if it is in the affine hull, by rounding alone."""
        # The vertices of a base polytope in n dimensions lie in a hyperplane.
        if len(self.weights) == max(1, len(vertex)):
            return False
        column = np.concatenate([[self._height], vertex])
        try:
            self._q, self._r = _linalg.qr_insert(
                self._q, self._r, column, len(self.weights), which="col", rcond=1e-14
            )
        except _linalg.LinAlgError:
            return False
        self.points = np.concatenate([self.points, vertex[None, :]])
        self.weights = np.append(self.weights, 0.0)
        self.tags.append(tag)
        return True

    def _delete(self, k: int) -> None:
        self._q, self._r = _linalg.qr_delete(self._q, self._r, k, which="col")
        self.points = np.delete(self.points, k, axis=0)
        self.weights = np.delete(self.weights, k)
        del self.tags[k]

    def _barycentric(self) -> FloatArray | None:
        """Return coordinates of the least norm in the affine hull; None if M is singular."""
        try:
            u = _linalg.solve_triangular(self._r, self._q[0])
        except _linalg.LinAlgError:
            return None
        total = u.sum()
        return u / total if total > 0 and np.isfinite(total) else None
