"""The exact path: one sort of 32-bit keys for all sets, one launch before it and one or two after."""

from __future__ import annotations

import struct
from typing import Any

import torch

from setwise.torch._cuda._driver import Kernel, kernel, workspaces
from setwise.torch._cuda._types import LABELS, SCORES, void_label

_HINGE = struct.Struct("<5Q3qi4x")
_SOFTMAX = struct.Struct("<6Q7q")
_SORTED = struct.Struct("<13Q4q3d2i")
_WINDOWS = 512
_WINDOW_BYTES = 4 * _WINDOWS + 4 * _WINDOWS + 8 * _WINDOWS + 8 * 8192  # struct Windows
_CACHED = 6 << 20  # elements of a gradient that a cache takes as a whole


def _along_sorted(
    keys: torch.Tensor,
    found: torch.Tensor,
    found_tiles: int,
    weights: torch.Tensor | None,
    present: bool,
    gradient: torch.Tensor,
    ratio: tuple[float, float, float],
    program: Kernel,
    windows: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values of the sets and their sum; writes the slopes of the errors to ``gradient``."""
    (rows, n), device = keys.shape, keys.device
    keys, order = torch.sort(keys, dim=1, descending=True)
    shift = max(18, (rows * n - 1).bit_length() - 9)
    size = -(-rows * n >> shift) << shift if windows else 0
    dealt = torch.empty(size, dtype=torch.int64, device=device)
    values = torch.empty(rows + 1, dtype=torch.float32, device=device)
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    slots = rows + program.blocks
    zero, scratch = workspaces(device, stream, 4 * _WINDOWS + 8, 12 * slots + 4 * rows)
    values_at, zero_at, scratch_at = values.data_ptr(), zero.data_ptr(), scratch.data_ptr()
    program.launch(
        _SORTED.pack(
            keys.data_ptr(),
            order.data_ptr(),
            found.data_ptr(),
            0 if weights is None else weights.data_ptr(),
            gradient.data_ptr(),
            values_at,
            values_at + 4 * rows,
            dealt.data_ptr(),
            scratch_at + 8 * slots,
            scratch_at,
            scratch_at + 12 * slots,
            zero_at,
            zero_at + 4 * _WINDOWS,
            rows,
            n,
            1 if weights is None else len(weights),
            found_tiles,
            *ratio,
            present,
            shift,
        ),
        stream,
    )
    return values[:rows], values[rows]


def _after(elements: int, device: int) -> tuple[Kernel | None, bool]:
    """The kernel that runs after the sort, and whether it deals its elements to windows."""
    windows = elements > _CACHED
    macros = (("PARTITION", int(windows)),)
    return kernel(("sorted.cu",), "sorted", macros, _WINDOW_BYTES * windows, device), windows


def hinge_of_sort(
    scores: torch.Tensor, target: torch.Tensor, ignore: float, a: float, c: float, d: float
) -> Any:
    """Values (S,) and gradient (S, n) of the Lovász hinge of l(n, q) = (a n + q) / (c m - d n + q)."""
    (rows, n), device = scores.shape, scores.device
    if scores.dtype not in SCORES or target.dtype not in LABELS:
        return NotImplemented
    if not 0 < rows * n < 2**32 or n >= 2**31:
        return NotImplemented
    void = void_label(ignore, target.dtype)
    macros = (
        ("SCORE", SCORES[scores.dtype]),
        ("LABEL", LABELS[target.dtype]),
        ("HAS_IGNORE", int(void is not None)),
    )
    before = kernel(("sort_hinge.cu",), "keys", macros, 0, device.index)
    after, windows = _after(rows * n, device.index)
    if before is None or after is None:
        return NotImplemented
    keys = torch.empty_like(scores, dtype=torch.int32)
    gradient = torch.empty_like(scores, dtype=torch.float32)
    found = torch.empty(rows + before.blocks, dtype=torch.int32, device=device)
    scores_at, target_at = scores.data_ptr(), target.data_ptr()
    aligned = (
        (rows == 1 or n % 4 == 0)
        and scores_at % 16 == 0
        and target_at % min(16, 4 * target.element_size()) == 0
    )
    before.launch(
        _HINGE.pack(
            scores_at,
            target_at,
            keys.data_ptr(),
            gradient.data_ptr(),
            found.data_ptr(),
            rows,
            n,
            void or 0,
            aligned,
        ),
        torch._C._cuda_getCurrentRawStream(device.index),
    )
    values, _ = _along_sorted(
        keys, found, -(-n // 4096), None, False, gradient, (a, c, d), after, windows
    )
    return values, gradient


def softmax_of_sort(
    logits: torch.Tensor,
    target: torch.Tensor,
    ignore: int | None,
    weights: torch.Tensor,
    present: bool,
    per_image: bool,
    a: float,
    c: float,
    d: float,
    from_logits: bool,
) -> Any:
    """Total () and gradient of the Lovász softmax loss; ``weights`` (C,) float64, 0 for none."""
    (images, classes, pixels), device = logits.shape, logits.device
    groups = images if per_image else 1
    if logits.dtype not in SCORES or target.dtype not in LABELS or target.is_floating_point():
        return NotImplemented
    if not 0 < logits.numel() < 2**32 or images // groups * pixels >= 2**31 or classes > 4096:
        return NotImplemented
    void = void_label(ignore, target.dtype)
    macros = (
        ("SCORE", SCORES[logits.dtype]),
        ("LABEL", LABELS[target.dtype]),
        ("CLASSES", classes),
        ("FROM_LOGITS", int(from_logits)),
        ("HAS_IGNORE", int(void is not None)),
    )
    files = ("pixels.cuh", "sort_softmax.cu")
    before = kernel(files, "keys", macros, 0, device.index)
    finish = kernel(files, "gradient", macros, 0, device.index)
    after, windows = _after(logits.numel(), device.index)
    if before is None or after is None or finish is None:
        return NotImplemented
    shape = (groups * classes, images // groups * pixels)
    keys = torch.empty(shape, dtype=torch.int32, device=device)
    slopes = torch.empty(shape, dtype=torch.float32, device=device)
    gradient = torch.empty_strided(logits.shape, logits.stride(), dtype=torch.float32, device=device)
    found = torch.empty((groups + before.blocks) * classes, dtype=torch.int32, device=device)
    arguments = _SOFTMAX.pack(
        logits.data_ptr(),
        target.data_ptr(),
        keys.data_ptr(),
        slopes.data_ptr(),
        found.data_ptr(),
        gradient.data_ptr(),
        images,
        pixels,
        groups,
        void or 0,
        *logits.stride(),
    )
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    before.launch(arguments, stream)
    found_tiles = images // groups * -(-pixels // 1024)
    _, total = _along_sorted(
        keys, found, found_tiles, weights, present, slopes, (a, c, d), after, windows
    )
    finish.launch(arguments, stream)
    return total, gradient
