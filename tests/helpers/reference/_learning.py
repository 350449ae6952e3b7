"""Risks as maxima of planes, and their regularised minimum by a quadratic program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import lsq_linear, minimize

from reference._fields import all_labelings
from reference._functions import all_masks, base_vertices, size_of

Planes = tuple[np.ndarray, np.ndarray]


def hinge_planes(values: np.ndarray, case: int) -> Planes:
    """The Lovász hinge as a maximum of planes in the margins, offsets + slopes @ margins.

    Case 1 of an increasing loss: a base vertex and any set of violators. Case 2: a base vertex, and
    the plane 0.
    """
    vertices = base_vertices(values)
    if case == 1:
        subsets = all_masks(size_of(values))
        vertices = (vertices[:, None, :] * subsets).reshape(-1, size_of(values))
    weights = np.unique(np.vstack([vertices, np.zeros_like(vertices[:1])]), axis=0)
    return -weights, weights.sum(axis=1)


def rescaling_planes(values: np.ndarray, *, slack: bool) -> Planes:
    """Margin or slack rescaling as a maximum of planes in the margins, one for each set."""
    subsets = all_masks(size_of(values)).astype(float)
    return -2.0 * subsets * (values[:, None] if slack else 1.0), values


def least_objective(
    risks: Sequence[Planes], C: float, nonnegative: Sequence[int] | np.ndarray = ()
) -> float:
    """min 1/2 |w|^2 + C sum_i max_k (b_ik + <a_ik, w>) over w, some coordinates not negative.

    The quadratic program in w and the slacks by SLSQP. Then multipliers of its active planes, by
    non-negative least squares, bound every objective from below, and so prove the answer.
    """
    if not risks or risks[0][0].shape[1] == 0:
        return C * float(sum(offsets.max() for _, offsets in risks))
    nonnegative = list(nonnegative)
    slopes = np.concatenate([slopes for slopes, _ in risks])
    offsets = np.concatenate([offsets for _, offsets in risks])
    example = np.repeat(np.eye(len(risks)), [len(offsets) for _, offsets in risks], axis=0)
    d, n = slopes.shape[1], len(risks)

    def heights(w: np.ndarray) -> np.ndarray:
        """Of the highest plane of each example."""
        return np.array([(b + a @ w).max() for a, b in risks])

    answer = minimize(
        lambda x: 0.5 * x[:d] @ x[:d] + C * x[d:].sum(),
        np.append(np.zeros(d), heights(np.zeros(d))),
        jac=lambda x: np.append(x[:d], np.full(n, C)),
        method="SLSQP",
        bounds=[(0.0 if j in nonnegative else None, None) for j in range(d + n)],
        constraints={
            "type": "ineq",
            "fun": lambda x: example @ x[d:] - offsets - slopes @ x[:d],
            "jac": lambda x: np.hstack([-slopes, example]),
        },
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    w = answer.x[:d]
    w[nonnegative] = np.maximum(w[nonnegative], 0.0)
    value = 0.5 * w @ w + C * heights(w).sum()
    bound = max(_structural_bound(w, slopes, offsets, example, C, nonnegative))
    assert abs(value - bound) <= 1e-6 * max(1.0, value), (value, bound)
    return float(bound)


def _structural_bound(
    w: np.ndarray,
    slopes: np.ndarray,
    offsets: np.ndarray,
    example: np.ndarray,
    C: float,
    nonnegative: list[int],
) -> Iterator[float]:
    """Dual values near w = beta - C sum alpha a: what is active is a matter of rounding."""
    heights = offsets + slopes @ w
    highest = np.array([heights[of == 1].max() for of in example.T])
    for slack in (1e-4, 1e-6, 1e-8):
        active = heights >= example @ highest - slack
        stopped = [j for j in nonnegative if w[j] < slack]
        # alpha on a simplex for each example, beta not negative, and only at the bounds of w.
        push = np.hstack([-C * slopes[active].T, np.eye(len(w))[:, stopped]])
        total = np.hstack([example[active].T, np.zeros((len(highest), len(stopped)))])
        target = np.append(w, np.ones(len(highest)))
        fit = lsq_linear(np.vstack([push, total]), target, (0, np.inf), method="bvls", tol=1e-15)
        alpha = fit.x[: active.sum()]
        sums = alpha @ example[active]
        if sums.min() <= 0:  # an example without a plane in use: these multipliers bound nothing
            yield -np.inf
            continue
        alpha /= example[active] @ sums
        v = -C * alpha @ slopes[active]
        v[nonnegative] = np.maximum(v[nonnegative], 0.0)
        yield float(C * alpha @ offsets[active] - 0.5 * v @ v)


def field_planes(graph, truth, n_labels, node_weights, truncation=0.5, label_costs=False) -> Planes:
    """The risk of one graph as planes in the weights w of a field, one for each labelling z.

    The slope of z is that of E(truth) - E(z), its offset the loss.

    ``graph`` is (node features, edges, edge features) or with regions (N, layers). D counts the
    weights of a field: d for the second of two labels, d for each of more, then k for the edges,
    one a layer of regions, and one a label if ``label_costs``.
    """
    nodes, edges, pairs, *regions = (np.asarray(part) for part in graph)
    kinds = 1 if n_labels == 2 else n_labels

    def features(z):
        of_nodes = np.zeros((kinds, nodes.shape[1]))
        for x, label in zip(nodes, z, strict=True):
            if n_labels == 2:
                of_nodes[0] -= x * label
            else:
                of_nodes[label] -= x
        of_edges = np.zeros(pairs.shape[1])
        for (p, q), phi in zip(edges, pairs, strict=True):
            of_edges += phi * (z[p] != z[q])
        of_layers = []
        for layer in regions[0].T if regions else ():
            of_layers.append(0.0)
            for region in set(layer.tolist()) - {-1}:
                inside = list(np.asarray(z)[layer == region])
                apart = len(inside) - max(inside.count(label) for label in inside)
                of_layers[-1] += min(truncation * len(inside), apart)
        used = [float(label in list(z)) for label in range(n_labels)] if label_costs else []
        return np.concatenate([of_nodes.ravel(), of_edges, of_layers, used])

    labelings = all_labelings(len(nodes), n_labels)
    loss = np.array([sum(np.asarray(node_weights)[z != np.asarray(truth)]) for z in labelings])
    return np.array([features(truth) - features(z) for z in labelings]), loss
