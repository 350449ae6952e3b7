"""The upper bound on log Z of fields on grids, computed in one launch."""

from __future__ import annotations

import struct
from functools import cache
from itertools import accumulate
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from setwise.torch._cuda._driver import (
    IN_REGISTERS,
    RESERVED,
    Kernel,
    kernel,
    shared_memory,
    workspaces,
)

# The most images per batch, which limits the memory. The kernels process any number of images, one
# after the other. Not tuned.
_MOST_IMAGES = 4096
# The default limit on sweeps and on passes over trees. Only couplings of large weight need more.
# Not tuned.
MOST_SWEEPS = 2000
_LONGEST = 2**17  # the largest limit of sweeps: their barriers are counted in 32 bits
_NUMBERS = {torch.float32: "float", torch.float64: "double"}


class GridAnswer(NamedTuple):
    """The result of the sweeps."""

    p: Tensor
    """(B, L, N) float32"""
    upper: Tensor
    """(B,) float64, rounded up"""
    gap: Tensor
    """(B,) float64"""
    flow: Tensor
    """float32, in the layout of the kernel for the grid"""
    record: Tensor
    """(B, 2) float64: the numbers of sweeps and of measurements of the gap"""


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
    """Return the bound of logits (B, L, N) and weights (B, K, N); None if no kernel supports them.

    ``flow`` is the flow of an earlier answer for the same grid, as a warm start.
    """
    batch, labels, n = theta.shape
    if not fits(theta, sides, steps):
        return None
    device = theta.device
    theta, weights = theta.contiguous(), weights.contiguous()
    if weights.dtype not in _NUMBERS:
        weights = weights.float()
    plan = _plan(labels, sides, steps, theta.dtype, weights.dtype, device.index)
    if plan is None:
        return None
    program, tiled = plan.program, plan.tiles > 0
    teams = _teams(batch, plan.tiles, program.blocks)
    blocks = min(program.blocks, teams * plan.tiles) if tiled else program.blocks
    limit = min(MOST_SWEEPS if limit is None else limit, _LONGEST)
    flows = torch.empty((batch, *plan.flows), dtype=torch.float32, device=device)
    # All arrays are in one allocation, because the device waits for the host here. They are two
    # starts of sweeps, momentum of 16 bits and levels, or else the flows of the previous sweep and
    # two copies of the scores.
    count, pixels = flows.numel(), batch * n
    sizes = (8 * count, 2 * count, 4 * pixels) if tiled else (4 * count, 8 * labels * pixels, 0)
    rest, levels = accumulate(-(-size // 256) * 256 for size in sizes[:2])
    piece = torch.empty(levels + sizes[2], dtype=torch.uint8, device=device)
    if flow is not None:
        (piece[: 4 * count].view(torch.float32).view(flows.shape) if tiled else flows).copy_(flow)
    elif min(limit, first_check) == 0:
        piece[: sizes[0]].zero_()
    p = torch.empty((batch, labels, n), dtype=torch.float32, device=device)
    out = torch.empty((batch, 6), dtype=torch.float64, device=device)
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    zero, scratch = workspaces(device, stream, 32 * (batch + 1), 80 * blocks)
    at = piece.data_ptr()
    arguments = plan.arguments.pack(
        theta.data_ptr(),
        weights.data_ptr(),
        flows.data_ptr(),
        at,
        at + (4 * count if tiled else 0),
        at + rest if tiled else 0,
        at + levels if tiled else 0,
        0 if tiled else at + rest,
        0 if tiled else at + rest + 4 * labels * pixels,
        p.data_ptr(),
        out.data_ptr(),
        scratch.data_ptr(),
        zero.data_ptr(),
        tol,
        n,
        batch,
        teams,
        limit,
        first_check,
        flow is not None,
        *plan.geometry,
    )
    program.launch(arguments, stream, blocks)
    return GridAnswer(p, out[:, 0], out[:, 2], flows, out[:, 4:])


class _Plan(NamedTuple):
    """The kernel, arguments and layout shared by all grids of one kind."""

    program: Kernel
    arguments: struct.Struct
    geometry: tuple[int, ...]
    """three sides, then three steps for each direction"""
    flows: tuple[int, ...]
    """the shape of the flows of an image: see field.cuh"""
    tiles: int
    """the number of tiles of an image; 0 for a kernel without tiles"""


@cache
def _plan(
    labels: int,
    sides: tuple[int, ...],
    steps: tuple[tuple[int, ...], ...],
    logits: torch.dtype,
    weights: torch.dtype,
    device: int,
) -> _Plan | None:
    tiled = steps == ((0, 1), (1, 0)) and labels <= IN_REGISTERS
    flows: tuple[int, ...] = (len(steps), labels, prod(sides))
    tiles = 0
    shape, shared = (256, 4) if labels <= 8 else (128, 3), 0
    if tiled:
        planes = 1 if labels == 2 else labels
        of_tiles = (2, sides[0], -(-sides[1] // 32), planes, 32)
        tiled = prod(of_tiles) < 2**31
    if tiled:
        shape, shared = _tile(labels, shared_memory(device))
        tiles = -(-sides[0] // (shape[0] // 16 - 2)) * -(-sides[1] // 28)
        flows = of_tiles
    macros = (
        ("LOGIT", _NUMBERS[logits]),
        ("WEIGHT", _NUMBERS[weights]),
        ("LABELS", labels),
        ("KEPT", labels if labels <= IN_REGISTERS else 1),
        ("DIRECTIONS", len(steps)),
        ("BLOCKS", shape[1]),
        ("TILED", int(tiled)),
    )
    sweeps = ("field_tiles.cuh", "field_proof.cuh") if tiled else ("field_edges.cuh",)
    files = ("field.cuh", *sweeps, "field.cu")
    program = kernel(files, "field", macros, shared, device, shape, True)
    if program is None:
        return None
    padded = (1,) * (3 - len(sides)) + tuple(sides)
    offsets = [step for way in steps for step in ((0,) * (3 - len(way)) + tuple(way))]
    geometry = (*padded, *offsets)
    numbers = 5 + len(geometry)
    arguments = struct.Struct(f"<13Qdq{numbers}i{4 * (numbers % 2)}x")
    return _Plan(program, arguments, geometry, flows, tiles)


def _tile(labels: int, available: int) -> tuple[tuple[int, int], int]:
    """Return the threads per block and the blocks per multiprocessor, and the bytes of a tile.

    Blocks wait for one another, so all their tiles must be in shared memory at once. A T4 has a
    quarter of the shared memory of an H100: there a tile of many labels is half as high.
    """
    threads, most = (512, 2) if labels == 2 else (256, 4) if labels <= 8 else (256, 3)
    row = 4 * 33 * (2 if labels == 2 else labels + 1)
    if row * (threads // 16) + RESERVED > available:
        threads, most = threads // 2, 2 * most
    shared = row * (threads // 16)
    return (threads, max(1, min(most, available // (shared + RESERVED)))), shared


@cache
def _teams(batch: int, tiles: int, blocks: int) -> int:
    """Return the least number of teams of blocks that keeps all blocks busy.

    A team sweeps one image after the other. If few images are processed at a time, they stay in the
    second-level cache between sweeps. Without tiles (0) there are many barriers, and several images
    at once hide the waiting times.
    """

    def rounds(teams: int) -> int:
        return -(-batch // teams) * -(-tiles // (blocks // teams))

    most = min(batch, blocks)
    return min(range(1, most + 1), key=rounds) if tiles else most


def fits(theta: Tensor, sides: tuple[int, ...], steps: tuple[tuple[int, ...], ...]) -> bool:
    """Return whether the kernel supports the grid: up to three axes and adjacent neighbours."""
    batch, labels, n = theta.shape
    return (
        theta.dtype in _NUMBERS
        and 0 < batch <= _MOST_IMAGES
        and 2 <= labels <= 256
        and 0 < n < 2**31
        and 1 <= len(sides) <= 3
        and 0 < len(steps) <= 13
        and all(_touches(way) for way in steps)
    )


def _touches(way: tuple[int, ...]) -> bool:
    """Return whether all steps are at most 1 and the first is forward.

    The edges of a direction then split into two classes that share no pixel.
    """
    return max(map(abs, way)) == 1 and next(step for step in way if step) == 1
