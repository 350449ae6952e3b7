"""The exact losses on CUDA: one sort of 32-bit keys for all sets, between two other launches."""

from __future__ import annotations

import struct
from typing import Any

import torch

from setwise.torch._cuda._driver import (
    LABELS,
    SCORES,
    THREADS,
    constant,
    kernel,
    shared_memory,
    workspaces,
)
from setwise.torch._inputs._labels import void_label

_HINGE = struct.Struct("<5Q3qi4x")
_SOFTMAX = struct.Struct("<6Q7q")
_SORTED = struct.Struct("<13Q5q3d2q3i4x")
_RADIX = struct.Struct("<8Q3qi4x")
_WINDOWS, _UNIT = constant("sorted.cu", "WINDOWS"), constant("sorted.cu", "UNIT")
# The keys per thread and the blocks per multiprocessor of radix.cu, for which it is compiled.
_ITEMS, _BLOCKS = 12, 2
_TILE = THREADS * _ITEMS
_LEAST = 2048  # the least number of elements per row: with fewer, most of a tile would be empty


def _along_sorted(
    keys: torch.Tensor,
    found: torch.Tensor,
    found_tiles: int,
    found_blocks: int,
    weights: torch.Tensor | None,
    present: bool,
    ratio: tuple[float, float, float],
) -> Any:
    """Return the values of the sets and their sum, and the slopes (R, n). Overwrite the keys."""
    (rows, n), device = keys.shape, keys.device
    size, shared = rows * n, shared_memory(device.index)
    window = _UNIT * -(-size // (_UNIT * _WINDOWS))
    # Each part has as many elements as fit into the shared memory of a block.
    parts = -(-4 * window // shared)
    dealt = torch.empty(window * -(-size // window), dtype=torch.int64, device=device)
    keys, order, live = sorted_rows(keys, dealt)
    macros = (
        ("JACCARD", int(ratio == (1.0, 1.0, 0.0))),
        ("ORDER", "i64" if live is None else "u32"),
    )
    dealing = 16 * _WINDOWS + 8 * 8192  # the bytes of the struct Dealing
    program = kernel(("sorted.cu",), "sorted", macros, max(shared, dealing), device.index)
    if program is None:
        return NotImplemented
    slopes = torch.empty(rows, n, dtype=torch.float32, device=device)
    slots = rows + program.blocks
    counts = torch.empty(4 * slots + rows, dtype=torch.int32, device=device)
    values = torch.empty(rows + 1, dtype=torch.float32, device=device)
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    zero, _ = workspaces(device, stream, 4 * _WINDOWS + 8, 0)
    counts_at, zero_at = counts.data_ptr(), zero.data_ptr()
    program.launch(
        _SORTED.pack(
            keys.data_ptr(),
            order.data_ptr(),
            0 if live is None else live.data_ptr(),
            found.data_ptr(),
            0 if weights is None else weights.data_ptr(),
            slopes.data_ptr(),
            values.data_ptr(),
            dealt.data_ptr(),
            counts_at,
            counts_at + 8 * slots,
            counts_at + 16 * slots,
            zero_at,
            zero_at + 4 * _WINDOWS,
            rows,
            n,
            1 if weights is None else len(weights),
            found_tiles,
            found_blocks,
            *ratio,
            window,
            -(-(_UNIT << 31) // window),
            present,
            parts,
            -(-window // parts),
        ),
        stream,
    )
    return values, slopes


def hinge_of_sort(
    scores: torch.Tensor, target: torch.Tensor, ignore: float, a: float, c: float, d: float
) -> Any:
    """Return values (S,) and gradient (S, n) of the hinge of (a n + q) / (c m - d n + q)."""
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
        ("CHECKED", int(target.dtype != torch.bool)),
    )
    before = kernel(("sort_hinge.cu",), "keys", macros, 0, device.index, together=False)
    if before is None:
        return NotImplemented
    keys = torch.empty_like(scores, dtype=torch.int32)
    found = torch.empty(rows + before.blocks, dtype=torch.int32, device=device)
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    zero, _ = workspaces(device, stream, 4 * _WINDOWS + 8, 0)
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
            found.data_ptr(),
            zero.data_ptr(),
            rows,
            n,
            void or 0,
            aligned,
        ),
        stream,
    )
    answer = _along_sorted(keys, found, -(-n // 4096), before.blocks, None, False, (a, c, d))
    return answer if answer is NotImplemented else (answer[0][:rows], answer[1])


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
    """Return the total and the gradient of the Lovász softmax loss, given float64 weights (C,)."""
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
    before = kernel(files, "keys", macros, 0, device.index, together=False)
    finish = kernel(files, "gradient", macros, 0, device.index, together=False)
    if before is None or finish is None:
        return NotImplemented
    rows, n = groups * classes, images // groups * pixels
    keys = torch.empty(rows, n, dtype=torch.int32, device=device)
    found = torch.empty((groups + before.blocks) * classes, dtype=torch.int32, device=device)
    stream = torch._C._cuda_getCurrentRawStream(device.index)

    def launch(program: Any, slopes_at: int, gradient_at: int) -> None:
        arguments = _SOFTMAX.pack(
            logits.data_ptr(),
            target.data_ptr(),
            keys.data_ptr(),
            slopes_at,
            found.data_ptr(),
            gradient_at,
            images,
            pixels,
            groups,
            void or 0,
            *logits.stride(),
        )
        program.launch(arguments, stream)

    launch(before, 0, 0)
    found_tiles = images // groups * -(-pixels // 1024)
    answer = _along_sorted(keys, found, found_tiles, before.blocks, weights, present, (a, c, d))
    if answer is NotImplemented:
        return NotImplemented
    values, slopes = answer
    gradient = torch.empty_strided(
        logits.shape, logits.stride(), dtype=torch.float32, device=device
    )
    launch(finish, slopes.data_ptr(), gradient.data_ptr())
    return values[rows], gradient


def sorted_rows(keys: torch.Tensor, spare: torch.Tensor) -> tuple[Any, Any, Any]:
    """Sort keys (R, n) in decreasing order. Return keys, positions and live keys per row.

    Both tensors are overwritten; ``spare`` has 8 bytes per key. Positions are int32. Short rows are
    sorted by ``torch.sort``: then positions are int64, all keys are live, and the last entry is
    None.
    """
    (rows, n), device = keys.shape, keys.device
    macros = (("ITEMS", _ITEMS), ("BLOCKS", _BLOCKS))
    shape = (THREADS, _BLOCKS)
    count = kernel(("radix.cu",), "digits", macros, 0, device.index, shape, together=False)
    shared = 4 * (256 * (THREADS // 32) + 2 * _TILE + 512)  # the bytes of the struct Shared
    sort = kernel(("radix.cu",), "sort", macros, shared, device.index, shape, together=False)
    if count is None or sort is None or not _LEAST <= n < 1 << 30:
        return (*torch.sort(keys, dim=1, descending=True), None)
    tiles = -(-n // _TILE)
    order = torch.empty_like(keys)
    status = 1024 * rows * tiles
    zero = torch.zeros(4096 * rows + 4 * status + 16, dtype=torch.uint8, device=device)
    live = torch.empty(rows, dtype=torch.int32, device=device)
    at, size = zero.data_ptr(), 4 * keys.numel()
    here = (keys.data_ptr(), order.data_ptr())
    there = (spare.data_ptr(), spare.data_ptr() + size)
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    for step in range(-1, 4):
        source, goal = (here, there) if step % 2 == 0 else (there, here)
        if step < 0:
            source, goal = here, here
        arguments = _RADIX.pack(
            source[0],
            source[1] if step > 0 else 0,
            *goal,
            at,
            at + 4096 * rows + max(step, 0) * status,
            at + 4096 * rows + 4 * status + 4 * max(step, 0),
            live.data_ptr(),
            rows,
            n,
            tiles,
            8 * max(step, 0),
        )
        (count if step < 0 else sort).launch(arguments, stream)
    return keys, order, live
