"""A straightforward one-slack cutting-plane method: NumPy, a loop, a generic solver.

The method is that of ``sw.learning.one_slack``, with the same planes, oracle calls and stopping
test, but with a Python loop over the examples and clarabel for the quadratic program.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

IDLE_ROUNDS = 10


def fit(
    X: np.ndarray, signs: np.ndarray, C: float, tol: float, *, classical: bool = False
) -> tuple[np.ndarray, float, int]:
    """Return weights (p, d), objective and rounds for the sum of hinge losses.

    The signs (n, p) are -1 or 1. The classical variant evaluates the risk at the minimiser of the
    model in each round.
    """
    shape = (signs.shape[1], X.shape[1])
    slopes, offsets = [np.zeros(shape).ravel()], [0.0]  # no hinge loss is negative
    gram, idle = np.zeros((1, 1)), np.zeros(1, int)
    W = best = np.zeros(shape)
    value, bound, promised, pull, rounds = np.inf, -np.inf, None, 1.5, 0
    while True:
        rounds += 1
        risk, slope = hinge_risk(X, signs, W)
        objective = 0.5 * np.sum(W * W) + C * risk
        if promised is not None and objective - promised <= 0.1 * (value - promised):
            pull = max(pull / 2.7, 1e-6)
        if objective < value:
            value, best = objective, W
        cross = np.array([a @ slope.ravel() for a in slopes])
        gram = np.block([[gram, cross[:, None]], [cross, np.sum(slope * slope)]])
        slopes.append(slope.ravel())
        offsets.append(risk - np.sum(slope * W))
        A, b, center = np.array(slopes), np.array(offsets), best.ravel()
        alpha = quadratic_program(C * C * gram, -C * b)
        w = -C * (alpha @ A)
        bound = max(bound, C * (alpha @ b) - 0.5 * (w @ w))
        if rounds == 1:
            at_zero = objective
        if value - bound <= tol * min(at_zero - bound, value):
            return best, float(value), rounds
        idle = np.where(alpha > 1e-9, 0, np.append(idle, 0) + 1)
        if rounds > 1 and not classical:
            heights = (1 + pull) * b + pull * (A @ center)
            alpha = quadratic_program(C * C * gram, -C * heights)
            w = (pull * center - C * (alpha @ A)) / (1 + pull)
            idle[alpha > 1e-9] = 0
        promised = 0.5 * (w @ w) + C * (b + A @ w).max()
        if rounds > 1:
            level = (promised - bound) / (value - bound)
            pull = min(pull * 2.7, 1e6) if level < 0.6 else pull
            pull = max(pull / 2.7, 1e-6) if level > 0.8 else pull
        kept = np.flatnonzero(idle < IDLE_ROUNDS)
        slopes, offsets = [slopes[k] for k in kept], [offsets[k] for k in kept]
        gram, idle = gram[np.ix_(kept, kept)], idle[kept]
        W = w.reshape(shape)


def hinge_risk(X: np.ndarray, signs: np.ndarray, W: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the sum of the hinge losses and a subgradient, one example after the other."""
    risk, slope = 0.0, np.zeros_like(W)
    for x, y in zip(X, signs, strict=True):
        slack = 1 - y * (W @ x)
        violated = slack > 0
        risk += slack[violated].sum()
        slope -= np.outer(y * violated, x)
    return float(risk), slope


def quadratic_program(hessian: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """Minimise 1/2 a' H a + q' a over the simplex."""
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
