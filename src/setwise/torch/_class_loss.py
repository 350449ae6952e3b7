"""The base class and the reduction of all losses of class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from setwise._foundation._arguments import did_you_mean
from setwise.torch._cuda._overlaps import Quotient
from setwise.torch._inputs._averages import mean_of_sets
from setwise.torch._inputs._class_sets import check_probabilities
from setwise.torch._inputs._class_targets import (
    ClassTable,
    is_soft,
    labels_of_one_hot,
    of_classes,
    read_table,
)
from setwise.torch._inputs._module import Module
from setwise.torch._inputs._sets import HALVES, check_flags, check_input
from setwise.torch._inputs._softmax_options import SoftmaxOptions
from setwise.torch._inputs._weights import changed, on_device, read_weight
from setwise.torch._operators._eager import is_transformed
from setwise.torch._operators._gather import gathered
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._operators._overlaps import mean_of_overlaps

Activation = Literal["softmax", "sigmoid", "none"]
OfSets = Callable[[Tensor, ClassTable], Tensor]
"""Maps probabilities (N, K, P) and their table to the values (T, K) of the sets."""


def check_activation(activation: object) -> None:
    """Check that ``activation`` is "softmax", "sigmoid" or "none"."""
    if activation not in ("softmax", "sigmoid", "none"):
        near = did_you_mean(activation, ("softmax", "sigmoid", "none"))
        raise ValueError(
            f"activation must be 'softmax', 'sigmoid' or 'none', got {activation!r}{near}"
        )


def with_classes(input: Tensor, target: Tensor, ignore: int | None) -> tuple[Tensor, Tensor]:
    """Return the input as (N, C, P), and class labels (N, P) or soft labels (N, C, P)."""
    if input.ndim == 0:
        raise ValueError("input must have a dimension of classes, got a scalar")
    if input.ndim == 1:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    soft = is_soft(input, target)
    if not soft:
        if target.ndim == input.ndim and target.shape[1] == 1:
            target = target.squeeze(1)
        elif target.shape == input.shape:
            target = labels_of_one_hot(target, ignore)
        if target.shape != input.shape[:1] + input.shape[2:]:
            raise ValueError(
                f"target must have shape {tuple(input.shape[:1] + input.shape[2:])}, that of input "
                f"without its classes, or that of input for soft labels, got {tuple(target.shape)}"
            )
        if target.is_floating_point():
            raise TypeError(
                "target must hold integers or booleans, or soft labels in the shape of input, "
                f"{tuple(input.shape)}, got {target.dtype} of shape {tuple(target.shape)}"
            )
    n_images, n_classes = input.shape[:2]
    n_pixels = input[:1, :1].numel() if n_images and n_classes else 0
    target = (
        target.reshape(n_images, n_classes, n_pixels)
        if soft
        else target.reshape(n_images, n_pixels)
    )
    return input.reshape(n_images, n_classes, n_pixels), target


def class_weight(weight: Tensor | None, input: Tensor) -> Tensor | None:
    """Return the class weights (C,) on the device of input (N, C, ...)."""
    if weight is not None and weight.shape != input.shape[1:2]:
        raise ValueError(
            f"weight must have shape ({input.shape[1]},), one entry a class, "
            f"got {tuple(weight.shape)}"
        )
    return on_device(weight, input)


def probabilities_of(input: Tensor, activation: Activation) -> Tensor:
    """Return the class probabilities of an input, in float32 or float64."""
    wide = torch.float64 if input.dtype == torch.float64 else torch.float32
    if activation == "softmax":
        return torch.softmax(input, 1, dtype=wide)
    if activation == "sigmoid":
        return torch.sigmoid(input.to(wide))
    p = input.float() if input.dtype in HALVES else input
    if not is_transformed() and not torch.compiler.is_compiling():
        check_probabilities(p)
    return p


def combined(
    values: Tensor, counts: Tensor, weight: Tensor | None, options: SoftmaxOptions
) -> Tensor:
    """Reduce the values (T, K) over the sets that count; ``counts`` is their mask (T, K)."""
    if options.reduction == "mean":
        return mean_of_sets(values, counts, weight, options.average, options.worst)
    values = torch.where(counts, values, 0.0)
    if weight is not None:
        values = values * weight.to(values)
    if options.reduction == "sum":
        return values.sum()
    return values if options.per_image else values.squeeze(0)


def of_probabilities(
    of_sets: OfSets,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    activation: Activation,
    options: SoftmaxOptions,
    quotient: Quotient | None = None,
) -> Tensor:
    """Return the reduced loss of class probabilities. CUDA kernels evaluate a ``quotient``."""
    check_input(input, target)
    if quotient is not None and input.is_cuda:
        again = partial(_in_plain_torch, of_sets, target, weight, activation, options)
        if input.ndim > 1:
            weight = class_weight(weight, input)
        mean = mean_of_overlaps(input, target, weight, activation, options, quotient, again)
        if mean is not None:
            return mean
    return _in_plain_torch(of_sets, target, weight, activation, options, input)


def _in_plain_torch(
    of_sets: OfSets,
    target: Tensor,
    weight: Tensor | None,
    activation: Activation,
    options: SoftmaxOptions,
    input: Tensor,
) -> Tensor:
    if activation == "sigmoid" and target.shape == input.shape and not target.is_floating_point():
        target = target.to(input.dtype if input.dtype not in HALVES else torch.float32)
    input, target = with_classes(input, target, options.ignore_index)
    weight = class_weight(weight, input)
    named = options.named(input.shape[1])
    p = probabilities_of(input, activation)
    table = read_table(p, target, options.ignore_index, named, options.per_image)
    values = of_sets(of_classes(p, named), table)
    counts = table.met() if options.classes == "present" else table.some()
    if weight is not None:
        weight = of_classes(weight[None], named)[0]
    return combined(values, counts, weight, options)


class ClassLoss(Module):
    """The base class of the modules that compute a loss of class probabilities."""

    weight: Tensor | None
    activation: Activation

    def __init__(
        self, activation: Activation, weight: Any, across_ranks: bool, options: SoftmaxOptions
    ) -> None:
        super().__init__()
        check_activation(activation)
        check_flags(across_ranks=across_ranks)
        self.activation, self.options, self.across_ranks = activation, options, across_ranks
        self.register_buffer("weight", read_weight(weight), persistent=False)

    def _of_sets(self, p: Tensor, table: ClassTable) -> Tensor:
        """Return the values (T, K) of the sets for probabilities (N, K, P)."""
        raise NotImplementedError

    def _quotient(self) -> Quotient | None:
        """Return the same loss as a quotient of sums, or None if it is not one."""
        return None

    @compiled_with_operators
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (N, C, ...) for targets (N, ...) or (N, C, ...)."""
        if self.across_ranks:
            input, target = gathered(input), gathered(target)
        return of_probabilities(
            self._of_sets,
            input,
            target,
            self.weight,
            self.activation,
            self.options,
            self._quotient(),
        )

    def extra_repr(self) -> str:
        """Return the options that differ from their defaults."""
        more: dict[str, object] = {"across_ranks": True} if self.across_ranks else {}
        if self.activation != "softmax":
            more["activation"] = self.activation
        return ", ".join(changed(self.options, self.weight, **more))
