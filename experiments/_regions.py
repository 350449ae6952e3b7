"""Superpixels of an image: their colours and texture, which of them touch, and maps of labels."""

from __future__ import annotations

import numpy as np
from _mean_shift import neighbours, region_means
from _texture import PATTERNS, filter_bank, one_hot
from skimage.color import rgb2lab
from skimage.feature import local_binary_pattern
from skimage.segmentation import slic

COMPACTNESS = 10.0


def superpixels(image: np.ndarray, number: int) -> np.ndarray:
    """About ``number`` connected regions (h, w) of similar size, numbered from 0."""
    regions = slic(image, number, compactness=COMPACTNESS, start_label=0, enforce_connectivity=True)
    return np.unique(regions, return_inverse=True)[1].reshape(regions.shape)


def touching(regions: np.ndarray) -> np.ndarray:
    """Pairs (E, 2) of regions with a side of two pixels between them, each pair once."""
    ends = np.sort(regions.ravel()[neighbours(regions.shape)], axis=1)
    return np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)


def mean_colours(image: np.ndarray, regions: np.ndarray) -> np.ndarray:
    """Mean L*a*b* colours (S, 3) of the regions."""
    return region_means(regions.ravel(), rgb2lab(image).reshape(-1, 3))


def appearances(image: np.ndarray, regions: np.ndarray) -> np.ndarray:
    """Colour and texture (S, d) of the regions, every column of mean 0 and deviation 1.

    Means and deviations of L, a and b; mean strengths of the Laplacians and derivatives of
    TextonBoost's filter bank, as logarithms; and shares of uniform local binary patterns.
    """
    lab = rgb2lab(image)
    flat = regions.ravel()
    responses = np.abs(filter_bank(lab)[..., 9:])
    grey = np.round(lab[..., 0] * 2.55).astype(np.uint8)
    patterns = local_binary_pattern(grey, PATTERNS - 2, 1, "uniform").astype(np.int64)
    colours = lab.reshape(-1, 3)
    mean = region_means(flat, colours)
    spread = np.sqrt(np.maximum(region_means(flat, colours**2) - mean**2, 0))
    energy = np.log1p(region_means(flat, responses.reshape(flat.size, -1)))
    shares = region_means(flat, one_hot(patterns, PATTERNS).reshape(flat.size, -1))
    parts = [_scaled(part) for part in (mean, spread, energy, shares)]
    # Each kind of feature weighs the same in a distance, but colours, which say most, three times.
    weights = np.sqrt([3.0, 1.0, 1.0, 1.0])
    return np.hstack(
        [w * part / np.sqrt(part.shape[1]) for w, part in zip(weights, parts, strict=True)]
    )


def _scaled(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)


def majority(regions: np.ndarray, labels: np.ndarray, number: int) -> np.ndarray:
    """The most frequent label (S,) in each region, -1 where all its pixels have label -1."""
    flat, known = labels.ravel(), labels.ravel() >= 0
    counts = np.zeros((int(regions.max()) + 1, number), np.int64)
    np.add.at(counts, (regions.ravel()[known], flat[known]), 1)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
