"""The labels of a target: in which type they are compared, which are void, which are positive."""

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
    """Whether the values are checked by an assertion: Python does not see them while it runs."""
    return tensor.device.type != "cpu" or torch.compiler.is_compiling()


def is_mapped(tensor: Tensor) -> bool:
    """Whether ``torch.func.vmap`` goes over the tensor: nothing can be asked of its values then."""
    if torch.compiler.is_compiling():
        return False
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            return True
        tensor = _functorch.get_unwrapped(tensor)
    return False


def comparable(target: Tensor) -> Tensor:
    """The labels in a type that torch compares: unsigned integers of 16 bits and more as int64.

    What int64 cannot hold becomes its largest number, which is no label either.
    """
    if target.dtype not in _WIDE_UNSIGNED:
        return target
    if target.dtype != torch.uint64:
        return target.long()
    signed = target.view(torch.int64)
    return torch.where(signed < 0, torch.iinfo(torch.int64).max, signed)


def void_label(ignore: float | None, dtype: torch.dtype) -> int | None:
    """The whole number that marks a void element, or None where no element can be void.

    torch would wrap a number that the type cannot hold: 255 as int8 is -1.
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
    """Which elements are void; None where none can be."""
    label = void_label(ignore, target.dtype)
    return None if label is None else target == label


def read_target(target: Tensor, ignore: float) -> tuple[Tensor, Tensor | None]:
    """Which elements are positive and which count; an error where a label is no label."""
    target = comparable(target)
    void = voids(target, ignore)
    valid = None if void is None else ~void
    if target.dtype == torch.bool:
        return target if valid is None else target & valid, valid
    check_target(target, valid)
    return target > 0 if valid is None else (target > 0) & valid, valid


def check_target(target: Tensor, valid: Tensor | None) -> None:
    """Labels in {-1, +1} or in {0, 1} where they count.

    Both -1 and 0 would be negative: more likely one of them stands for void. On a device that is
    not the host the device asserts it, so that nobody waits.
    """
    minus, zero = target == -1, target == 0
    if not target.dtype.is_signed:  # there, torch takes the largest number for -1
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
    """Every target, comparable, is a class or the ignored label."""
    if target.numel() == 0 or (target.dtype == torch.bool and n_classes >= 2):
        return
    known = target >= 0
    # torch would wrap a number of classes that the type cannot hold.
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
