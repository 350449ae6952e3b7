"""What the kernels call the types of tensors, and a label that stands for void."""

from __future__ import annotations

import torch

SCORES = {torch.float32: "float", torch.float16: "Half", torch.bfloat16: "Bfloat16"}
LABELS = {
    torch.bool: "unsigned char",
    torch.uint8: "unsigned char",
    torch.int8: "signed char",
    torch.int16: "short",
    torch.int32: "int",
    torch.int64: "long long",
    torch.float32: "float",
    torch.float64: "double",
}


def void_label(ignore: float | None, dtype: torch.dtype) -> int | None:
    """The whole number that marks a void element, or None where no element can be void."""
    if ignore is None or ignore != ignore or ignore != int(ignore):
        return None
    value = int(ignore)
    if dtype == torch.bool:
        return value if value in (0, 1) else None
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return value if limits.min <= value <= limits.max else None
    return value
