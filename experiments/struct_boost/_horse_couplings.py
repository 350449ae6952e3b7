"""Couplings of the superpixels of a photograph: neighbours, similar distant ones, and regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree
from skimage.color import rgb2luv
from sklearn.cluster import KMeans

from experiments.shared.regions import region_means
from experiments.struct_boost._horse_graphs import GROUPS, Horse

ALIKE = 8  # the number of nearest superpixels in colour that each one is joined to
CLUSTERS = 30  # the number of clusters of a photograph's colours


def near(horses: Sequence[Horse], scores: Sequence[np.ndarray], like: Sequence[Horse]) -> list:
    """Return unary potentials of nodes, and colour nearness and boundary length of edges."""
    color, boundary = (
        np.mean(np.concatenate([getattr(one, part) for one in like]))
        for part in ("color", "boundary")
    )
    return [
        (
            of[:, : len(GROUPS)],
            one.edges,
            np.column_stack([np.exp(-one.color / color), one.boundary / boundary]),
        )
        for one, of in zip(horses, scores, strict=True)
    ]


def far(X: Sequence[tuple], horses: Sequence[Horse]) -> list:
    """Add edges to the superpixels of the nearest colour, however distant.

    Their feature is exp(-d / 10), where d is the distance of the mean L*u*v*.
    """
    return [_with_far(x, colors(one)) for x, one in zip(X, horses, strict=True)]


def with_regions(X: Sequence[tuple], horses: Sequence[Horse]) -> list:
    """Add clusters of the colours of each photograph as regions."""
    return [
        (*x, KMeans(CLUSTERS, n_init=2, random_state=0).fit_predict(colors(one)))
        for x, one in zip(X, horses, strict=True)
    ]


def colors(one: Horse) -> np.ndarray:
    """Return the mean L*u*v* of each superpixel, (N, 3)."""
    return region_means(one.cells, rgb2luv(one.reduced))


def _with_far(x: tuple, means: np.ndarray) -> tuple:
    nodes, edges, pairs = x
    _, found = cKDTree(means).query(means, ALIKE + 1)
    both = np.column_stack([np.repeat(np.arange(len(means)), ALIKE), found[:, 1:].ravel()])
    joined = np.unique(np.sort(both[both[:, 0] != both[:, 1]], axis=1), axis=0)
    distance = np.linalg.norm(means[joined[:, 0]] - means[joined[:, 1]], axis=1)
    wide = np.zeros((len(edges) + len(joined), pairs.shape[1] + 1))
    wide[: len(edges), :-1], wide[len(edges) :, -1] = pairs, np.exp(-distance / 10.0)
    return nodes, np.vstack([edges, joined]), wide
