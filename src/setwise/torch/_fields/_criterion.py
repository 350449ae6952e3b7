"""The common base of the losses of fields: targets, their energies, and the reduction."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setwise._foundation._base_classes import printed
from setwise.torch._fields._arguments import Batch, check_all
from setwise.torch._fields._layer import Call, FieldLayer, eager
from setwise.torch._fields._problem import layer_prices
from setwise.torch._inputs._class_sets import SLACK
from setwise.torch._inputs._class_targets import check_degrees
from setwise.torch._inputs._labels import check_classes, comparable, voids
from setwise.torch._inputs._sets import check_ignore, check_input, check_reduction

_EPS = torch.finfo(torch.float64).eps


class FieldLoss(NamedTuple):
    r"""A loss, and an interval around the value that it approximates.

    Attributes
    ----------
    loss : tensor
        The value to differentiate.
    lower : tensor
        For a likelihood, a lower bound on :math:`-\log p(y)`; for a hinge, the loss minus its
        rounding error.
    upper : tensor
        For a likelihood, the loss rounded up; for a hinge, no labelling violates the margin by more
        than this.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> found = sw.torch.FieldLikelihoodLoss(bounds=True)(
    ...     torch.zeros(1, 2, 2, 2), torch.zeros(1, 2, 2, dtype=torch.int64)
    ... )
    >>> bool(found.lower <= found.loss), bool(found.slack >= 0)
    (True, True)
    """

    loss: Tensor
    lower: Tensor
    upper: Tensor

    def __repr__(self) -> str:
        return printed(self, self._fields)

    @property
    def slack(self) -> Tensor:
        """The difference ``upper - lower``, which bounds the error of the loss."""
        return self.upper - self.lower


class FieldCriterion(FieldLayer):
    """The base class of the losses of labels under a field."""

    _soft = True  # whether soft labels are allowed

    def __init__(
        self, weight: float, *, ignore_index: int | None, reduction: str, **options: Any
    ) -> None:
        super().__init__(weight, **options)
        check_ignore(ignore_index)
        check_reduction(reduction)
        self.ignore_index, self.reduction = ignore_index, reduction

    @eager
    def forward(
        self,
        logits: Tensor,
        target: Tensor,
        *,
        image: Tensor | None = None,
        regions: Any = None,
        weights: Tensor | None = None,
        region_weights: Tensor | None = None,
        edges: Any = None,
    ) -> Tensor | FieldLoss:
        """Return the loss of logits for labels; other arguments are those of ``FieldMarginals``."""
        call = self._read(logits, image, regions, weights, region_weights, edges)
        truth = read_truth(logits, target, call.batch, self.ignore_index, soft=self._soft)
        found = self._of_images(without_void(call, truth.counts), truth)
        dtype = call.batch.logits.dtype
        wanted = found if self.bounds else found[:1]
        parts = [reduced(part, truth.counts, self.reduction) for part in wanted]
        loss = parts[0].to(dtype)
        if not self.bounds:
            return loss
        return FieldLoss(loss, rounded(parts[1], dtype, -inf), rounded(parts[2], dtype, inf))

    def _of_images(self, call: Call, truth: Truth) -> FieldLoss:
        """Return loss, lower and upper (B,) in float64 of the fields without void pixels.

        The interval is needed only with ``bounds=True``.
        """
        raise NotImplementedError


class Truth(NamedTuple):
    """The degrees (B, L, N) in float64, 0 for void pixels, and the pixels (B, N) that count."""

    degrees: Tensor
    counts: Tensor


class Energy(NamedTuple):
    """The energies (B,) and bounds on their rounding errors."""

    value: Tensor
    rounding: Tensor


def read_truth(
    logits: Tensor, target: Any, batch: Batch, ignore: int | None, *, soft: bool
) -> Truth:
    """Read labels in the shape of the pixels, or soft labels in the shape of the logits."""
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
        # Degrees in half precision are scaled to a sum of 1.
        whole = ((sums - 1).abs() <= SLACK) | ~counts
        check_all(whole, "target must hold degrees whose sum over the labels is 1", sums)
        # Otherwise, adding a constant to all logits of a pixel would change the loss.
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
    """Return the one-hot labels (B, L, N) in float64: all 0 for a negative label."""
    every = torch.arange(n_labels, device=labels.device)
    return (labels[:, None, :] == every[:, None]).double()


def without_void(call: Call, counts: Tensor) -> Call:
    """Return the fields without void pixels, each of which adds log L to log Z."""
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
    """Return the energies of labels (B, L, N): the Lovász extensions of pairs and regions."""
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
    return Energy(
        value, 64.0 * _EPS * torch.where(size < torch.inf, size, 0.0)
    )  # an infinite energy is exact


def reduced(values: Tensor, counts: Tensor, reduction: str) -> Tensor:
    """Reduce the values (B,); the mean is their sum divided by the number of pixels that count."""
    if reduction == "none":
        return values
    total = values.sum()
    return total / counts.sum().clamp(min=1) if reduction == "mean" else total


def rounded(bound: Tensor, dtype: torch.dtype, way: float) -> Tensor:
    """Round a bound to ``dtype`` outwards; ``way`` is inf for upper and -inf for lower bounds."""
    near = bound.to(dtype)
    beyond = torch.nextafter(near, torch.full_like(near, way))
    return torch.where((bound - near) * way > 0, beyond, near)
