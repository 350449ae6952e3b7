"""Surrogates by their definitions: maxima over all permutations or all sets."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from reference._functions import all_masks, base_vertices, size_of


def lovasz_hinge(values: np.ndarray, margins: np.ndarray, case: int) -> np.ndarray:
    """Definition 6 of the Lovász hinge paper for margins g y (k, p): a maximum over permutations.

    Case 1 thresholds each s = 1 - g y at zero, case 2 the whole sum.
    """
    s = 1.0 - margins
    vertices = base_vertices(values)
    if case == 1:
        return (np.maximum(s, 0.0) @ vertices.T).max(axis=1)
    return np.maximum((s @ vertices.T).max(axis=1), 0.0)


def margin_rescaling(values: np.ndarray, margins: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Equation (21) of the Lovász hinge paper, M(scale l) / scale: a maximum over all sets."""
    sums = margins @ all_masks(margins.shape[1]).T
    return (values - 2.0 / scale * sums).max(axis=1)


def slack_rescaling(values: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Equation (22) of the Lovász hinge paper: a maximum over all sets."""
    sums = margins @ all_masks(margins.shape[1]).T
    return (values * (1.0 - 2.0 * sums)).max(axis=1)


def largest_gain(values: np.ndarray) -> float:
    """max over B, the empty set included, and i outside of l(B + i) - l(B)."""
    cube = values.reshape((2,) * size_of(values))
    return max((float(np.diff(cube, axis=k).max()) for k in range(cube.ndim)), default=0.0)


def convex_closure(values: np.ndarray, s: np.ndarray) -> float:
    """The largest convex function below l at the corners: the least mean of l with mean set s."""
    masks = all_masks(len(s)).astype(float)
    weights = linprog(
        values,
        A_eq=np.vstack([masks.T, np.ones(len(values))]),
        b_eq=np.append(s, 1.0),
        bounds=(0, None),
    )
    assert weights.status == 0, weights.message
    return float(weights.fun)
