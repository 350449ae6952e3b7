"""Flow problems for benchmarks: noisy pictures, superpixels, and files of the DIMACS challenge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from setwise.inference._flows._dimacs import Problem
from setwise.inference._flows._dimacs import read_dimacs as read


@dataclass(frozen=True)
class Picture:
    """Unaries (h, w) and undirected weights (2, h, w) down and to the right, zero at the border."""

    source: np.ndarray
    sink: np.ndarray
    weights: np.ndarray

    def as_integers(self) -> Picture:
        return Picture(
            *((1000 * x).astype(np.int64) for x in (self.source, self.sink, self.weights))
        )


@dataclass(frozen=True)
class Graph:
    """A graph with terminals."""

    edges: np.ndarray
    capacities: np.ndarray
    reverse: np.ndarray
    source: np.ndarray
    sink: np.ndarray


def noisy_picture(
    shape: tuple[int, int], *, smoothing: float = 1.0, noise: float = 1.0, seed: int = 0
) -> Picture:
    """Return blobs with noise; weights fall with the contrast of a less noisy view of them."""
    rng = np.random.default_rng(seed)
    blobs = gaussian_filter(rng.standard_normal(shape), max(2.0, min(shape) / 25))
    blobs /= blobs.std()
    truth = 0.5 * np.sign(blobs) + 0.2 * blobs
    unary = truth + noise * rng.standard_normal(shape)
    view = truth + 0.1 * rng.standard_normal(shape)
    weights = np.zeros((2, *shape))
    weights[0, :-1] = smoothing * np.exp(-4 * np.diff(view, axis=0) ** 2)
    weights[1, :, :-1] = smoothing * np.exp(-4 * np.diff(view, axis=1) ** 2)
    return Picture(np.maximum(unary, 0), np.maximum(-unary, 0), weights)


@dataclass(frozen=True)
class Volume(Picture):
    """Unaries (d, h, w) and undirected weights (K, d, h, w) to the neighbours at ``offsets``."""

    offsets: np.ndarray

    def as_graph(self) -> Graph:
        """Return the edges of the volume, offset by offset, as a graph."""
        shape = self.source.shape
        pixels = np.arange(self.source.size, dtype=np.int32).reshape(shape)
        edges, capacities = [], []
        for weights, (tails, heads) in zip(
            self.weights, both_ends(shape, self.offsets), strict=True
        ):
            edges.append(np.stack([pixels[tails].ravel(), pixels[heads].ravel()], 1))
            capacities.append(weights[tails].ravel())
        there = np.concatenate(capacities)
        return Graph(np.concatenate(edges), there, there, self.source.ravel(), self.sink.ravel())


def both_ends(shape: tuple[int, ...], offsets: np.ndarray) -> Iterator[tuple[tuple, tuple]]:
    """Return slices of the pixels with a neighbour at each offset, and of these neighbours."""
    for offset in offsets:
        tails = tuple(slice(max(0, -o), n - max(0, o)) for o, n in zip(offset, shape, strict=True))
        heads = tuple(slice(max(0, o), n - max(0, -o)) for o, n in zip(offset, shape, strict=True))
        yield tails, heads


def noisy_volume(
    side: int, neighbors: int, *, smoothing: float = 1.0, noise: float = 1.0
) -> Volume:
    """Return a noisy picture in three dimensions.

    The weights of 26 neighbours are a quarter of those of 6.
    """
    rng = np.random.default_rng(0)
    shape = (side, side, side)
    offsets = np.array([o for o in product((-1, 0, 1), repeat=3) if o > (0, 0, 0)])
    if neighbors == 6:
        offsets = offsets[np.abs(offsets).sum(axis=1) == 1]
    blobs = gaussian_filter(rng.standard_normal(shape), max(2.0, side / 25))
    blobs /= blobs.std()
    truth = 0.5 * np.sign(blobs) + 0.2 * blobs
    unary = truth + noise * rng.standard_normal(shape)
    view = truth + 0.1 * rng.standard_normal(shape)
    weights = np.zeros((len(offsets), *shape))
    for k, (tails, heads) in enumerate(both_ends(shape, offsets)):
        weights[k][tails] = np.exp(-4 * (view[tails] - view[heads]) ** 2)
    weights *= smoothing * (1.0 if neighbors == 6 else 0.25)
    return Volume(np.maximum(unary, 0), np.maximum(-unary, 0), weights, offsets)


def two_seeds(side: int, seed: int) -> Picture:
    """Return the weights of a noisy picture, with one pixel tied to each side and no unaries."""
    rng = np.random.default_rng(seed)
    weights = noisy_picture((side, side)).weights
    source, sink = np.zeros((2, side, side))
    corner, far = tuple(rng.integers(0, side // 8, 2)), tuple(side - rng.integers(1, side // 8, 2))
    ends = [corner, far] if seed % 2 else [far, corner]
    source[ends[0]] = sink[ends[1]] = 1e3
    return Picture(source, sink, weights)


def superpixels(
    shape: tuple[int, int] = (213, 320), layers: tuple[int, ...] = (100, 200, 300)
) -> Graph:
    """Return a picture with layers of regions whose cost grows with disagreement up to a limit.

    A robust P^n potential is two more nodes per region, joined to all its pixels: one for each
    label (Kohli, Ladicky, Torr, "Robust higher order potentials", IJCV 2009).
    """
    rng = np.random.default_rng(0)
    picture = noisy_picture(shape, smoothing=0.5)
    pixels = np.arange(picture.source.size).reshape(shape)
    edges = [
        np.stack([pixels[:-1].ravel(), pixels[1:].ravel()], 1),
        np.stack([pixels[:, :-1].ravel(), pixels[:, 1:].ravel()], 1),
    ]
    there = [picture.weights[0, :-1].ravel(), picture.weights[1, :, :-1].ravel()]
    back = list(there)
    source, sink = [picture.source.ravel()], [picture.sink.ravel()]
    n = pixels.size
    places = np.argwhere(np.ones(shape))
    for count in layers:
        region = cKDTree(rng.random((count, 2)) * shape).query(places)[1]
        limit = 0.3 * np.bincount(region, minlength=count)
        for label in (0, 1):
            pair = np.stack([pixels.ravel(), n + region], 1)
            edges.append(pair if label == 0 else pair[:, ::-1])
            there.append(np.ones(pixels.size))
            back.append(np.zeros(pixels.size))
            (sink if label == 0 else source).append(limit)
            (source if label == 0 else sink).append(np.zeros(count))
            n += count
    return Graph(*map(np.concatenate, (edges, there, back, source, sink)))


def read_dimacs(path: Path) -> Problem:
    """Read nodes, edges, capacities, source and sink of a file in the format for maximum flow."""
    return read(path.read_bytes(), path.name)
