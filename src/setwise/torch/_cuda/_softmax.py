"""The Lovász softmax loss by counting the errors of all classes in buckets, in one launch."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import torch

from setwise.torch._cuda._driver import LABELS, SCORES, kernel, workspaces
from setwise.torch._inputs._labels import void_label

_ARGUMENTS = struct.Struct("<11Q7q3d")
# The bytes of shared memory for counters, below the limit of 227 kB per block of devices with
# compute capability 9.0.
_SHARED = 200_000
_MOST_COUNTERS = 1 << 25  # the most counters of all sets, which take 256 MiB


@cache
def _which_count(classes: tuple[int, ...], number: int, device: torch.device) -> torch.Tensor:
    """Return 1 for each class that occurs or is listed, and 0 for the others."""
    which = [float(not classes or c in classes) for c in range(number)]
    return torch.tensor(which, dtype=torch.float64, device=device)


def weights_of(
    classes: list[int], weight: torch.Tensor | None, number: int, device: torch.device
) -> torch.Tensor:
    """Return the weights of the classes, (C,) float64: 0 for a class that does not count."""
    which = _which_count(tuple(classes), number, device)
    return which if weight is None else which * weight


def softmax_of_buckets(
    logits: torch.Tensor,
    target: torch.Tensor,
    ignore: int | None,
    weights: torch.Tensor,
    present: bool,
    per_image: bool,
    a: float,
    c: float,
    d: float,
    buckets: int,
    from_logits: bool,
) -> Any:
    """Return the total and the gradient of the Lovász softmax loss of a ratio of counts.

    The loss is l(n, q) = (a n + q) / (c m - d n + q). The buckets divide [0, 1] evenly. The total
    is below the exact one by at most the mean of l(V) over the sets divided by the number of
    buckets.
    """
    images, number, pixels = logits.shape
    groups = images if per_image else 1
    fits = groups * number * buckets <= _MOST_COUNTERS and 4 * buckets <= _SHARED
    if logits.dtype not in SCORES or target.dtype not in LABELS or target.is_floating_point():
        return NotImplemented
    if not fits or not logits.numel() or images * pixels >= 2**32:
        return NotImplemented
    at_once = min(number, _SHARED // (4 * buckets))
    class_groups = -(-number // at_once)
    columns = -(-number // class_groups)
    void = void_label(ignore, target.dtype)
    macros = (
        ("SCORE", SCORES[logits.dtype]),
        ("LABEL", LABELS[target.dtype]),
        ("CLASSES", number),
        ("CLASS_GROUPS", class_groups),
        ("BUCKETS", buckets),
        ("FROM_LOGITS", int(from_logits)),
        ("PRESENT", int(present)),
        ("HAS_IGNORE", int(void is not None)),
    )
    device = logits.device
    program = kernel(
        ("pixels.cuh", "softmax.cu"), "softmax", macros, 4 * columns * buckets, device.index
    )
    if program is None:
        return NotImplemented
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    counts = 8 * groups * number * buckets
    totals = 4 * groups * (number + 1)
    zero, scratch = workspaces(device, stream, counts + totals + 8, counts + 8 * program.blocks)
    gradient = torch.empty_strided(
        logits.shape, logits.stride(), dtype=torch.float32, device=device
    )
    total = torch.empty((), dtype=torch.float32, device=device)
    normalizer = torch.empty(
        2 * images * pixels if from_logits else 0, dtype=torch.float32, device=device
    )
    zero_at, scratch_at = zero.data_ptr(), scratch.data_ptr()
    program.launch(
        _ARGUMENTS.pack(
            logits.data_ptr(),
            target.data_ptr(),
            gradient.data_ptr(),
            total.data_ptr(),
            normalizer.data_ptr(),
            weights.data_ptr(),
            zero_at,
            zero_at + counts,
            scratch_at,
            scratch_at + counts,
            zero_at + counts + totals,
            images,
            pixels,
            groups,
            void or 0,
            *logits.stride(),
            a,
            c,
            d,
        ),
        stream,
    )
    return total, gradient
