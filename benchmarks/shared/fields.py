"""Fields for benchmarks: pictures of two labels and of many, superpixels."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import Delaunay, cKDTree

import setwise as sw


def scene(shape: tuple[int, int], strength: float) -> sw.fields.Field:
    """Return a field of two labels: blobs with partly smooth noise, Potts weights by contrast."""
    rng = np.random.default_rng(0)

    def smooth(width: float) -> np.ndarray:
        noise = gaussian_filter(rng.normal(size=shape), width)
        return noise / noise.std()

    truth = smooth(15.0) > 0
    score = np.where(truth, 1.0, -1.0) + 1.5 * smooth(2.0) + rng.normal(size=shape)
    picture = np.where(truth[..., None], 150.0, 100.0) + rng.normal(0.0, 20.0, (*shape, 3))
    edges = sw.fields.grid_edges(shape)
    weights = strength * (0.2 + sw.fields.contrast_weights(picture, edges))
    unary = np.stack([np.logaddexp(0.0, score), np.logaddexp(0.0, -score)], axis=-1)
    return sw.fields.Field(unary.reshape(-1, 2)) + sw.fields.Potts(edges, weights)


def image(height, width, n_labels, layers, rng):
    """Return a field of cells of one label each with noise.

    There is one layer of squares for each size of a region.
    """
    y, x = np.mgrid[:height, :width].reshape(2, -1)
    cells = (y // max(height // 6, 1)) * 8 + x // max(width // 7, 1)
    unary = rng.normal(size=(height * width, n_labels))
    unary[np.arange(len(unary)), rng.integers(0, n_labels, 200)[cells]] -= 1.5
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((height, width)), 1.0)
    for size in layers:
        side = round(size**0.5)
        regions = (y // side) * (width // side + 1) + (x + size) // side
        field += sw.fields.RegionConsistency(regions, weight=1.0, alpha=0.8)
    return field


def patches(picture: np.ndarray, number: int) -> np.ndarray:
    """Return about the given number of regions, (h * w,).

    Each pixel belongs to the nearest of scattered pixels, by place and colour. The picture (h, w,
    3) has colours up to 255.
    """
    h, w = picture.shape[:2]
    rng = np.random.default_rng(number)
    y, x = np.mgrid[:h, :w]
    colors = gaussian_filter(picture, (3.0, 3.0, 0.0)) * np.sqrt(h * w / number) / 40.0
    points = np.concatenate([np.stack([y, x], axis=2), colors], axis=2).reshape(h * w, -1)
    centers = points[rng.choice(h * w, number, replace=False)]
    return np.unique(cKDTree(centers).query(points)[1], return_inverse=True)[1]


def superpixels(n: int, n_labels: int, strength: float) -> sw.fields.Field:
    """Return random points with Delaunay neighbours, in six patches of one label each."""
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(n, 2))
    corners = Delaunay(points).simplices
    pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    edges = np.unique(np.sort(pairs, axis=1), axis=0)
    centers, labels = rng.uniform(size=(6, 2)), rng.integers(0, n_labels, 6)
    truth = labels[((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)]
    score = 2.0 * (truth[:, None] == np.arange(n_labels)) + rng.normal(size=(n, n_labels))
    score += rng.normal(size=n_labels)
    score -= np.log(np.exp(score).sum(axis=1, keepdims=True))
    weights = strength * rng.uniform(0.3, 1.0, len(edges))
    return sw.fields.Field(-score) + sw.fields.Potts(edges, weights)


def fresh(field: sw.fields.Field) -> sw.fields.Field:
    """Return the same field with empty caches."""
    again = sw.fields.Field(field.unary)
    for potential in field.potentials:
        again += potential
    return again
