"""Checks of the arguments of the layers, and their conversion for the solvers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise._foundation._arguments import did_you_mean
from setwise.torch._fields._graph import Directions, Graph, edge_graph, grid_graph
from setwise.torch._inputs._sets import FLOATS, HALVES, INTEGERS, check_dense

METHODS = ("projection", "trees")


def as_real(value: object, name: str, *, positive: bool = False) -> float:
    """Return a number after checking that it is finite and not negative."""
    if isinstance(value, Tensor) and value.ndim == 0 and not value.requires_grad:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        least = "positive" if positive else "at least 0"
        raise ValueError(f"{name} must be {least} and finite, got {number:g}")
    return number


def as_reals(value: object, name: str) -> list[float]:
    """Return a list of nonnegative numbers, given as one number or several."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [as_real(item, name) for item in value]
    return [as_real(value, name)]


def as_passes(value: object) -> int | None:
    """Return the maximum number of passes, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"max_iter must be an integer or None, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"max_iter must be at least 1, got {value}")
    return int(value)


def check_word(value: object, name: str, words: tuple[str, ...]) -> str:
    """Check that ``value`` is one of ``words``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    if value not in words:
        near = did_you_mean(value, words)
        raise ValueError(f"{name} must be one of {', '.join(words)}, got {value!r}{near}")
    return value


