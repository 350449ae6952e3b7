"""The truth of a batch: a label, or degrees of labels, at each pixel that counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setwise.torch._fields._layer import Call
from setwise.torch._fields._read import Batch
from setwise.torch._fields._regions import layer_prices
from setwise.torch._fields._values import check_all
from setwise.torch._inputs._class_targets import check_degrees
from setwise.torch._inputs._labels import check_classes, comparable, voids
from setwise.torch._inputs._sets import check_input

_EPS = 2.0**-52
_OF_HALVES = 0.01  # by how much degrees in half precision may miss 1; they are scaled to it


class Truth(NamedTuple):
    """Degrees (B, L, N) in float64, 0 where a pixel is void, and which pixels (B, N) count."""

    degrees: Tensor
    counts: Tensor


class Energy(NamedTuple):
    """Energies (B,), and what rounding may have taken from them."""

    value: Tensor
    rounding: Tensor


def read_truth(
    logits: Tensor, target: Any, batch: Batch, ignore: int | None, *, soft: bool
) -> Truth:
    """Labels in the shape of the pixels, or soft ones, floats in the shape of the logits."""
    check_input(logits, target)
    if target.is_floating_point() and not soft:
        raise TypeError(f"target must hold integers for a hinge, got {target.dtype}")
    n_labels = batch.logits.shape[1]
    if target.is_floating_point() and tuple(target.shape) == batch.shape:
        degrees = batch.flat(target).double()
        void = voids(degrees, ignore)
        check_degrees(degrees, void)
        counts = torch.ones_like(degrees[:, 0], dtype=torch.bool) if void is None else ~void.any(1)
        sums = degrees.sum(1)
        whole = ((sums - 1).abs() <= _OF_HALVES) | ~counts
        check_all(whole, "target must hold degrees whose sum over the labels is 1", sums)
        # else the loss would move with what a pixel's logits have in common
        shares = degrees / torch.where(counts, sums, 1.0)[:, None]
        return Truth(torch.where(counts[:, None], shares, 0.0), counts)
    if tuple(target.shape) != batch.label_shape or target.is_floating_point():
        raise ValueError(
            f"target must hold labels of shape {batch.label_shape}, or floats in the shape of the "
            f"logits, {batch.shape}, got {target.dtype} of shape {tuple(target.shape)}"
        )
    labels = batch.flat_labels(comparable(target))
    check_classes(labels, n_labels, ignore)
    void = voids(labels, ignore)
    counts = torch.ones_like(labels, dtype=torch.bool) if void is None else ~void
    return Truth(one_hot(torch.where(counts, labels.long(), -1), n_labels), counts)


def one_hot(labels: Tensor, n_labels: int) -> Tensor:
    """(B, L, N) in float64: all 0 where a label is negative."""
    every = torch.arange(n_labels, device=labels.device)
    return (labels[:, None, :] == every[:, None]).double()


def without_void(call: Call, counts: Tensor) -> Call:
    """The same fields without void pixels: what is left of them costs log L each."""
    graph, batch = call.problem.graph, call.batch
    tails, heads, _ = graph.indices(counts.device)
    kept = graph.to_slots((counts[:, tails] & counts[:, heads]).to(call.weights.dtype))
    return Call(
        replace(batch, logits=torch.where(counts[:, None], batch.logits, 0.0)),
        call.weights * kept,
        call.region_weights,
        replace(call.problem, regions=torch.where(counts[:, None], call.problem.regions, -1)),
    )


def energy_of(call: Call, degrees: Tensor) -> Energy:
    """Minus the logits, and the Lovász extension of pairs and regions, at labels (B, L, N)."""
    logits, graph, problem = call.batch.logits.double(), call.problem.graph, call.problem
    chosen = torch.where(degrees > 0, logits * degrees, 0.0)
    tails, heads, _ = graph.indices(logits.device)
    differ = (degrees[:, :, tails] - degrees[:, :, heads]).abs().sum(1) / 2
    pairs = graph.of_edges(call.weights).double() * differ
    prices = layer_prices(degrees, problem.regions, problem.alphas, problem.n_regions)
    layers = call.region_weights.double() * prices
    parts = [part.flatten(1) for part in (-chosen, pairs, layers)]
    value = torch.stack([part.sum(1) for part in parts]).sum(0)
    size = torch.stack([part.detach().abs().sum(1) for part in parts]).sum(0)
    return Energy(value, 64.0 * _EPS * torch.where(size < torch.inf, size, 0.0))  # inf is exact


def reduced(values: Tensor, counts: Tensor, reduction: str) -> Tensor:
    """Values (B,) as asked for: a mean is over the pixels that count."""
    if reduction == "none":
        return values
    total = values.sum()
    return total / counts.sum().clamp(min=1) if reduction == "mean" else total


def rounded(bound: Tensor, dtype: torch.dtype, way: float) -> Tensor:
    """A bound in another type, no nearer than it was: ``way`` is inf for upper ones, -inf else."""
    near = bound.to(dtype)
    beyond = torch.nextafter(near, torch.full_like(near, way))
    return torch.where((bound - near) * way > 0, beyond, near)
