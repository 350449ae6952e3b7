"""A multi-label problem, in the form that the learners expect."""

from __future__ import annotations

import numpy as np

import setwise as sw

LABELS, FEATURES = 6, 20


def problem(n: int, loss: str):
    """Return the whole risk, the risk of an example, and the number of weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    truth = X @ rng.normal(size=(FEATURES, LABELS)) + 3 * rng.normal(size=(n, LABELS)) > 0
    surrogate = sw.surrogates.LovaszHinge(loss)

    def whole(w):
        values, slopes = surrogate.value_and_gradient(truth, X @ w.reshape(LABELS, -1).T)
        return values.sum(), (slopes.T @ X).ravel()

    def one(i, w):
        value, slope = surrogate.value_and_gradient(truth[i], w.reshape(LABELS, -1) @ X[i])
        return value, np.outer(slope, X[i]).ravel()

    return whole, one, LABELS * FEATURES
