"""One-slack cutting planes as one writes them in an afternoon: NumPy, a loop, a generic solver.

The method is the one of ``sw.learning.one_slack``, with the same planes, step and stop; what
differs is a Python loop over the examples and clarabel for the quadratic program.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

IDLE_ROUNDS = 20


def fit(
    X: np.ndarray, signs: np.ndarray, C: float, tol: float, step: float
) -> tuple[np.ndarray, float, int]:
    """Weights (p, d), objective and rounds for the sum of hinge losses; signs (n, p) are -1 or 1.

    ``step`` is how far from the best weights towards the model's optimum the next question lies.
    """
    shape = (signs.shape[1], X.shape[1])
    slopes, offsets = [np.zeros(shape).ravel()], [0.0]  # no hinge loss is negative
    gram, idle = np.zeros((1, 1)), np.zeros(1, int)
    W = best = np.zeros(shape)
    value, bound, rounds = np.inf, -np.inf, 0
    while True:
        rounds += 1
        risk, slope = hinge_risk(X, signs, W)
        objective = 0.5 * np.sum(W * W) + C * risk
        if objective < value:
            value, best = objective, W
        cross = np.array([a @ slope.ravel() for a in slopes])
        gram = np.block([[gram, cross[:, None]], [cross, np.sum(slope * slope)]])
        slopes.append(slope.ravel())
        offsets.append(risk - np.sum(slope * W))
        alpha = quadratic_program(C * C * gram, -C * np.array(offsets))
        optimum = -C * (alpha @ np.array(slopes)).reshape(shape)
        bound = max(bound, C * (alpha @ np.array(offsets)) - 0.5 * np.sum(optimum**2))
        if (value - bound) / max(1.0, abs(value)) <= tol:
            return best, float(value), rounds
        idle = np.where(alpha > 1e-9, 0, np.append(idle, 0) + 1)
        kept = np.flatnonzero(idle < IDLE_ROUNDS)
        slopes, offsets = [slopes[k] for k in kept], [offsets[k] for k in kept]
        gram, idle = gram[np.ix_(kept, kept)], idle[kept]
        W = optimum if rounds == 1 else best + step * (optimum - best)


def hinge_risk(X: np.ndarray, signs: np.ndarray, W: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum of the hinge losses and a subgradient, one example after the other."""
    risk, slope = 0.0, np.zeros_like(W)
    for x, y in zip(X, signs, strict=True):
        slack = 1 - y * (W @ x)
        violated = slack > 0
        risk += slack[violated].sum()
        slope -= np.outer(y * violated, x)
    return float(risk), slope


def quadratic_program(hessian: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """min 1/2 a' H a + q' a over the simplex."""
    k = len(linear)
    scale = max(float(np.trace(hessian)) / k, float(np.abs(linear).max()))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.triu(hessian / scale, format="csc"),
        linear / scale,
        sparse.vstack([np.ones((1, k)), -sparse.eye(k)], format="csc"),
        np.append(1.0, np.zeros(k)),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(k)],
        settings,
    )
    alpha = np.maximum(np.array(solver.solve().x), 0.0)
    return alpha / alpha.sum()
