"""Tensors on the CPU through the compiled kernels, without a copy where that can be."""

from __future__ import annotations

import math
from functools import cache
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

from setwise.functions import _kernels
from setwise.losses import ConcaveLoss, Hamming, Loss, SumLoss
from setwise.losses._cardinality import OfCardinality
from setwise.losses._counts import OfCounts
from setwise.losses._labels import Labels
from setwise.surrogates import (
    DecomposedHinge,
    LovaszHinge,
    MarginRescaling,
    SlackRescaling,
    Surrogate,
)
from setwise.surrogates._rows import Rows
from setwise.torch._plain import Answer, read_target


@cache
def is_compiled() -> bool:
    """Whether the kernels are there; `setwise.torch` runs without them."""
    try:
        return find_spec("setwise._core") is not None and find_spec("scipy") is not None
    except ImportError:
        return False


@cache
def surrogate_of(kind: str, loss: Loss, scale: float) -> Surrogate:
    """The surrogate of NumPy arrays that a word stands for."""
    if kind == "lovasz":
        return LovaszHinge(loss)
    if kind == "decomposed":
        return DecomposedHinge(loss)
    if kind == "slack":
        return SlackRescaling(loss)
    return MarginRescaling(loss, scale=scale)


def is_symmetric(loss: Loss) -> bool:
    """Whether elements of one label may change places, so that void ones may be left out."""
    if isinstance(loss, SumLoss):
        return all(is_symmetric(term) for term in loss.terms)
    if isinstance(loss, ConcaveLoss | Hamming):
        return loss.weights is None
    return isinstance(loss, OfCardinality | OfCounts)


def hinge(surrogate: Surrogate, scores: Tensor, target: Tensor, ignore: float) -> Answer | None:
    """Values and gradient of S sets; None where void elements cannot be left out."""
    wide = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    flat = wide.reshape(-1).numpy()
    positive, valid = read_target(target, ignore)
    marks = positive.contiguous().view(torch.uint8).reshape(-1).numpy()
    sizes = np.full(len(scores), scores.shape[1], np.int64)
    kept = None
    if valid is not None and not bool(valid.all()):
        if not is_symmetric(surrogate.loss):
            return None
        kept = valid.reshape(-1).numpy()
        flat, marks = flat[kept], marks[kept]
        sizes = valid.sum(1).numpy()
    if not _kernels.all_finite(flat):
        return None
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    labels = Labels(marks, offsets, "rows" if kept is None else "ragged", marks.shape)
    if kept is None:
        labels = Labels(marks, offsets, "rows", (len(sizes), scores.shape[1]))
    values, gradient = surrogate._evaluate(Rows(labels, flat))
    if kept is not None:
        gradient, short = np.zeros(len(kept), flat.dtype), gradient
        gradient[kept] = short
    return (
        torch.from_numpy(values).to(wide.dtype),
        torch.from_numpy(gradient).view(scores.shape),
    )


def classes(*arguments: object) -> Answer | None:
    return None
