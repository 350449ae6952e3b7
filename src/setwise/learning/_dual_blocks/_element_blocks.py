"""Duals with an entry for each element of each set, and their weights."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray
from setwise.learning._cutting_planes._fit import Dual, PlaneShares
from setwise.learning._dual_blocks._blocks import Blocks
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.losses._families import Polymatroids


class ElementBlocks(Blocks):
    """A dual b in C c_i times the polymatroid of each set, with W = sum of (y * b) x'."""

    name = "dual_blocks"

    # Whether the dual is a sum over the labels.
    _separable: ClassVar[bool] = False

    def __init__(self, sets: LinearSets) -> None:
        self.features = sets.features
        labels = sets.labels
        self._shape, self._weights = (sets.n, sets.p), sets.weights
        self._signs = np.where(labels.positive.view(np.bool_), 1.0, -1.0)
        self.b = np.zeros(len(labels.positive))
        self.W, self.total = np.zeros((sets.p, sets.columns)), 0.0
        self.inner = self.W

    @abstractmethod
    def _inside(self, b: FloatArray) -> FloatArray:
        """Return the projection of b onto the feasible set."""

    def _begin(self, start: Dual | None, before: float, C: float) -> None:
        """Begin with the dual of another C: rescaled, projected, or the best mixture of both.

        Rescaling is better for duals with most elements at their bounds, and projecting for duals
        with few. Each candidate is scaled along its ray to maximise the dual.
        """
        if start is None:
            return
        if isinstance(start, PlaneShares):
            start = self._inside(C * self._of_planes(start)) / C
        candidates = [C * start]
        if before > C:
            candidates.append(self._inside(before * start))
        kept: list[tuple[FloatArray, FloatArray]] = []
        for self.b in candidates:
            self.renew()
            b = self.b.reshape(self._shape)
            part = best_part(self._summed(b.sum(axis=0)), self._summed(_products(self.W, self.W)))
            kept.append((part * b, part[:, None] * self.W))
        b, W = kept[0]
        for other, weights in kept[1:]:
            gain = self._summed((other - b).sum(axis=0) - _products(W, weights - W))
            part = best_part(gain, self._summed(_products(weights - W, weights - W)))
            b, W = b + part * (other - b), W + part[:, None] * (weights - W)
        self.b, self.W, self.total = b.ravel(), W, float(b.sum())
        self.inner = self.W

    def _of_planes(self, start: PlaneShares) -> FloatArray:
        """Return b / C of a mixture of planes; a plane has the slope -y b and the height b(V)."""
        n, p = self._shape
        sets = np.repeat(np.arange(n), start.counts)
        b = np.zeros(self._shape)
        np.add.at(b, sets, start.shares[:, None] * np.abs(start.slopes.reshape(-1, p)))
        of_weights: FloatArray = (self._weights[:, None] * b).ravel()
        return of_weights

    def _summed(self, by_label: FloatArray) -> FloatArray:
        """Return the sum over the labels, or the values themselves if labels are separable."""
        return by_label if self._separable else by_label.sum(keepdims=True)

    def renew(self) -> None:
        """Recompute W and total from b."""
        self.W = self.features.weights(self._signed())
        self.total = float(self.b.sum())

    def _signed(self) -> FloatArray:
        return (self._signs * self.b).reshape(self._shape)

    def dual(self, C: float) -> Dual:
        """Return b / C."""
        return self.b / C


class PolymatroidBlocks(ElementBlocks):
    """Duals in polymatroids onto which compiled kernels project."""

    def __init__(self, sets: LinearSets, found: Polymatroids, scales: FloatArray) -> None:
        super().__init__(sets)
        labels = sets.labels
        self._sets = _core.SetBlocks(
            labels.positive, labels.offsets, scales, found.kind, found.tables, found.starts
        )

    def _inside(self, b: FloatArray) -> FloatArray:
        inside = np.empty_like(b)
        _core.project_sets(self._sets, b, inside)
        return inside

    def excess(self) -> float:
        """Return the excess, which the kernel of the family computes."""
        return _core.largest_excess(self._sets, self.b)


def _products(W: FloatArray, V: FloatArray) -> FloatArray:
    """Return the inner product of W and V for each label."""
    products: FloatArray = np.einsum("jd,jd->j", W, V)
    return products


def best_part(gain: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the t in [0, 1] that maximises t gain - t^2 squares / 2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(squares > 0.0, gain / squares, np.where(gain > 0.0, 1.0, 0.0))
    return np.clip(best, 0.0, 1.0)
