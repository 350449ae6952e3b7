"""Keys of 32 bits in decreasing order, with the positions they came from."""

from __future__ import annotations

import struct
from typing import Any

import torch

from setwise.torch._cuda._driver import kernel

_ARGUMENTS = struct.Struct("<8Q3qi4x")
_THREADS, _ITEMS, _BLOCKS = 512, 12, 2
_TILE = _THREADS * _ITEMS
_SHARED = 4 * (256 * (_THREADS // 32) + 2 * _TILE + 512)  # bytes of struct Shared
_LEAST = 2048  # elements of a row, below which most of a tile would be empty


def sorted_rows(keys: torch.Tensor, spare: torch.Tensor) -> tuple[Any, Any, Any]:
    """Sorted keys (R, n), where each was in its row, and how many of a row count; uses up both.

    ``spare`` has 8 bytes for each key. Positions are int32; those of ``torch.sort``, which answers
    where rows are short, are int64, and then all keys are there: None stands for how many.
    """
    (rows, n), device = keys.shape, keys.device
    macros = (("ITEMS", _ITEMS), ("BLOCKS", _BLOCKS))
    shape = (_THREADS, _BLOCKS)
    count = kernel(("radix.cu",), "digits", macros, 0, device.index, shape, together=False)
    sort = kernel(("radix.cu",), "sort", macros, _SHARED, device.index, shape, together=False)
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
        arguments = _ARGUMENTS.pack(
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
