"""Tensors of any shape as sets of elements, and the reduction of the values of the sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from setwise._foundation._arguments import did_you_mean

Reduction = Literal["mean", "sum", "none"]

HALVES = (torch.float16, torch.bfloat16)
FLOATS = (*HALVES, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# Devices that compute in float64. Others, such as Apple's MPS, may not support float64, so the host
# computes for them.
DOUBLE_DEVICES = ("cpu", "cuda", "meta")
REALS = (torch.bool, *INTEGERS, torch.uint16, torch.uint32, torch.uint64, *FLOATS)


@dataclass(frozen=True)
class ScoreOptions:
    """The options that all losses of scores share: the sets, and how their values combine."""

    per_image: bool = False
    per_class: bool = False
    ignore_index: int | None = None
    reduction: Reduction = "mean"
    buckets: int | None = None

    def __post_init__(self) -> None:
        check_flags(per_image=self.per_image, per_class=self.per_class)
        check_reduction(self.reduction)
        check_ignore(self.ignore_index)
        check_buckets(self.buckets)

    @property
    def ignore(self) -> float:
        """The label of void elements; NaN for none, which no label equals."""
        return math.nan if self.ignore_index is None else float(self.ignore_index)

    @property
    def counted(self) -> int:
        """The number of buckets; 0 means sorting."""
        return self.buckets or 0


def check_flags(**flags: object) -> None:
    """Check that the flags are booleans."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, got {value!r}")


def check_reduction(reduction: object) -> None:
    """Check that ``reduction`` is "mean", "sum" or "none"."""
    if reduction not in ("mean", "sum", "none"):
        near = did_you_mean(reduction, ("mean", "sum", "none"))
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}{near}")


def check_ignore(ignore_index: object) -> None:
    """Check that ``ignore_index`` is an integer of 64 bits or None."""
    if ignore_index is not None and (
        isinstance(ignore_index, bool) or not isinstance(ignore_index, int)
    ):
        raise TypeError(f"ignore_index must be an integer or None, got {ignore_index!r}")
    if ignore_index is not None and not -(1 << 63) <= ignore_index < 1 << 63:
        raise ValueError(f"ignore_index must fit in 64 bits, got {ignore_index}")


def check_buckets(buckets: object) -> None:
    """Check the number of buckets."""
    if buckets is None:
        return
    if isinstance(buckets, bool) or not isinstance(buckets, int):
        raise TypeError(f"buckets must be an integer or None, got {buckets!r}")
    if not 2 <= buckets <= 1 << 16:
        raise ValueError(f"buckets must lie in 2..65536, got {buckets}")


def check_dense(name: str, tensor: Tensor) -> None:
    """Check that the tensor is neither sparse nor nested."""
    if tensor.layout != torch.strided or tensor.is_nested:
        layout = "a nested one" if tensor.is_nested else str(tensor.layout)
        raise TypeError(f"{name} must be a dense tensor, got {layout}")


def check_input(input: object, target: object) -> None:
    """Check that input is a floating tensor and target a real tensor on the same device."""
    for name, tensor in (("input", input), ("target", target)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(tensor).__name__}")
        check_dense(name, tensor)
    assert isinstance(input, Tensor)
    assert isinstance(target, Tensor)
    if input.dtype not in FLOATS:
        raise TypeError(f"input must be float16, bfloat16, float32 or float64, got {input.dtype}")
    if target.dtype not in REALS:
        raise TypeError(f"target must hold booleans, integers or floats, got {target.dtype}")
    if target.requires_grad:
        raise ValueError("target must not require grad: it holds labels, got one that does")
    if input.device != target.device:
        raise ValueError(
            f"target must be on the device of input, {input.device}, got {target.device}"
        )


def same_shape(input: Tensor, target: Tensor) -> Tensor:
    """Return the target in the shape of the input; insert a missing channel dimension of 1."""
    if target.shape == input.shape:
        return target
    if input.ndim == target.ndim + 1 and input.ndim > 1 and input.shape[1] == 1:
        target = target.unsqueeze(1)
        if target.shape == input.shape:
            return target
    raise ValueError(
        f"target must have the shape of input, {tuple(input.shape)}, got {tuple(target.shape)}"
    )


def as_rows(tensor: Tensor, options: ScoreOptions) -> Tensor:
    """Return the sets as contiguous rows (S, n)."""
    if options.per_class and tensor.ndim < 2:
        raise ValueError(
            f"input must have a dimension of classes for per_class, got shape {tuple(tensor.shape)}"
        )
    if options.per_image and tensor.ndim < 1:
        raise ValueError("input must have a dimension of images for per_image, got a scalar")
    if options.per_class and options.per_image:
        rows = tensor.flatten(0, 1)
    elif options.per_class:
        rows = tensor.transpose(0, 1)
    elif options.per_image:
        rows = tensor
    else:
        rows = tensor.unsqueeze(0)
    n = math.prod(rows.shape[1:])
    return rows.reshape(rows.shape[0], n).contiguous()


def reduced(
    values: Tensor, shape: torch.Size, weight: Tensor | None, options: ScoreOptions
) -> Tensor:
    """Reduce the values (S,) of the sets; with class weights the mean is weighted."""
    if not options.per_image and not options.per_class:
        return values.reshape(())
    if weight is not None:
        scales = weight.double().repeat(shape[0] if options.per_image else 1)
        if options.reduction == "mean":  # weights of 0 give a mean of 0
            total = scales.sum()
            scales = scales / torch.where(total > 0, total, 1.0)
        values = values * scales.to(values.dtype)
    if options.reduction == "none":
        both = options.per_image and options.per_class
        return values.view(shape[:2]) if both else values
    if options.reduction == "sum" or weight is not None:
        return values.sum()
    return values.sum() / max(len(values), 1)


def check_per_class(weight: object, options: ScoreOptions) -> None:
    """Check that class weights come with ``per_class``."""
    if weight is not None and not options.per_class:
        raise ValueError("weight must be None unless per_class=True: it weighs the sets of classes")


def fitting(weight: Tensor | None, shape: torch.Size) -> None:
    """Check that there is a weight for each class."""
    if weight is not None and (len(shape) < 2 or len(weight) != shape[1]):
        raise ValueError(
            f"weight must have one entry for each of the classes in dimension 1 of input, shape "
            f"{tuple(shape)}, got {len(weight)}"
        )
