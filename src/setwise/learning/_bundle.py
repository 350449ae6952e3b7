"""The master problem of cutting planes: a small quadratic program over the planes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from setwise._imports import load
from setwise.functions._arguments import FloatArray, IntArray
from setwise.learning._fit import Planes

_IDLE_ROUNDS = 10

# The Gram matrix is singular as soon as planes are more than coordinates. The first ridge moves the
# optimum less than the solver's tolerance; where it is too small a pivot the solver may go round in
# circles, and the next is tried. When C is large the optimum is a near cancellation of long planes,
# where no ridge is small: then it pulls towards the last answer instead of zero, until that rests.
_RIDGES = 1e-10, 1e-9, 1e-8, 1e-7
_REFINEMENTS, _SETTLED = 20, 1e-6
_STEPS = 20
_SOLVED = 1


class _Model(NamedTuple):
    """What grows with the planes, replaced as a whole: Ctrl-C leaves the old one or the new."""

    slopes: FloatArray
    offsets: FloatArray
    gram: FloatArray
    idle: IntArray


class Bundle:
    r"""Planes :math:`risk(w) \ge b_k + \langle a_k, w \rangle`, and the best w under them.

    The dual of min 1/2 |w|^2 + C max_k (b_k + <a_k, w>) over the simplex of :math:`\alpha`,

    .. math:: \max_{\alpha \ge 0, \sum \alpha = 1} C \langle b, \alpha \rangle
        - \tfrac12 \Bigl| C \sum_k \alpha_k a_k - \beta \Bigr|^2, \qquad
        w = \beta - C \sum_k \alpha_k a_k,

    has one variable a plane and one, :math:`\beta_j \ge 0`, for each coordinate of w that must not
    be negative. Any feasible point bounds the primal from below, so rounding in the solver costs
    tightness, never truth. The Gram matrix grows by one row a plane: O(k d).
    """

    def __init__(self, dimension: int, nonnegative: IntArray) -> None:
        self.nonnegative = nonnegative
        self._model = _Model(
            np.empty((0, dimension)), np.empty(0), np.empty((0, 0)), np.empty(0, np.int64)
        )

    def add(self, slopes: FloatArray, offsets: FloatArray) -> None:
        """More planes: slopes (m, d), offsets (m,)."""
        old = self._model
        cross = old.slopes @ slopes.T
        self._model = _Model(
            np.vstack([old.slopes, slopes]),
            np.append(old.offsets, offsets),
            np.block([[old.gram, cross], [cross.T, slopes @ slopes.T]]),
            np.append(old.idle, np.zeros(len(offsets), np.int64)),
        )

    def bound(self, C: float) -> float:
        """The dual value at the optimum over the planes; the others have been idle once more."""
        alpha = self._weights(C, np.zeros(self._model.slopes.shape[1]), 0.0)
        model = self._model
        self._model = model._replace(idle=np.where(alpha > 1e-9, 0, model.idle + 1))
        w = self._cut_off(-C * (alpha @ model.slopes))
        return float(C * (model.offsets @ alpha) - 0.5 * (w @ w))

    def near(self, C: float, centre: FloatArray, pull: float) -> tuple[FloatArray, float]:
        """The minimiser of 1/2 |w|^2 + C max_k (b_k + <a_k, w>) + pull / 2 |w - centre|^2.

        With its objective under the planes, the pull left out. The planes it rests on are in use.
        """
        alpha = self._weights(C, centre, pull)
        model = self._model
        self._model = model._replace(idle=np.where(alpha > 1e-9, 0, model.idle))
        w = self._cut_off((pull * centre - C * (alpha @ model.slopes)) / (1.0 + pull))
        risk = float((model.offsets + model.slopes @ w).max())
        return w, 0.5 * float(w @ w) + C * risk

    def _cut_off(self, w: FloatArray) -> FloatArray:
        w[self.nonnegative] = np.maximum(w[self.nonnegative], 0.0)
        return w

    def _weights(self, C: float, centre: FloatArray, pull: float) -> FloatArray:
        r"""Where the dual is largest, on the simplex whatever the solver's tolerance left.

        With a pull towards the centre the dual, times 1 + pull, is the one above with
        :math:`(1 + pull)\, b + pull\, a^\top centre` for b, and - pull centre for each beta.
        """
        model = self._model
        k = len(model.offsets)
        if k == 1:
            return np.ones(1)
        # Imported by need: `import setwise` must not load a solver.
        solve = load("daqp").solve

        # beta / C is the unknown: beta itself would be on another scale when C is large.
        signed = model.slopes[:, self.nonnegative]
        s = signed.shape[1]
        hessian = C * C * np.block([[model.gram, -signed], [-signed.T, np.eye(s)]])
        heights = (1.0 + pull) * model.offsets + pull * (model.slopes @ centre)
        # On the simplex only their differences count, and those are on the program's own scale.
        linear = C * np.concatenate([heights.max() - heights, pull * centre[self.nonnegative]])
        scale = max(float(np.trace(hessian)) / (k + s), float(np.abs(linear).max()), 1e-300)
        simplex = np.concatenate([np.ones(k), np.zeros(s)])[None, :]
        upper = np.concatenate([np.full(k, 2.0), np.full(s, 1e30), [1.0]])
        lower = np.concatenate([np.zeros(k + s), [1.0]])
        sense = np.zeros(k + s + 1, np.int32)
        sense[:k][model.idle > 0] = 3  # taken to be zero, until the solver finds otherwise
        sense[-1] = 5  # an equality
        for ridge in _RIDGES:
            near, least = np.zeros(k + s), np.inf
            weights: FloatArray | None = None
            for _ in range(_REFINEMENTS):
                # Multipliers of the scaled program can be tiny where features lie far from zero, so
                # that the solver's own tolerance for them would stop it early.
                answer = solve(
                    hessian / scale + ridge * np.eye(k + s),
                    linear / scale - ridge * near,
                    simplex,
                    upper,
                    lower,
                    sense,
                    dual_tol=1e-13,
                    iter_limit=_STEPS * (k + s),
                )
                x = np.maximum(np.asarray(answer[0][: k + s]), 0.0)
                total = x[:k].sum()
                if not (answer[2] == _SOLVED and np.isfinite(total) and total > 0):
                    break
                x[:k] /= total
                value = float((0.5 * (hessian @ x) + linear) @ x)
                if value >= least:
                    break
                near, weights = x, x[:k].copy()
                settled = least - value <= _SETTLED * value
                least = value
                if settled or ridge * scale * (x @ x) <= _SETTLED * value:
                    break
            if weights is not None:
                return weights
        # No answer: the newest plane alone is feasible, and the next round adds another.
        newest: FloatArray = np.eye(k)[-1]
        return newest

    def drop_idle(self) -> None:
        """Forget the planes that had no weight for 10 rounds."""
        model = self._model
        kept = np.flatnonzero(model.idle < _IDLE_ROUNDS)
        if len(kept) < len(model.idle):
            self._model = _Model(
                model.slopes[kept],
                model.offsets[kept],
                model.gram[np.ix_(kept, kept)],
                model.idle[kept],
            )

    def planes(self) -> Planes:
        """A copy that can start another fit."""
        return Planes(self._model.slopes.copy(), self._model.offsets.copy())
