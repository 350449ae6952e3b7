"""The master problem of cutting planes: a small quadratic program over the planes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.learning._cutting_planes._fit import Planes

# Planes without weight for this number of rounds are dropped. With 2 or 40 the number of rounds
# changes by up to a sixth, in both directions.
_IDLE_ROUNDS = 10


class _Model(NamedTuple):
    """The data of the planes, replaced as a whole, so that Ctrl-C leaves it consistent.

    The basis (r, d) is orthonormal. It spans the nonnegative coordinates, which come first, and the
    slopes. ``vectors`` (s + k, r) holds the coordinates of minus those and of the slopes. ``sizes``
    are the magnitudes of the terms of the offsets.
    """

    slopes: FloatArray
    offsets: FloatArray
    sizes: FloatArray
    idle: IntArray
    basis: FloatArray
    vectors: FloatArray


class Bound(NamedTuple):
    """A lower bound of the objective, and the magnitude of its terms."""

    value: float
    size: float


class Bundle:
    r"""Planes :math:`risk(w) \ge b_k + \langle a_k, w \rangle`, and the best w for their maximum.

    The dual of min 1/2 |w|^2 + C max_k (b_k + <a_k, w>) over the simplex of :math:`\alpha`,

    .. math:: \max_{\alpha \ge 0, \sum \alpha = 1} C \langle b, \alpha \rangle
        - \tfrac12 \Bigl| C \sum_k \alpha_k a_k - \beta \Bigr|^2, \qquad
        w = \beta - C \sum_k \alpha_k a_k,

    has one variable per plane, and one, :math:`\beta_j \ge 0`, per nonnegative coordinate of w.
    Divided by :math:`C^2`, its quadratic part does not depend on C, and a change of units (slopes
    times s, C times :math:`s^{-2}`) does not change the steps of the solver. The solver works in an
    orthonormal basis of the slopes, O(r d) per new plane and O(r k) per step. Any feasible point
    bounds the primal from below, so rounding errors in the solver make the bound less tight but
    never wrong.
    """

    def __init__(self, dimension: int, nonnegative: IntArray) -> None:
        self.nonnegative = nonnegative
        s = len(nonnegative)
        signs = np.zeros((s, dimension))
        signs[np.arange(s), nonnegative] = 1.0
        none = np.empty(0)
        self._model = _Model(
            np.empty((0, dimension)), none, none, np.empty(0, np.int64), signs, -np.eye(s)
        )
        # There is one program without and one with a proximal term, each with its own warm start.
        self._programs = _core.PlaneProgram(), _core.PlaneProgram()

    def add(self, slopes: FloatArray, offsets: FloatArray, sizes: FloatArray | None = None) -> None:
        """Add planes: slopes (m, d), offsets (m,), and the magnitudes of the offsets' terms."""
        old = self._model
        new, basis = _coordinates(slopes, old.basis)
        self._model = _Model(
            np.concatenate([old.slopes, slopes]),
            np.concatenate([old.offsets, offsets]),
            np.concatenate([old.sizes, np.abs(offsets) if sizes is None else sizes]),
            np.concatenate([old.idle, np.zeros(len(offsets), np.int64)]),
            basis,
            _stacked(old.vectors, new),
        )

    def bound(self, C: float) -> Bound:
        """Return the dual value at the optimum, and count the planes without weight as idle."""
        alpha, _ = self._optimum(C, np.zeros(self._model.slopes.shape[1]), 0.0)
        model = self._model
        self._model = model._replace(idle=np.where(alpha > FEW_ROUNDINGS * EPS, 0, model.idle + 1))
        w = self._cut_off(-C * (alpha @ model.slopes))
        squares = 0.5 * float(w @ w)
        # The terms of w may cancel. The errors of w and of its square are relative to the sizes of
        # these terms.
        terms = C * float(np.linalg.norm(model.vectors[len(self.nonnegative) :], axis=1) @ alpha)
        size = C * float(model.sizes @ alpha) + squares
        size += np.sqrt(2.0 * squares) * terms + EPS * terms * terms
        return Bound(float(C * (model.offsets @ alpha)) - squares, float(size))

    def near(self, C: float, center: FloatArray, pull: float) -> tuple[FloatArray, float]:
        """Return the minimiser of 1/2 |w|^2 + C max_k (b_k + <a_k, w>) + pull / 2 |w - center|^2.

        The second result is the objective of the minimiser without the last term. Planes with
        weight are marked as in use.
        """
        alpha, total = self._optimum(C, center, pull)
        model = self._model
        self._model = model._replace(idle=np.where(alpha > FEW_ROUNDINGS * EPS, 0, model.idle))
        w = self._cut_off((pull * center - C * (total @ model.basis)) / (1.0 + pull))
        risk = float((model.offsets + model.slopes @ w).max())
        return w, 0.5 * float(w @ w) + C * risk

    def _cut_off(self, w: FloatArray) -> FloatArray:
        w[self.nonnegative] = np.maximum(w[self.nonnegative], 0.0)
        return w

    def _optimum(self, C: float, center: FloatArray, pull: float) -> tuple[FloatArray, FloatArray]:
        r"""Return the maximiser of the dual: alpha, and sum alpha_k a_k - beta / C in coordinates.

        With a proximal term of weight ``pull`` around ``center``, 1 + pull times the dual is the
        dual in the docstring of the class, where :math:`(1 + pull)\, b + pull\, a^\top center`
        replaces b, and - pull center is the coefficient of each beta.
        """
        model = self._model
        k, s = len(model.offsets), len(self.nonnegative)
        heights = model.offsets
        if pull > 0:
            heights = heights + pull * (model.offsets + model.slopes @ center)
        # On the simplex only differences of heights matter. They are well scaled.
        gains = np.concatenate([-pull * center[self.nonnegative], heights - heights.max()]) / C
        x, total = np.empty(s + k), np.empty(len(model.basis))
        program = self._programs[int(pull > 0)]
        if not program.solve(model.vectors, s, gains, x, total):
            # The rounding errors of the factorisation are too large, so solve without it.
            program.forget()
            # The result is feasible even if it is not optimal.
            program.solve(model.vectors, s, gains, x, total)
        alpha = x[s:]
        return alpha / alpha.sum(), total

    def drop_idle(self) -> None:
        """Drop the planes without weight for ``_IDLE_ROUNDS`` rounds."""
        model = self._model
        kept = model.idle < _IDLE_ROUNDS
        if kept.all():
            return
        s = len(self.nonnegative)
        rows = np.flatnonzero(np.append(np.ones(s, np.bool_), kept))
        slopes, basis, vectors = model.slopes[kept], model.basis, model.vectors[rows]
        stale = len(basis) > 2 * len(rows)
        if stale:
            new, basis = _coordinates(slopes, basis[:s])
            vectors = _stacked(-np.eye(s), new)
        self._model = _Model(
            slopes, model.offsets[kept], model.sizes[kept], model.idle[kept], basis, vectors
        )
        for program in self._programs:
            program.keep(rows)
            if stale:
                program.forget()

    def planes(self) -> Planes:
        """Return a copy of the planes, from which another fit can start."""
        return Planes(self._model.slopes.copy(), self._model.offsets.copy())


