"""Lists by random restarts: local minima of the energy, each from labels drawn at random."""

from __future__ import annotations

import numpy as np

import setwise as sw

MOST_SWEEPS = 50


def restarted_list(
    field: sw.fields.Field, m: int, temperature: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the best labelling and m - 1 distinct local minima of least energy.

    Each start draws every variable independently from softmax(-unary / temperature), and descends
    by iterated conditional modes. ``field`` has unaries and one Potts potential.
    """
    best = sw.solve_map(field, n_jobs=1).labels
    (potts,) = field.potentials
    near = _neighbors(field.n_variables, potts)
    chances = np.exp(-(field.unary - field.unary.min(axis=1, keepdims=True)) / temperature)
    ends = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    found = {best.tobytes(): best}
    again = []
    for _ in range(m - 1):
        start = (rng.random((field.n_variables, 1)) > ends[:, :-1]).sum(axis=1)
        labels = downhill(field.unary, near, start, rng)
        if labels.tobytes() in found:
            again.append(labels)
        else:
            found[labels.tobytes()] = labels
    others = np.array([*list(found.values())[1:], *again]).reshape(-1, field.n_variables)
    order = np.argsort(field.energy(others), kind="stable") if len(others) else []
    return np.concatenate([best[None], others[order]])


def downhill(
    unary: np.ndarray,
    near: list[tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return a labelling that no change of one variable improves; variables in random order."""
    labels, n_labels = start.astype(np.int64), unary.shape[1]
    for _ in range(MOST_SWEEPS):
        changed = False
        for i in rng.permutation(len(labels)).tolist():
            others, weights = near[i]
            costs = unary[i] - np.bincount(labels[others], weights, n_labels)
            label = int(costs.argmin())
            if costs[label] < costs[labels[i]]:
                labels[i], changed = label, True
        if not changed:
            break
    return labels


def _neighbors(n: int, potts: sw.fields.Potts) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the neighbours of each variable, and the weights of the edges to them."""
    ends = np.concatenate([potts.edges, potts.edges[:, ::-1]])
    weights = np.concatenate([potts.weights, potts.weights])
    order = np.argsort(ends[:, 0], kind="stable")
    cuts = np.searchsorted(ends[order, 0], np.arange(1, n))
    return list(zip(np.split(ends[order, 1], cuts), np.split(weights[order], cuts), strict=True))
