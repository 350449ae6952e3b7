"""The models of the log-supermodular paper's Section 7, as fields over a scene.

A setting is a tuple: (theta, beta_1) of a pairwise model, (alpha, beta_2) of layers of superpixels,
(theta, beta_1, alpha, beta_2) of both, (theta, beta_1, truncation, price) of robust P^n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

import setwise as sw
from experiments.shared.msrc import Scene

Setting = tuple[float, ...]


@dataclass(frozen=True)
class Model:
    """The potentials of a row of Table 1, and the inference method."""

    layers: tuple[int, ...] = ()
    pairwise: bool = False
    robust: bool = False
    method: str = "projection"


MODELS = {
    "UNARY": Model(),
    "PAIR": Model(pairwise=True),
    "BP PAIR": Model(pairwise=True, method="belief_propagation"),
    "MF PAIR": Model(pairwise=True, method="mean_field"),
    "2-LAYER": Model((0, 2)),
    "2-LAYER-PAIR": Model((0, 2), pairwise=True),
    "3-LAYER": Model((0, 1, 2)),
    "ROBUST-PN": Model((0, 1, 2), pairwise=True, robust=True, method="expansion"),
}
# The paper's grids also have theta = 0.01 and beta_1 = 0.1.
THETA, BETA_1 = (0.1, 1.0, 10.0, 100.0), (0.5, 1.0, 5.0)
ALPHA, BETA_2 = (0.8, 0.9), (5.0, 12.5, 25.0, 50.0)  # the paper's beta_2: 25, 37.5, 50, 62.5, 75
TRUNCATION, PRICE = (0.1, 0.3), (0.3, 1.0, 3.0)
ROBUST_POWER = 0.8  # a region of n pixels costs at most price * n ** ROBUST_POWER


def grid(name: str, pairwise: Setting = ()) -> list[Setting]:
    """Return the settings to choose from; ``pairwise`` is the choice made for PAIR."""
    model = MODELS[name]
    if model.robust:
        return [(*pairwise, *rest) for rest in product(TRUNCATION, PRICE)]
    if model.layers:
        own = list(product(ALPHA, BETA_2))
        return [(*pairwise, *rest) for rest in own] if model.pairwise else own
    if name == "PAIR":
        return list(product(THETA, BETA_1))
    return [pairwise] if model.pairwise else [()]


def field_of(scene: Scene, name: str, setting: Setting, step: int = 1) -> sw.fields.Field:
    """Return the energy of a model over a scene that ``coarse`` made ``step`` times smaller.

    The energy per pixel should not depend on the step. Borders shrink with the step and areas with
    its square. Therefore beta_1 is divided by the step, and a concave power a of an area is
    multiplied by the step to the power 2 (a - 1).
    """
    model = MODELS[name]
    field = sw.fields.Field(scene.unary)
    if model.pairwise:
        theta, beta, *setting_ = setting
        edges = sw.fields.grid_edges(scene.shape)
        weights = sw.fields.contrast_weights(scene.image, edges, beta=theta / 255**2)
        field = field + sw.fields.Potts(edges, beta / step * weights)
        setting = tuple(setting_)
    for layer in model.layers:
        regions = scene.regions[layer]
        if model.robust:
            truncation, price = setting
            sizes = np.unique(regions[regions >= 0], return_counts=True)[1]
            weight = price * step ** (2 * (ROBUST_POWER - 1)) * sizes**ROBUST_POWER
            field = field + sw.fields.RobustPn(regions, weight, truncation, relative=True)
        else:
            alpha, beta = setting
            weight = beta * step ** (2 * (alpha - 1))
            field = field + sw.fields.RegionConsistency(regions, weight, alpha)
    return field


def coarse(scene: Scene, step: int) -> Scene:
    """Return the scene with ``step`` x ``step`` pixels merged into one.

    A merged pixel has the means of unaries and colours, and the label and superpixels of the middle
    pixel. Remaining rows and columns are cut off.
    """
    h, w = (size // step for size in scene.shape)

    def means(array: np.ndarray) -> np.ndarray:
        blocks = array[: h * step, : w * step].reshape(h, step, w, step, -1)
        return blocks.mean(axis=(1, 3))

    def middle(array: np.ndarray) -> np.ndarray:
        at = slice(step // 2, None, step)
        return array.reshape(scene.shape)[at, at][:h, :w].ravel()

    return replace(
        scene,
        image=means(scene.image).round().astype(np.uint8),
        truth=middle(scene.truth),
        unary=means(scene.unary.reshape(*scene.shape, -1)).reshape(h * w, -1),
        regions=tuple(middle(layer) for layer in scene.regions),
        trimaps={h: middle(mask) for h, mask in scene.trimaps.items()},
    )


def accuracy(labels: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of the labelled pixels that are right."""
    known = truth >= 0
    return float((labels == truth)[known].mean())


def cross_entropy(log_p: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return -log q of the true label at each pixel, shape (N,).

    This is KL(p || q) if p is 1 for the true label.
    """
    return -log_p[np.arange(len(truth)), truth]


def logarithms(p: np.ndarray) -> np.ndarray:
    """Return log p as float32, shape (N, L); 0 counts as the smallest positive double."""
    return np.log(np.maximum(p, np.finfo(np.float64).tiny, dtype=np.float64)).astype(np.float32)
