"""Superpixels by mean shift (Comaniciu and Meer, 2002), with a flat kernel in place and colour."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from skimage.color import rgb2luv

from experiments.shared.regions import pixel_pairs, region_means

SAME = 1.0  # modes of neighbours within this colour distance are merged; convergence is not exact


def modes(colors: np.ndarray, spatial: int, color: float, rounds: int = 20) -> np.ndarray:
    """Return the colour at which each pixel's mean shift ends, shape (h, w, 3).

    From its own place and colour each point moves to the mean of the pixels within ``spatial`` in
    place and within ``color`` in colour. It stops when it moves by at most a tenth of a pixel and
    of a unit of colour, or after ``rounds`` moves. The cost is about 3 spatial² distances per pixel
    and round.

    Parameters
    ----------
    colors : array, shape (h, w, 3)
        In a space with meaningful distances, such as L*u*v*.
    spatial, color : int, float
        Bandwidths: radii of the kernel's discs.
    rounds : int
        The largest number of moves.
    """
    h, w, _ = colors.shape
    # The frame's colour is so distant that no window includes it.
    frame = ((spatial, spatial), (spatial, spatial), (0, 0))
    framed = np.pad(colors.astype(np.float32), frame, constant_values=1e6)
    width = w + 2 * spatial
    image = np.ascontiguousarray(framed.reshape(-1, 3).T)
    place = np.indices((h, w)).reshape(2, -1).astype(np.float32)
    point = np.ascontiguousarray(colors.reshape(-1, 3).T.astype(np.float32))
    offsets = range(-spatial, spatial + 1)
    disc = [(a, b) for a in offsets for b in offsets if a * a + b * b <= spatial**2]
    moving = np.arange(h * w)
    for _ in range(rounds):
        now, here = point[:, moving], place[:, moving]
        row, column = np.rint(here).astype(np.int64)
        center = (row + spatial) * width + column + spatial
        count = np.zeros(len(moving), np.float32)
        offset, total = np.zeros_like(here), np.zeros_like(now)
        for a, b in disc:
            other = np.take(image, center + (a * width + b), axis=1)
            near = (np.square(other - now).sum(axis=0) <= color**2).astype(np.float32)
            count += near
            offset[0] += a * near
            offset[1] += b * near
            total += near * other
        # A point stays in place when no pixel is left in its window.
        some, count = count > 0, np.maximum(count, 1)
        to_place = np.where(some, [row, column] + offset / count, here).astype(np.float32)
        to_point = np.where(some, total / count, now)
        shift = np.abs(np.concatenate([to_place - here, to_point - now])).max(axis=0)
        place[:, moving], point[:, moving] = to_place, to_point
        moving = moving[shift > 0.1]
        if not len(moving):
            break
    return point.T.reshape(h, w, 3)


def joined(pairs: np.ndarray, count: int) -> np.ndarray:
    """Return the connected component (count,) of each node of a graph, numbered from 0."""
    ones = np.ones(len(pairs), bool)
    graph = coo_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def absorb_small(regions: np.ndarray, colors: np.ndarray, least: int) -> np.ndarray:
    """Join each region of fewer than ``least`` pixels to the neighbour of the nearest mean colour.

    Regions (h, w) are connected and numbered from 0. Small regions are joined first: those below 2
    pixels, then below 4, and so on. Joined regions count as one region from then on. The result is
    numbered from 0 again.
    """
    pairs, flat = pixel_pairs(regions.shape), regions.ravel()
    image = colors.reshape(flat.size, -1)
    limit = 2
    while True:
        count = int(flat.max()) + 1
        sizes = np.bincount(flat, minlength=count)
        small = sizes < min(limit, least)
        if count == 1 or not small.any():
            if limit >= least or count == 1:
                return flat.reshape(regions.shape)
            limit *= 2
            continue
        means = region_means(flat, image)
        ends = flat[pairs]
        ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
        ends = np.concatenate([ends, ends[:, ::-1]])
        ends = ends[small[ends[:, 0]]]
        distance = np.linalg.norm(means[ends[:, 0]] - means[ends[:, 1]], axis=1)
        order = np.lexsort((ends[:, 1], distance, ends[:, 0]))
        first = np.unique(ends[order, 0], return_index=True)[1]
        flat = joined(ends[order][first], count)[flat]


def superpixels(image: np.ndarray, spatial: int, color: float, least: int) -> np.ndarray:
    """Return connected regions (h, w), int64, numbered from 0, of an RGB image (h, w, 3).

    Neighbouring pixels belong to one region if their modes, in L*u*v*, are within SAME of each
    other. Regions of fewer than ``least`` pixels are then joined to a neighbour.
    """
    ends = modes(rgb2luv(image), spatial, color)
    shape, flat = ends.shape[:2], ends.reshape(-1, 3)
    pairs = pixel_pairs(shape)
    alike = np.linalg.norm(flat[pairs[:, 0]] - flat[pairs[:, 1]], axis=1) < SAME
    regions = joined(pairs[alike], len(flat))
    return absorb_small(regions.reshape(shape), ends, least)