def _stacked(vectors: FloatArray, new: FloatArray) -> FloatArray:
    """Return the vectors, with zeros for the coordinates that only the new ones have, and these."""
    k = len(vectors)
    both = np.zeros((k + len(new), new.shape[1]))
    both[:k, : vectors.shape[1]] = vectors
    both[k:] = new
    return both


def _coordinates(slopes: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return coordinates of the slopes (m, d), and the basis (r, d) extended to their span.

    This is the Gram-Schmidt method with two passes. A remainder of the first pass is a rounding
    error if the second pass removes half of it or more. The cost is O(r d) per slope.
    """
    m, d = slopes.shape
    r = len(basis)
    grown = np.empty((r + min(m, d - r), d))
    grown[:r] = basis
    rows = np.zeros((m, len(grown)))
    for slope, row in zip(slopes, rows, strict=True):
        known = grown[:r]
        row[:r] = known @ slope
        rest = slope - row[:r] @ known
        before = float(np.sqrt(rest @ rest))
        again = known @ rest
        row[:r] += again
        rest = rest - again @ known
        length = float(np.sqrt(rest @ rest))
        if r < len(grown) and length > 0.5 * before:
            grown[r] = rest / length
            row[r] = length
            r += 1
    return rows[:, :r].copy(), grown[:r].copy()
