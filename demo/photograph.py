"""A photograph in six labels: the labelling of least energy, and its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from skimage import color, data, segmentation, transform
from sklearn.cluster import KMeans

from setwise import marginals, solve_map
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields import Field, Potts, RobustPn, contrast_weights, grid_edges
from setwise.inference import MapResult, MarginalsResult

N_LABELS = 6
SIDE, QUICK_SIDE = 192, 64
# The mean number of pixels per superpixel.
SUPERPIXEL = 46
TOL = 1e-3


@dataclass(frozen=True)
class Segmentation:
    """The photograph and the results of inference."""

    image: FloatArray
    """(H, W, 3), between 0 and 1."""
    colors: FloatArray
    """(L, 3): the colour of each label."""
    superpixels: IntArray
    """(H, W)"""
    best: MapResult
    post: MarginalsResult
    flat: MarginalsResult
    """Marginals by projection, which keeps no pairs; their interval around log Z is wider."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.image.shape[0], self.image.shape[1]


def segment(side: int) -> Segmentation:
    """Label scikit-image's astronaut, at ``side`` by ``side`` pixels."""
    image = transform.resize(data.astronaut(), (side, side), anti_aliasing=True)
    lab = color.rgb2lab(image)
    pixels = lab.reshape(-1, 3)
    centers = KMeans(N_LABELS, n_init=3, random_state=0).fit(pixels[::5]).cluster_centers_
    superpixels = segmentation.slic(
        image, side**2 // SUPERPIXEL, compactness=12, start_label=0
    ).astype(np.int64)
    field = make_field(lab, centers, superpixels)
    return Segmentation(
        image,
        np.clip(color.lab2rgb(centers[None])[0], 0, 1),
        superpixels,
        solve_map(field, tol=TOL),
        marginals(field, tol=TOL),
        marginals(field, "projection", tol=TOL),
    )


def make_field(lab: FloatArray, centers: FloatArray, superpixels: IntArray) -> Field:
    """Make a field of colour distances, contrast-weighted neighbours and robust superpixels."""
    unary = ((lab.reshape(-1, 1, 3) - centers) ** 2).sum(axis=2) / 600
    edges = grid_edges(lab.shape[:2])
    neighbors = Potts(edges, 0.8 * contrast_weights(lab, edges))
    sizes = np.bincount(superpixels.ravel())
    regions = RobustPn(superpixels, weight=0.9 * sizes, truncation=0.3, relative=True)
    return Field(unary) + neighbors + regions
