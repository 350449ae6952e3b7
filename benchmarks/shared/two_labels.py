"""Two-label problems as arrays of pixels, and the calls that solve them by cuts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

import setwise as sw


@dataclass(frozen=True)
class Cut:
    """A problem of unaries (N, 2), edges (E, 2) of a grid and their weights (E,)."""

    shape: tuple[int, ...]
    connectivity: int
    unary: np.ndarray
    edges: np.ndarray
    weights: np.ndarray

    @cached_property
    def images(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The weights per pixel and the structure per direction, as PyMaxflow's grids expect."""
        tails, heads = self.edges.T
        steps = np.array(np.unravel_index(heads, self.shape)) - np.unravel_index(tails, self.shape)
        images = []
        for step in np.unique(steps.T, axis=0):
            chosen = (step == steps.T).all(axis=1)
            weights = np.zeros(self.shape)
            weights.ravel()[tails[chosen]] = self.weights[chosen]
            structure = np.zeros((3,) * len(self.shape))
            structure[tuple(step + 1)] = 1
            images.append((weights, structure))
        return images


def cut_of(shape: tuple[int, ...], connectivity: int, unary: np.ndarray, view: np.ndarray) -> Cut:
    """Return a problem whose weights fall with the contrast of a view of the scene."""
    edges = sw.fields.grid_edges(shape, connectivity)
    channels = view.ndim > len(shape)
    weights = 0.2 + 3.0 * sw.fields.contrast_weights(view, edges, channels=channels)
    return Cut(shape, connectivity, unary.reshape(-1, 2), edges, weights)


def random_cut(shape: tuple[int, ...], connectivity: int) -> Cut:
    """Return independent unaries and weights, without structure that a search could exploit."""
    rng = np.random.default_rng(0)
    edges = sw.fields.grid_edges(shape, connectivity)
    unary = rng.normal(size=(int(np.prod(shape)), 2))
    unary -= unary.min(axis=1, keepdims=True)
    return Cut(shape, connectivity, unary, edges, 0.5 * rng.random(len(edges)))


def blobs(shape: tuple[int, ...], connectivity: int) -> Cut:
    """Return blobs with noise, in any dimension."""
    rng = np.random.default_rng(0)
    hidden = gaussian_filter(rng.standard_normal(shape), max(2.0, min(shape) / 25))
    truth = np.sign(hidden)
    score = truth + 1.5 * rng.standard_normal(shape)
    unary = np.stack([np.logaddexp(0.0, score), np.logaddexp(0.0, -score)], axis=-1)
    return cut_of(shape, connectivity, unary, truth + 0.3 * rng.standard_normal(shape))


def seeds(side: int) -> Cut:
    """Return two distant pixels that must differ, with no other unaries."""
    cut = blobs((side, side), 4)
    unary = np.zeros_like(cut.unary)
    pixels = np.arange(side**2).reshape(side, side)
    unary[pixels[side // 8, side // 8], 1] = unary[pixels[-side // 8, -side // 8], 0] = 1e6
    return Cut(cut.shape, 4, unary, cut.edges, cut.weights)


def photographs(
    side: int, connectivity: int = 4, most: int = 3, names: Sequence[str] = ()
) -> list[tuple[str, Cut]]:
    """Return the first photographs, or some by name, at a size.

    The unaries come from colours under scribbles. Without the data there are none.
    """
    folder = Path(os.environ.get("SETWISE_DATA", "")) / "grabcut_scribbles" / "with_image"
    if "SETWISE_DATA" not in os.environ:
        return []
    from PIL import Image

    cuts = []
    paths = [folder / f"{name}.jpg" for name in names] or sorted(folder.glob("*.jpg"))[:most]
    for path in paths:
        picture = np.asarray(Image.open(path).convert("RGB").resize((side, side)))
        drawn = Image.open(path.with_name(f"{path.stem}_scribble1.png"))
        scribbles = np.asarray(drawn.resize((side, side), Image.Resampling.NEAREST))
        bins = (picture // 32).astype(int) @ [64, 8, 1]
        counts = [
            gaussian_filter(
                np.bincount(bins[scribbles == k], minlength=512).reshape(8, 8, 8).astype(float), 0.7
            ).ravel()
            for k in (2, 1)
        ]
        chances = np.stack([(c + 1e-3) / (c + 1e-3).sum() for c in counts], axis=-1)
        unary = -np.log(chances[bins])
        for k, label in ((2, 0), (1, 1)):
            unary[scribbles == k, 1 - label] += 100.0
        cuts.append((path.stem, cut_of((side, side), connectivity, unary, picture)))
    return cuts


def by_setwise(cut: Cut) -> float:
    """Solve as a user with an array of edges does."""
    field = sw.fields.Field(cut.unary) + sw.fields.Potts(cut.edges, cut.weights)
    return sw.solve_map(field, n_jobs=1).value


def by_setwise_with_edges(cut: Cut) -> float:
    """Solve as a user with a shape does."""
    edges = sw.fields.grid_edges(cut.shape, cut.connectivity)
    field = sw.fields.Field(cut.unary) + sw.fields.Potts(edges, cut.weights)
    return sw.solve_map(field, n_jobs=1).value


def by_pymaxflow(cut: Cut) -> float:
    """Solve by PyMaxflow from an array of edges; the value is the energy of its labels."""
    import maxflow

    graph = maxflow.Graph[float](len(cut.unary), len(cut.edges))
    nodes = graph.add_nodes(len(cut.unary))
    graph.add_edges(cut.edges[:, 0], cut.edges[:, 1], cut.weights, cut.weights)
    graph.add_grid_tedges(nodes, cut.unary[:, 1], cut.unary[:, 0])
    value = graph.maxflow()
    graph.get_grid_segments(nodes)
    return value


def by_pymaxflow_grid(cut: Cut) -> float:
    """Solve by PyMaxflow's calls for grids, one call per direction."""
    import maxflow

    n = len(cut.unary)
    graph = maxflow.Graph[float](n, len(cut.edges))
    nodes = graph.add_grid_nodes(cut.shape)
    for weights, structure in cut.images:
        graph.add_grid_edges(nodes, weights, structure, symmetric=True)
    pair = cut.unary.reshape(*cut.shape, 2)
    graph.add_grid_tedges(nodes, pair[..., 1], pair[..., 0])
    value = graph.maxflow()
    graph.get_grid_segments(nodes)
    return value
