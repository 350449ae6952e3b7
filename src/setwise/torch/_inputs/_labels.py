"""The labels of a target: their dtype, the void ones and the positive ones."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C import _functorch

_WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)

MEANT = "target must hold labels in {-1, +1} or {0, 1}, or ignore_index"
NO_MIXTURE = (
    "target must hold labels in {-1, +1} or in {0, 1}, got -1 and 0: "
    "is -1 the label of void elements, to be given as ignore_index?"
)


def asserts(tensor: Tensor) -> bool:
    """Return whether values are checked by an assertion, because Python cannot read them."""
    return tensor.device.type != "cpu" or torch.compiler.is_compiling()


def is_mapped(tensor: Tensor) -> bool:
    """Return whether ``torch.func.vmap`` maps over the tensor, so that no value can be read."""
    if torch.compiler.is_compiling():
        return False
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            return True
        tensor = _functorch.get_unwrapped(tensor)
    return False


def comparable(target: Tensor) -> Tensor:
    """Return the labels in a dtype that torch can compare: large unsigned integers as int64.

    Labels beyond int64 become its largest number, which is not a valid label either.
    """
    if target.dtype not in _WIDE_UNSIGNED:
        return target
    if target.dtype != torch.uint64:
        return target.long()
    signed = target.view(torch.int64)
    return torch.where(signed < 0, torch.iinfo(torch.int64).max, signed)


def void_label(ignore: float | None, dtype: torch.dtype) -> int | None:
    """Return the integer that marks a void element, or None if no element can be void.

    torch wraps a number that the dtype cannot hold: 255 as int8 is -1.
    """
    if ignore is None or ignore != ignore or ignore != int(ignore):
        return None
    value = int(ignore)
    if dtype == torch.bool:
        return value if value in (0, 1) else None
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return value if limits.min <= value <= limits.max else None
    return value


def voids(target: Tensor, ignore: float | None) -> Tensor | None:
    """Return a mask of the void elements; None if no element can be void."""
    label = void_label(ignore, target.dtype)
    return None if label is None else target == label


def read_target(target: Tensor, ignore: float) -> tuple[Tensor, Tensor | None]:
    """Return masks of the positive elements and of those that count; check the labels."""
    target = comparable(target)
    void = voids(target, ignore)
    valid = None if void is None else ~void
    if target.dtype == torch.bool:
        return target if valid is None else target & valid, valid
    check_target(target, valid)
    return target > 0 if valid is None else (target > 0) & valid, valid


def check_target(target: Tensor, valid: Tensor | None) -> None:
    """Check that the labels that count are in {-1, +1} or in {0, 1}.

    A target with both -1 and 0 is refused: one of them probably stands for void. Devices other than
    the CPU assert it, so that the host does not wait.
    """
    minus, zero = target == -1, target == 0
    if not target.dtype.is_signed:  # torch would compare -1 as the largest number
        minus = torch.zeros_like(zero)
    known = (target == 1) | minus | zero
    if valid is not None:
        minus, zero, known = minus & valid, zero & valid, known | ~valid
    if is_mapped(target):
        return
    mixed = minus.any() & zero.any()
    if asserts(target):
        torch._assert_async(known.all(), MEANT)
        torch._assert_async(~mixed, NO_MIXTURE)
        return
    if not bool(known.all()):
        raise ValueError(f"{MEANT}, got {target[~known][0].item()}")
    if bool(mixed):
        raise ValueError(NO_MIXTURE)


def check_classes(target: Tensor, n_classes: int, ignore: int | None) -> None:
    """Check that every label of a ``comparable`` target is a class or the ignored label."""
    if target.numel() == 0 or (target.dtype == torch.bool and n_classes >= 2):
        return
    known = target >= 0
    # torch wraps a number of classes that the dtype cannot hold.
    if target.dtype == torch.bool or n_classes <= torch.iinfo(target.dtype).max:
        known = known & (target < n_classes)
    void = voids(target, ignore)
    if void is not None:
        known = known | void
    message = f"target must hold classes in 0..{n_classes - 1} or ignore_index"
    if is_mapped(target):
        return
    if asserts(target):
        torch._assert_async(known.all(), message)
    elif not bool(known.all()):
        raise ValueError(f"{message}, got {target[~known][0].item()}")
