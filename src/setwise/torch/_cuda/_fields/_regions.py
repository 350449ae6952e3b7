"""The upper bound on log Z of fields on grids with layers of regions."""

from __future__ import annotations

import struct
from math import ceil, inf, log
from typing import NamedTuple

import torch
from torch import Tensor

from setwise.torch._cuda._driver import Kernel, kernel, shared_memory
from setwise.torch._cuda._fields._grid import GridAnswer, grid_bound

# The default limit on rounds, and the most sweeps of the grid per round. The tolerance usually ends
# a search before. Not tuned.
_MOST_ROUNDS, _MOST_SWEEPS = 300, 60
_LARGEST = 22_528  # the most pixels of a region that fit into shared memory
_BYTES = 10  # the bytes of shared memory per pixel
# The least log p, -87, whose exponential is a normal number in single precision.
_NEVER = float(ceil(log(torch.finfo(torch.float32).tiny)))


class RegionAnswer(NamedTuple):
    """The result of the rounds."""

    p: Tensor
    """(B, L, N) float32"""
    upper: Tensor
    """(B,) float64, rounded up"""
    gap: Tensor
    """(B,) float64"""
    state: tuple[Tensor, Tensor]
    """The state of the layers (K, B, L, N) and of the grid, for a warm start."""
    rounds: int
    sweeps: int


