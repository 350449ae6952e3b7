"""Sets of least expected Jaccard or F-beta loss, for rows of probabilities on a device."""

from __future__ import annotations

import math
import struct
from typing import Any

import torch

from setwise.torch._cuda._driver import constant, kernel

_ARGUMENTS = struct.Struct("<11Qd3q2i")
_CHUNK = constant("decide.cu", "CHUNK")
_THREADS = 160  # threads per block, at least one for each node of the integral
_STEP = 0.3  # the distance between nodes of the integral, as in cpp/decisions/exponential_sum.hpp
_TYPES = {torch.float32: "float", torch.float64: "double"}
# The most elements that are sorted in one call; each takes 25 bytes. Not tuned.
_AT_ONCE = 1 << 28


def decide_ratio(p: torch.Tensor, jaccard: bool, b: float, none: torch.Tensor | None) -> Any:
    """Return masks (R, N) and expected scores (R,) of the best sets for probabilities (R, N).

    ``none`` (R,) holds the scores of the empty sets; None computes them for independent elements.
    """
    rows, n = p.shape
    if p.dtype not in _TYPES or not n or not rows or n >= 1 << 31:
        return NotImplemented
    programs = [
        kernel(
            ("decide.cu",),
            name,
            (("SCORE", _TYPES[p.dtype]),),
            0,
            p.device.index,
            (_THREADS, 8),
            together=False,
        )
        for name in ("sums", "lower_bounds", "candidates", "products", "search")
    ]
    if any(program is None for program in programs):
        return NotImplemented
    at_once = max(1, _AT_ONCE // n)
    some = [slice(k, k + at_once) for k in range(0, rows, at_once)]
    parts = [_of_rows(p[k], jaccard, b, None if none is None else none[k], programs) for k in some]
    return torch.cat([mask for mask, _ in parts]), torch.cat([score for _, score in parts])


def _of_rows(
    p: torch.Tensor, jaccard: bool, b: float, none: torch.Tensor | None, programs: list[Any]
) -> Any:
    rows, n = p.shape
    device = p.device
    ordered, order = torch.sort(p, dim=1, descending=True, stable=True)
    blank = torch.zeros((), dtype=torch.float64, device=device)
    low, high = (1.0, float(n)) if jaccard else (1.0 + b, (1.0 + b) * n)
    count = math.ceil(math.log(42e6 * high / low) / _STEP) + 1
    nodes = 1e-6 / high * torch.exp(_STEP * torch.arange(count, dtype=torch.float64, device=device))
    weights = _STEP * nodes
    weights[0] /= -math.expm1(-_STEP)
    chunks = -(-n // _CHUNK)
    lower, score = blank.new_zeros(rows), blank.new_empty(rows)
    first = torch.full((rows,), 2**31 - 1, dtype=torch.int32, device=device)
    last, best = torch.zeros_like(first), torch.empty_like(first)
    products = blank.new_empty(rows, chunks, 2, count)
    stream = torch._C._cuda_getCurrentRawStream(device.index)

    sums = blank.new_empty(rows, chunks, 3)
    before = blank.new_zeros(rows, chunks + 1, 3)

    def launch(program: Any, products: torch.Tensor) -> None:
        tensors = (ordered, sums, before, nodes, weights, lower, first, last, products, best, score)
        pointers = [tensor.data_ptr() for tensor in tensors]
        program.launch(_ARGUMENTS.pack(*pointers, b, rows, n, chunks, jaccard, count), stream)

    launch(programs[0], products)
    torch.cumsum(sums, 1, out=before[:, 1:])
    if none is not None:  # the given score replaces that of independent elements
        before[:, -1, 2] = torch.log(none)
    for program in programs[1:4]:
        launch(program, products)
    joined = torch.stack([products[:, :, 0].prod(1), products[:, :, 1].sum(1)], 1).contiguous()
    launch(programs[4], joined)
    mask = torch.empty(rows, n, dtype=torch.bool, device=device)
    chosen = torch.arange(n, device=device) < best[:, None]
    mask.scatter_(1, order, chosen)
    return mask, score