def check_tensor(value: Any, name: str, like: Tensor | None = None) -> Tensor:
    """Check that ``value`` is a dense tensor of a floating dtype on the device of the logits."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    check_dense(name, value)
    if value.dtype not in FLOATS:
        raise TypeError(f"{name} must be float16, bfloat16, float32 or float64, got {value.dtype}")
    check_place(value, name, like)
    return value


def check_place(value: Tensor, name: str, like: Tensor | None) -> None:
    """Check that ``value`` is on the device of the logits."""
    if like is not None and value.device != like.device:
        raise ValueError(
            f"{name} must be on the device of logits, {like.device}, got {value.device}"
        )


def check_all(good: Tensor, message: str, value: Tensor) -> None:
    """Raise a ``ValueError`` if an entry is bad; devices other than the CPU assert it instead."""
    if good.device.type != "cpu":
        torch._assert_async(good.all(), message)
    elif not bool(good.all()):
        raise ValueError(f"{message}, got {value[~good].flatten()[0].item():g}")


@dataclass(frozen=True, eq=False)
class Batch:
    """The logits (B, L, N) in float32 or float64, with the shape in which they were given."""

    logits: Tensor
    graph: Graph
    shape: tuple[int, ...]
    """The shape of the logits as they were given."""

    def in_shape(self, values: Tensor) -> Tensor:
        """Return values (B, L, N) in the shape of the given logits."""
        return values[0].T if self.graph.sides is None else values.view(self.shape)

    def labels_in_shape(self, values: Tensor) -> Tensor:
        """Return labels (B, N) in the shape of the given logits without the axis of labels."""
        return values[0] if self.graph.sides is None else values.view(self.label_shape)

    @property
    def label_shape(self) -> tuple[int, ...]:
        """The shape of one label per pixel."""
        if self.graph.sides is None:
            return self.shape[:1]
        return (self.shape[0], *self.shape[2:])

    def flat_labels(self, values: Tensor) -> Tensor:
        """Return labels of shape ``label_shape`` as (B, N)."""
        return values.reshape(len(self.logits), self.graph.n)

    def flat(self, values: Tensor) -> Tensor:
        """Return values that have the shape of the given logits, as (B, L, N)."""
        return values.T[None] if self.graph.sides is None else values.flatten(2)


def read_logits(logits: Any, edges: Any, connectivity: int | Directions | None) -> Batch:
    """Read logits (B, L, sides...), or (N, L) with edges."""
    check_tensor(logits, "logits")
    if logits.is_meta:
        raise ValueError("logits must hold numbers, got a tensor on the meta device")
    shape = tuple(logits.shape)
    if edges is None:
        if len(shape) < 3:
            raise ValueError(
                "logits must have shape (B, L, H, W) or (B, L, D, H, W), or (N, L) with edges, "
                f"got {shape}"
            )
        graph, flat = grid_graph(shape[2:], connectivity), logits.flatten(2)
    else:
        if len(shape) != 2:
            raise ValueError(f"logits must have shape (N, L) where edges are given, got {shape}")
        graph, flat = edge_graph(edges, shape[0]), logits.T[None]
    if flat.shape[1] == 0:
        raise ValueError(f"logits must have a label at least, got shape {shape}")
    if flat.dtype in HALVES:
        flat = flat.float()
    return Batch(flat, graph, shape)


def check_logits(logits: Tensor) -> None:
    """Check that the largest logit (B, L, N) of every pixel is finite."""
    highest = logits.detach().amax(1)  # NaN if one of the labels is NaN
    message = "logits must be numbers, or -inf for some of a pixel's labels"
    check_all(torch.isfinite(highest), message, highest)


def read_weights(
    strength: Tensor, batch: Batch, weights: Any, image: Any, beta: float | None
) -> Tensor:
    """Return weights (B, K, M): strength times edge weights times the contrast of an image."""
    graph, logits = batch.graph, batch.logits
    size = (len(logits), *graph.slots)
    out = strength.to(logits)
    if weights is not None:
        check_tensor(weights, "weights", logits)
        if graph.sides is None:
            wanted: tuple[int, ...] = (graph.slots[1],)
        else:
            wanted = (len(logits), graph.slots[0], *graph.sides)
        if tuple(weights.shape) != wanted:
            raise ValueError(
                "weights must have one entry for each edge (of a grid: image, direction and "
                f"pixel), shape {wanted}, got {tuple(weights.shape)}"
            )
        given = weights.reshape(size).to(logits.dtype)
        counted = graph.of_edges(given).detach()
        good = (counted >= 0) & (counted < torch.inf)
        check_all(good, "weights must be finite and not negative", counted)
        inside = graph.to_slots(torch.ones_like(counted)) > 0
        out = out * torch.where(inside, given, 0.0)
    if image is not None:
        out = out * graph.to_slots(contrast(batch, image, beta))
    return out.expand(size)


def contrast(batch: Batch, image: Any, beta: float | None) -> Tensor:
    r"""Return the contrast (B, E) :math:`\exp(-\beta \|I_i - I_j\|^2)` of an image."""
    graph, logits = batch.graph, batch.logits
    if not isinstance(image, Tensor):
        raise TypeError(f"image must be a tensor, got {type(image).__name__}")
    check_place(image, "image", logits)
    if image.is_complex():
        raise TypeError(f"image must hold real numbers, got {image.dtype}")
    shape, sides = tuple(image.shape), graph.sides
    if sides is None:
        good, pixels = (
            len(shape) == 2 and shape[0] == graph.n,
            image.T[None] if image.ndim == 2 else image,
        )
        wanted = f"({graph.n}, channels)"
    else:
        good = (
            shape[:1] == (len(logits),)
            and shape[-len(sides) :] == sides
            and len(shape) in (len(sides) + 1, len(sides) + 2)
        )
        channels = shape[1] if len(shape) == len(sides) + 2 else 1
        pixels = image.reshape(len(logits), channels, graph.n) if good else image
        wanted = f"({len(logits)}, channels, {', '.join(map(str, sides))})"
    if not good:
        raise ValueError(f"image must have shape {wanted}, got {shape}")
    pixels = pixels.to(logits.dtype)
    check_all(torch.isfinite(pixels.detach()), "image must be finite", pixels.detach())
    tails, heads, _ = graph.indices(logits.device)
    change = pixels[:, :, tails] - pixels[:, :, heads]
    if beta is not None:
        return torch.exp(-beta * change.square().sum(1))
    if change.numel():  # scaled so that squares do not overflow
        largest = change.detach().abs().amax((1, 2), keepdim=True)
        change = change / torch.where(largest > 0, largest, 1.0)
    change = change.square().sum(1)
    mean = change.mean(1, keepdim=True)
    return torch.exp(-change / (2 * torch.where(mean > 0, mean, 1.0)))


def read_regions(regions: Any, batch: Batch, *, weighted: bool) -> tuple[Tensor, int]:
    """Return the numbers (B, K, N) of the regions, -1 for none, and one more than the largest.

    Numbers that exceed the number of pixels are replaced by consecutive ones, unless they index
    weights (``weighted``).
    """
    logits = batch.logits
    if regions is None:
        layers: list[Any] = []
    else:
        layers = list(regions) if isinstance(regions, Sequence) else [regions]
    flat = []
    for layer in layers:
        if not isinstance(layer, Tensor):
            raise TypeError(f"regions must be tensors, got {type(layer).__name__}")
        if layer.dtype not in INTEGERS:
            raise TypeError(f"regions must hold integers, got {layer.dtype}")
        check_place(layer, "regions", logits)
        if tuple(layer.shape) != batch.label_shape:
            raise ValueError(
                f"regions must have shape {batch.label_shape}, one number per pixel, "
                f"got {tuple(layer.shape)}"
            )
        numbers = batch.flat_labels(layer).long()
        check_all(numbers >= -1, "regions must be numbered from 0, or -1 for none", numbers)
        flat.append(numbers)
    if not flat:
        none = logits.new_empty(len(logits), 0, batch.graph.n, dtype=torch.int64)
        return none, 0
    stacked = torch.stack(flat, 1)
    n_regions = int(stacked.max()) + 1 if stacked.numel() else 0
    if n_regions > stacked.numel() and not weighted:
        numbers, stacked = torch.unique(stacked, return_inverse=True)
        stacked = stacked - (numbers[0] < 0).long()
        n_regions = len(numbers)
    return stacked, n_regions


def read_region_weights(
    strength: Tensor, batch: Batch, n_layers: int, n_regions: int, weights: Any
) -> tuple[Tensor, int]:
    """Return weights (B, K, R), strengths (1,) or (K,) times region weights, and R."""
    logits = batch.logits
    if len(strength) not in (1, n_layers):
        raise ValueError(
            f"regions must be {len(strength)} layers, one for each region_weight, got {n_layers}"
        )
    out = strength.to(logits).view(1, -1, 1)
    if weights is not None:
        check_tensor(weights, "region_weights", logits)
        shape = tuple(weights.shape)
        if len(shape) != 3 or shape[:2] != (len(logits), n_layers) or shape[2] < n_regions:
            raise ValueError(
                "region_weights must have one entry for each image, layer and region, shape "
                f"{(len(logits), n_layers, n_regions)}, got {shape}"
            )
        values = weights.detach()
        good = (values >= 0) & (values < torch.inf)
        check_all(good, "region_weights must be finite and not negative", values)
        out, n_regions = out * weights.to(logits.dtype), shape[2]
    return out.expand(len(logits), n_layers, n_regions), n_regions