class _Layer:
    """The regions of one layer, sorted by size, and their kernels."""

    def __init__(
        self, numbers: Tensor, n_regions: int, weights: Tensor, alpha: float, n_labels: int
    ) -> None:
        """Take the regions (B, N) of the pixels, -1 for none, and weights (B, R)."""
        batch, n = numbers.shape
        device = numbers.device
        offsets = torch.arange(batch, device=device)[:, None] * n_regions
        keys = torch.where(numbers >= 0, numbers + offsets, batch * n_regions).flatten()
        self.pixels = (torch.argsort(keys, stable=True) % n).int()
        counts = torch.bincount(keys, minlength=batch * n_regions + 1)[:-1]
        self.sizes, self.starts = counts.int(), (counts.cumsum(0) - counts).int()
        self.by_size = torch.argsort(counts, descending=True, stable=True).int()
        self.weights = weights.double().reshape(-1).contiguous()
        self.out = torch.zeros(batch, n_regions * n_labels, 2, dtype=torch.float64, device=device)
        self.alpha, self.n, self.regions, self.labels = alpha, n, n_regions, n_labels

    def prepare(self, largest: int) -> bool:
        """Choose kernels for regions of up to ``largest`` pixels. Return whether they can run."""
        device = self.pixels.device
        capacity = 256  # sizes are rounded up by about a quarter, so that few kernels are compiled
        while capacity < largest:
            capacity += max(256, capacity // 1024 * 256)
        capacity = min(capacity, _LARGEST)
        threads = 128 if capacity <= 512 else 256 if capacity <= 2048 else 1024
        macros, shared = (("CAPACITY", capacity),), _BYTES * capacity
        fit = shared_memory(device.index) // (shared + 1024)
        blocks = max(1, min(2048 // threads, fit))
        made = [
            kernel(("regions.cu",), name, macros, shared, device.index, (threads, blocks), False)
            for name in ("step", "excess")
        ]
        self.kernels: list[Kernel] = [program for program in made if program is not None]
        places = torch.arange(largest + 1, dtype=torch.float64, device=device)
        self.powers = places**self.alpha
        heights = self.weights * self.powers[self.sizes.long()]
        self.rounding = 1e-14 * self.labels * heights.view(len(self.out), -1).sum(1)
        return len(self.kernels) == 2

    def launch(self, which: int, s: Tensor, logs: Tensor, p: Tensor) -> None:
        """Launch kernel 0, which moves s and log p, or kernel 1, which measures s at p."""
        tensors = (
            *(self.pixels, self.starts, self.sizes, self.by_size, self.weights, self.powers),
            *(s, logs, p, self.out),
        )
        arguments = struct.pack(
            "<10Qdq3i4x",
            *(tensor.data_ptr() for tensor in tensors),
            self.alpha,
            self.n,
            self.regions,
            len(self.sizes),
            self.labels,
        )
        stream = torch._C._cuda_getCurrentRawStream(s.device.index)
        self.kernels[which].launch(arguments, stream)


def region_bound(
    theta: Tensor,
    weights: Tensor,
    sides: tuple[int, ...],
    steps: tuple[tuple[int, ...], ...],
    regions: Tensor,
    region_weights: Tensor,
    alphas: tuple[float, ...],
    tol: float,
    limit: int | None = None,
    state: tuple[Tensor, Tensor] | None = None,
) -> RegionAnswer | None:
    """Return the bound of logits (B, L, N), weights (B, K, N) and layers of regions (B, K', N).

    ``region_weights`` has shape (B, K', R). A round moves the layers one after the other and then
    sweeps the grid; the host waits for the gap after each round but the first. The result is None
    if no kernel supports the field. Regions may have at most _LARGEST pixels.
    """
    n_labels = theta.shape[1]
    layers = [
        _Layer(regions[:, k], region_weights.shape[2], region_weights[:, k], alpha, n_labels)
        for k, alpha in enumerate(alphas)
    ]
    largest = torch.stack([layer.sizes.amax() for layer in layers]).tolist()
    if max(largest) > _LARGEST:
        return None
    if not all(layer.prepare(size) for layer, size in zip(layers, largest, strict=True)):
        return None
    wide = theta.double()
    highest = wide.amax(1).sum(1)
    logs = torch.log_softmax(wide, 1).float().clamp(min=_NEVER)
    s = torch.zeros(len(layers), *theta.shape, dtype=torch.float32, device=theta.device)
    flow = None
    if state is not None:
        s, flow = state[0].clone(), state[1]
    limit = _MOST_ROUNDS if limit is None else limit
    best, rounds, at = inf, 0, 0
    within = tol / 3  # the gap of the grid, which is only a part of the whole gap
    swept = torch.zeros((), dtype=torch.float64, device=theta.device)
    while True:
        if rounds or state is None:
            for k, layer in enumerate(layers):
                layer.launch(0, s[k], logs, logs)
                logs = torch.log_softmax(logs, 1).clamp_(min=_NEVER)
        rest = wide
        for own in s:
            rest = rest - own
        found = grid_bound(rest, weights, sides, steps, within, _MOST_SWEEPS, flow)
        if found is None:
            return None
        flow, swept = found.flow, swept + found.record[:, 0].amax()
        rounds += 1
        # The gap is not measured after the first round, which is rarely enough.
        if rounds > 1 or rounds >= limit or state is not None:
            upper, gap = _measured(layers, s, found)
            size = (upper - highest).abs().clamp(min=1.0)
            parts = ((gap / size).amax(), (found.gap / size).amax(), swept)
            worst, of_grid, sweeps = torch.stack(parts).tolist()
            within *= min(1.0, tol / 3 / max(of_grid, 1e-30))
            if worst <= tol or rounds >= limit:
                break
            if worst <= 0.9 * best:
                best, at = worst, rounds
            elif rounds >= 1.5 * at + 16:  # the remaining gap is a rounding error
                break
        logs = found.p.log().clamp_(min=_NEVER)
    return RegionAnswer(found.p, upper, gap, (s, flow), rounds, int(sweeps))


def _measured(layers: list[_Layer], s: Tensor, found: GridAnswer) -> tuple[Tensor, Tensor]:
    """Return the bound and the gap, both with the excess of s over the functions of the layers."""
    upper, gap = found.upper, found.gap
    for k, layer in enumerate(layers):
        layer.launch(1, s[k], found.p, found.p)
        above, apart = layer.out.sum(1).unbind(1)
        upper = upper + above + layer.rounding
        gap = gap + (above + apart + 2 * layer.rounding)
    return upper, gap.clamp(min=0.0)
