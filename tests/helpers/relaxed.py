"""Relaxations lowered by projected logits, without a driver."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from setwise.inference._relaxation._projected_logits import Descent
from setwise.inference._relaxation._relaxation import Relaxation


def lowered(
    relaxation: Relaxation,
    temperature: float,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    *,
    init: np.ndarray | None = None,
    momentum: bool = True,
    n_threads: int = 1,
) -> SimpleNamespace:
    """Make passes until the relative gap is at most ``tol``, and return where they lead."""
    descent = Descent(relaxation, temperature, n_threads, init)
    descent.measure()
    while descent.relative_gap > tol and descent.n_iter < max_iter:
        descent.sweep(momentum)
        descent.measure()
    scores = descent.scores()
    scores[np.isinf(relaxation.unary)] = np.inf
    return SimpleNamespace(
        scores=scores,
        probabilities=descent.probabilities(),
        objective=descent.objective - relaxation.constant,
        bound=descent.bound,
        gap=descent.gap,
        relative_gap=descent.relative_gap,
        n_iter=descent.n_iter,
        converged=descent.relative_gap <= tol,
        history=[value - relaxation.constant for value in descent.history],
        blocks=descent.blocks(),
    )
