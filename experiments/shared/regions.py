"""Superpixels of an image: their colours and texture, which of them touch, and maps of labels."""

from __future__ import annotations

import numpy as np
from skimage.color import rgb2lab
from skimage.segmentation import slic

import setwise as sw
from experiments.shared.texture import binary_patterns, filter_bank

COMPACTNESS = 10.0


def superpixels(image: np.ndarray, number: int) -> np.ndarray:
    """Return about ``number`` connected regions (h, w) of similar size, numbered from 0."""
    regions = slic(image, number, compactness=COMPACTNESS, start_label=0, enforce_connectivity=True)
    return np.unique(regions, return_inverse=True)[1].reshape(regions.shape)


def pixel_pairs(shape: tuple[int, int]) -> np.ndarray:
    """Return the pairs (E, 2) of pixels that are horizontal or vertical neighbours."""
    ids = np.arange(shape[0] * shape[1]).reshape(shape)
    across = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def touching(regions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (E, 2) of touching regions, each once, and the length (E,) of their boundary."""
    ends = np.sort(regions.ravel()[pixel_pairs(regions.shape)], axis=1)
    edges, lengths = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0, return_counts=True)
    return edges, lengths.astype(float)


def region_means(regions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return means (S, C) of values (..., C) over regions (...), which are numbered from 0."""
    flat = regions.ravel()
    columns = values.reshape(flat.size, -1)
    sums = [np.bincount(flat, columns[:, c]) for c in range(columns.shape[1])]
    return np.stack(sums, axis=1) / np.bincount(flat)[:, None]


def contrast_edges(image: np.ndarray, regions: np.ndarray, weight: float) -> sw.fields.Potts:
    """Return Potts edges between touching regions, weaker where mean colours differ more."""
    edges, _ = touching(regions)
    colors = region_means(regions, rgb2lab(image))
    return sw.fields.Potts(edges, weight * sw.fields.contrast_weights(colors[:, None], edges))


def appearances(image: np.ndarray, regions: np.ndarray) -> np.ndarray:
    """Return colour and texture features (S, d) of the regions, each of mean 0 and deviation 1.

    The features are means and deviations of L, a and b; logarithms of the mean strengths of the
    Laplacians and derivatives of TextonBoost's filter bank; and shares of uniform local binary
    patterns.
    """
    lab = rgb2lab(image)
    mean = region_means(regions, lab)
    spread = np.sqrt(np.maximum(region_means(regions, lab**2) - mean**2, 0))
    energy = np.log1p(region_means(regions, np.abs(filter_bank(lab)[..., 9:])))
    shares = region_means(regions, binary_patterns(lab[..., 0]))
    parts = [_scaled(part) for part in (mean, spread, energy, shares)]
    # All kinds of features have the same weight in a distance, except colours, which are the most
    # informative and have weight three.
    weights = np.sqrt([3.0, 1.0, 1.0, 1.0])
    return np.hstack(
        [w * part / np.sqrt(part.shape[1]) for w, part in zip(weights, parts, strict=True)]
    )


def _scaled(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)


def label_counts(regions: np.ndarray, labels: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Count the pixels of each region and label, shape (S, L); label -1 is left out."""
    counts = np.zeros(shape, np.int64)
    known = labels >= 0
    np.add.at(counts, (regions[known], labels[known]), 1)
    return counts


def majority(regions: np.ndarray, labels: np.ndarray, number: int) -> np.ndarray:
    """Return the most frequent label (S,) in each region, -1 where all its pixels have label -1."""
    counts = label_counts(regions, labels, (int(regions.max()) + 1, number))
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
