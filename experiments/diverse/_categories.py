"""MSRC-21 as fields of superpixels: mean unaries, and contrast-sensitive Potts edges."""

from __future__ import annotations

import setwise as sw
from experiments.diverse._judged_lists import Case
from experiments.shared.msrc import scene
from experiments.shared.regions import mean_colours, region_means, superpixels, touching

SUPERPIXELS = 600  # asked for; about 410 come
SMOOTHING = 0.8  # of the Potts edges


def categories(name: str) -> Case:
    """A validation image: for each superpixel the mean of -log p over its pixels."""
    view = scene(name)
    regions = superpixels(view.image, SUPERPIXELS)
    unary = region_means(regions, view.unary)
    edges, _ = touching(regions)
    contrast = sw.fields.contrast_weights(mean_colours(view.image, regions)[:, None], edges)
    field = sw.fields.Field(unary) + sw.fields.Potts(edges, SMOOTHING * contrast)
    return Case.of(name, name, view.image, view.truth.reshape(view.shape), regions, field)
