"""The Lovász hinge of segmentation-models-pytorch, without the rest of the package."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types

import torch


def smp_lovasz_loss() -> torch.nn.Module:
    """Return the loss of segmentation-models-pytorch, whose package needs torchvision.

    An empty module with the package's path replaces the package, so that only ``losses`` is
    imported.
    """
    spec = importlib.util.find_spec("segmentation_models_pytorch")
    if spec is None or spec.submodule_search_locations is None:
        sys.exit("segmentation-models-pytorch is not installed: see `make bench`")
    package = types.ModuleType(spec.name)
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules[spec.name] = package
    losses = importlib.import_module(f"{spec.name}.losses")
    return losses.LovaszLoss("binary", per_image=False)
