"""The upper bound on log Z of fields on grids, in one launch."""

from __future__ import annotations

import struct
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setwise.torch._cuda._driver import kernel, shared_memory

_MOST_IMAGES = 64
_IN_REGISTERS = 32  # labels
_MOST_SWEEPS = 2000
_FOUR = ((0, 1), (1, 0))  # the neighbours that tiles are made for


class GridAnswer(NamedTuple):
    """What the sweeps found."""

    p: Tensor
    """(B, L, N) float32"""
    upper: Tensor
    """(B,) float64, allowing for its rounding"""
    gap: Tensor
    """(B,) float64"""
    flow: Tensor
    """float32, as the kernel for such a grid has them"""
    record: Tensor
    """(2,): sweeps, and how often the gap was measured"""


def grid_bound(
    theta: Tensor,
    weights: Tensor,
    sides: tuple[int, ...],
    steps: tuple[tuple[int, ...], ...],
    tol: float,
    limit: int | None = None,
    flow: Tensor | None = None,
    first_check: int = 10,
) -> GridAnswer | None:
    """Of logits (B, L, N) and weights (B, K, N); None where no kernel takes them.

    ``flow`` is that of an answer for the same grid, to go on from.
    """
    batch, labels, n = theta.shape
    if not fits(theta, sides, steps):
        return None
    device = theta.device
    tiled = (
        steps == _FOUR
        and labels <= _IN_REGISTERS
        and prod(_flow_shape(True, 1, labels, sides, 2)) < 2**31
    )
    if tiled:
        shape, shared = _tiles(labels, shared_memory(device.index))
    else:
        shape, shared = (256, 4) if labels <= 8 else (128, 3), 0
    macros = (
        ("LOGIT", "double" if theta.dtype == torch.float64 else "float"),
        ("LABELS", labels),
        ("KEPT", labels if labels <= _IN_REGISTERS else 1),
        ("DIRECTIONS", len(steps)),
        ("MOST_IMAGES", _MOST_IMAGES),
        ("BLOCKS", shape[1]),
        ("TILED", int(tiled)),
    )
    files = ("field.cuh", "field_tiles.cuh" if tiled else "field_edges.cuh", "field.cu")
    program = kernel(files, "field", macros, shared, device.index, shape, True)
    if program is None or program.blocks < batch:  # every image has a block at least
        return None
    limit = _MOST_SWEEPS if limit is None else limit
    theta = theta.contiguous()
    half = _halves(weights)
    real: Any = {"dtype": torch.float32, "device": device}
    flows = torch.empty(_flow_shape(tiled, batch, labels, sides, len(steps)), **real)
    before = torch.empty(2 if tiled else 1, *flows.shape, **real)
    if tiled and flow is None:
        before[0].zero_()
    elif flow is not None:
        (before[0] if tiled else flows).copy_(flow)
    scores = (before[0],) * 2 if tiled else torch.empty(2, batch, labels, n, **real).unbind()
    p = torch.empty(batch, labels, n, **real)
    out = torch.empty(batch, 4, dtype=torch.float64, device=device)
    parts = torch.empty(6, program.blocks, dtype=torch.float64, device=device)
    record = torch.zeros(4, dtype=torch.int32, device=device)
    pointers = (theta, half, flows, before[0], before[-1], *scores, p, out, parts, record)
    padded = (1,) * (3 - len(sides)) + tuple(sides)
    offsets = [step for way in steps for step in ((0,) * (3 - len(way)) + tuple(way))]
    numbers = (batch, limit, first_check, int(flow is not None))
    odd = (4 + 3 + len(offsets)) % 2
    arguments = struct.pack(
        f"<12Qdq{7 + len(offsets)}i{4 * odd}x",
        *(tensor.data_ptr() for tensor in pointers),
        record.data_ptr() + 8,
        tol,
        n,
        *numbers,
        *padded,
        *offsets,
    )
    program.launch(arguments, torch._C._cuda_getCurrentRawStream(device.index))
    upper = out[:, 0] + 1.5e-14 * out[:, 3]
    return GridAnswer(p, upper, out[:, 2], flows, record)


def _tiles(labels: int, room: int) -> tuple[tuple[int, int], int]:
    """Threads of a block and blocks on a multiprocessor, and the bytes of a tile.

    Blocks wait for one another, so that their tiles must be in shared memory all at once, of which
    a T4 has a quarter of what an H100 has.
    """
    threads, most = (512, 2) if labels == 2 else (256, 4) if labels <= 8 else (128, 4)
    planes = 1 if labels == 2 else labels
    shared = 4 * 2 * threads * (planes + 1)
    return (threads, max(1, min(most, room // (shared + 2048)))), shared


def _flow_shape(
    tiled: bool, batch: int, labels: int, sides: tuple[int, ...], directions: int
) -> tuple[int, ...]:
    """Of the flows: see field.cuh."""
    if not tiled:
        return batch, directions, labels, prod(sides)
    planes = 1 if labels == 2 else labels
    return batch, directions, sides[0], -(-sides[1] // 32), planes, 32


def fits(theta: Tensor, sides: tuple[int, ...], steps: tuple[tuple[int, ...], ...]) -> bool:
    """Whether the kernel takes such a grid: up to three sides, neighbours that touch."""
    batch, labels, n = theta.shape
    return (
        theta.dtype in (torch.float32, torch.float64)
        and 0 < batch <= _MOST_IMAGES
        and 2 <= labels <= 256
        and 0 < n < 2**31
        and 1 <= len(sides) <= 3
        and 0 < len(steps) <= 13
        and all(_touches(way) for way in steps)
    )


def _touches(way: tuple[int, ...]) -> bool:
    """Steps of 1, the first of them forwards: edges of two classes then share no pixel."""
    return max(map(abs, way)) == 1 and next(step for step in way if step) == 1


def _halves(weights: Tensor) -> Tensor:
    """Half the weights in single precision, rounded down."""
    half = (weights / 2).float()
    if weights.dtype == torch.float64:
        half = torch.where(
            half.double() * 2 > weights, torch.nextafter(half, torch.zeros_like(half)), half
        )
    return half.contiguous()
