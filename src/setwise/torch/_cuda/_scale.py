"""The backward pass of a loss: its gradient times the incoming slopes."""

from __future__ import annotations

import struct
from typing import Any

import torch

from setwise.torch._cuda._driver import SCORES, kernel

_ARGUMENTS = struct.Struct("<3Q2qi4x")


def scaled(
    gradient: torch.Tensor, slopes: torch.Tensor, dtype: torch.dtype, in_place: bool = False
) -> Any:
    """Return ``gradient[i] * slopes[i]`` in ``dtype``, for one slope per row or one for all.

    The gradient may have any strides without gaps, and the result has the same strides. With
    ``in_place`` the result is the gradient itself if the dtype is the same.
    """
    rows = slopes.numel()
    dense = rows == 1 or gradient.is_contiguous()
    if gradient.dtype != torch.float32 or slopes.dtype != torch.float32 or dtype not in SCORES:
        return NotImplemented
    if not dense or not gradient.numel() or (rows > 1 and rows != len(gradient)):
        return NotImplemented
    device = gradient.device
    program = kernel(
        ("scale.cu",),
        "scale",
        (("SCORE", SCORES[dtype]),),
        0,
        device.index,
        (512, 1),
        together=False,
    )
    if program is None:
        return NotImplemented
    # The slope of a sum is expanded: its stride is 0.
    slopes = slopes.contiguous()
    out = (
        gradient if in_place and dtype == torch.float32 else torch.empty_like(gradient, dtype=dtype)
    )
    n = gradient.numel() // rows
    at = gradient.data_ptr()
    arguments = (
        at,
        slopes.data_ptr(),
        out.data_ptr(),
        rows,
        n,
        at % 16 == 0 and (rows == 1 or n % 4 == 0),
    )
    program.launch(_ARGUMENTS.pack(*arguments), torch._C._cuda_getCurrentRawStream(device.index))
    return out
