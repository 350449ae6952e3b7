"""Duals with an entry for each element of each set, and the weights that they make."""

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
    """b in C c_i times the polymatroid of each set, and W = sum of (y * b) x'."""

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
        """The nearest dual."""

    def _begin(self, start: Dual | None, before: float, C: float) -> None:
        """From the dual of another price: its shares, or what of it is still allowed.

        The first where most elements are at their bounds, the second where most are not; each as
        far along its ray as the dual rises, and the best in between.
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
        """b / C as a mixture of planes, whose slopes are -y b and heights b(V)."""
        n, p = self._shape
        sets = np.repeat(np.arange(n), start.counts)
        b = np.zeros(self._shape)
        np.add.at(b, sets, start.shares[:, None] * np.abs(start.slopes.reshape(-1, p)))
        of_weights: FloatArray = (self._weights[:, None] * b).ravel()
        return of_weights

    def _summed(self, by_label: FloatArray) -> FloatArray:
        """Over the labels, unless each stands for itself."""
        return by_label if self._separable else by_label.sum(keepdims=True)

    def renew(self) -> None:
        """From b."""
        self.W = self.features.weights(self._signed())
        self.total = float(self.b.sum())

    def _signed(self) -> FloatArray:
        return (self._signs * self.b).reshape(self._shape)

    def dual(self, C: float) -> Dual:
        """b, divided by C."""
        return self.b / C


class PolymatroidBlocks(ElementBlocks):
    """Polymatroids that kernels project onto."""

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
        """As the kernel of the family measures it."""
        return _core.largest_excess(self._sets, self.b)


def _products(W: FloatArray, V: FloatArray) -> FloatArray:
    """Of the weights of each label."""
    products: FloatArray = np.einsum("jd,jd->j", W, V)
    return products


def best_part(gain: FloatArray, squares: FloatArray) -> FloatArray:
    """The t in [0, 1] with the largest t gain - t^2 squares / 2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(squares > 0.0, gain / squares, np.where(gain > 0.0, 1.0, 0.0))
    return np.clip(best, 0.0, 1.0)
