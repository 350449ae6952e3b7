"""What the tests of SetClassifier fit: sixty samples, as rows, in groups or as one set.

And six, few enough for the minimum by brute force.
"""

from __future__ import annotations

import numpy as np

from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling

random = np.random.default_rng(0)
n, d, p = 60, 4, 3
X = random.normal(size=(n, d))
W = random.normal(size=(p, d))
Y = (X @ W.T + 0.7 * random.normal(size=(n, p)) > 0.4).astype(int)
y = Y[:, 0]
GROUPS = random.integers(0, 12, size=n)

SMALL_X = np.random.default_rng(5).normal(size=(6, 2))
SMALL_Y = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]])
SMALL_GROUPS = np.array([0, 1, 0, 1, 2, 1])

# What the names of the surrogates stand for.
SURROGATES = {
    "lovasz": LovaszHinge,
    "margin": MarginRescaling,
    "slack": SlackRescaling,
    "decomposed": DecomposedHinge,
    "hinge": lambda loss: LovaszHinge("hamming"),
}


def value_and_bound(model):
    """The last objective and the last bound of a fit."""
    return model.history_.primal[-1], model.history_.dual[-1]


def objective(model, X, Y, groups=None):
    """1/2 |W|^2 + C sum of the surrogate over the sets, from the fitted arrays alone."""
    name = "lovasz" if model.surrogate == "auto" else model.surrogate
    surrogate = SURROGATES[name](model.loss)
    squares = 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2))
    scores = X @ model.coef_.T + model.intercept_
    if model.sets == "columns":
        return squares + model.C * float(np.sum(surrogate(Y.T, scores.T)))
    if model.sets == "cells":
        return squares + model.C * surrogate(Y.ravel(), scores.ravel())
    if Y.ndim == 2:
        return squares + model.C * float(np.sum(surrogate(Y, scores)))
    sets = [np.ones(len(Y), bool)] if groups is None else [groups == g for g in np.unique(groups)]
    return squares + model.C * sum(surrogate(Y[s], scores[s, 0]) for s in sets)
