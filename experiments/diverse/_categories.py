"""MSRC-21 as fields of superpixels: mean unaries, and contrast-sensitive Potts edges."""

from __future__ import annotations

import setwise as sw
from experiments.diverse._list_scores import Case
from experiments.shared.msrc import scene
from experiments.shared.regions import contrast_edges, region_means, superpixels

SUPERPIXELS = 600  # the requested number; about 410 result
SMOOTHING = 0.8  # weight of the Potts edges


def categories(name: str) -> Case:
    """Return the field of a validation image: each superpixel has the mean of -log p."""
    view = scene(name)
    regions = superpixels(view.image, SUPERPIXELS)
    unary = region_means(regions, view.unary)
    field = sw.fields.Field(unary) + contrast_edges(view.image, regions, SMOOTHING)
    return Case.of(name, name, view.image, view.truth.reshape(view.shape), regions, field)
