"""The Lovász hinge by counting errors in buckets instead of sorting, in one launch."""

from __future__ import annotations

import struct
from typing import Any

import torch

from setwise.torch._cuda._driver import LABELS, SCORES, kernel, workspaces
from setwise.torch._inputs._labels import void_label

_ARGUMENTS = struct.Struct("<9Q3q3di4x")
_MOST_SETS = 512  # the most sets per call, each of which takes 64 kB of counters; not tuned


def _buckets_of(scores: torch.Tensor, buckets: int) -> tuple[int, int, int]:
    """Return the bits per octave, the number of buckets, and the bytes of shared memory."""
    if scores.dtype == torch.float32:
        bits = min(buckets.bit_length() - 4, 11)
        return bits, 8 << bits, 64 << bits
    number = 0x3F80 + 0x7F80 + 1 if scores.dtype == torch.bfloat16 else 0x3C00 + 0x7C00 + 1
    return 0, number, 4 * number


def hinge_of_buckets(
    scores: torch.Tensor,
    target: torch.Tensor,
    ignore: float,
    a: float,
    c: float,
    d: float,
    buckets: int,
) -> Any:
    """Return values (S,) and gradient (S, n) of the Lovász hinge of a ratio of counts.

    The loss is l(n, q) = (a n + q) / (c m - d n + q). Scores of 16 bits have a bucket for each
    margin, so that the answer is exact. For float32, 2^(b - 3) of the 2^b buckets cover each of the
    first seven octaves of 1 + s, where s is the error, and the rest cover all larger errors. The
    bucket of an error s < 127 is at most 2^(3 - b) (1 + s) wide, so that the value is below the
    exact one by at most 2^(3 - b) (value + l(V)).
    """
    rows, n = scores.shape
    if scores.dtype not in SCORES or target.dtype not in LABELS or buckets < 1024:
        return NotImplemented
    if not 0 < rows <= _MOST_SETS or not 0 < n < 2**32:
        return NotImplemented
    bits, number, shared = _buckets_of(scores, buckets)
    void = void_label(ignore, target.dtype)
    half = scores.dtype != torch.float32
    macros = (
        ("SCORE", SCORES[scores.dtype]),
        ("LABEL", LABELS[target.dtype]),
        ("KEY16", int(half)),
        ("BFLOAT16", int(scores.dtype == torch.bfloat16)),
        ("BITS", bits),
        ("HAS_IGNORE", int(void is not None)),
        ("CHECKED", int(target.dtype != torch.bool)),
        ("JACCARD", int((a, c, d) == (1.0, 1.0, 0.0))),
    )
    device = scores.device
    program = kernel(("hinge.cu",), "hinge", macros, shared, device.index)
    if program is None:
        return NotImplemented
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    counts = 8 * rows * number
    gains = 8 * rows * number if half else 0
    zero, scratch = workspaces(
        device, stream, counts + 16 * (rows + 1), gains + 8 * (rows + program.blocks)
    )
    gradient = torch.empty_like(scores, dtype=torch.float32)
    values = torch.empty(rows, dtype=torch.float32, device=device)
    scores_at, target_at = scores.data_ptr(), target.data_ptr()
    elements = 8 if half else 4
    aligned = (
        (rows == 1 or n % elements == 0)
        and scores_at % 16 == 0
        and target_at % min(16, elements * target.element_size()) == 0
    )
    zero_at, scratch_at = zero.data_ptr(), scratch.data_ptr()
    arguments = _ARGUMENTS.pack(
        scores_at,
        target_at,
        gradient.data_ptr(),
        values.data_ptr(),
        zero_at,
        zero_at + counts,
        scratch_at,
        scratch_at + gains,
        zero_at + counts + 8 * rows,
        rows,
        n,
        void or 0,
        a,
        c,
        d,
        aligned,
    )
    tiles = rows * -(-n // (1024 * elements))
    program.launch(arguments, stream, program.blocks if half else _blocks(tiles, program.blocks))
    return values, gradient


def _blocks(tiles: int, most: int) -> int:
    """Return the number of blocks among which the tiles are divided.

    A block adds all its counts to the table in 32 pieces. If each block would have fewer than about
    two tiles, fewer blocks are used. Their number is a multiple of 32, so that the blocks are
    spread evenly over the pieces.
    """
    fewer = min(most, 2 * tiles // 5) // 32 * 32
    return fewer if fewer and 1.5 * most < tiles < 3 * most else most
