"""The tree-reweighted bound on log Z of grids with four neighbours."""

from __future__ import annotations

import struct
from math import e, inf, log, log2
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setwise.inference._marginals._trees._tree_descent import LEAST_STEP
from setwise.torch._cuda._driver import Kernel, kernel
from setwise.torch._cuda._fields._grid import MOST_SWEEPS

# The rows of an image per strip, which one block processes. Not tuned.
_ROWS = 8
_LOG2_E = log2(e)  # the kernels work with powers of two


class TreeAnswer(NamedTuple):
    """The result of the passes."""

    p: Tensor
    """(B, L, N), in the dtype of the logits"""
    upper: Tensor
    """(B,) float64, rounded up"""
    gap: Tensor
    """(B,) float64"""
    differ: Tensor
    """(B, 2, N) float64: the probability that the ends of an edge differ, right and down"""
    messages: Tensor
    """(4, B, N, L) float32"""
    passes: int
    checks: int


def tree_bound(
    theta: Tensor,
    right: Tensor,
    down: Tensor,
    sides: tuple[int, int],
    tol: float,
    limit: int | None = None,
    messages: Tensor | None = None,
    first_check: int = 3,
) -> TreeAnswer | None:
    """Return the bound of logits (B, L, N) and weights (B, N) of the edges right and down.

    It is None if no kernel can run. ``messages`` are those of an earlier answer for the same grid,
    as a warm start. The host waits for each measured gap.
    """
    batch, labels, n = theta.shape
    if not 0 < batch <= 64 or not 2 <= labels <= 128 or not 0 < n < 2**31:
        return None
    if theta.dtype not in (torch.float32, torch.float64) or sides[1] * labels >= 2**31:
        return None
    programs = _programs(theta, sides)
    # Every image needs at least one block.
    if len(programs) < 3 or any(program.blocks < batch for program in programs[1:]):
        return None
    search = _TreePasses(programs, theta, right, down, sides, messages)
    limit = MOST_SWEEPS if limit is None else limit
    search.ahead()
    passes, due = 0, 0 if messages is not None else first_check
    lowest, at = inf, 0
    before: tuple[int, float] | None = None
    while True:
        if passes >= min(due, limit):
            worst = search.measure()
            if worst <= tol or passes >= limit:
                break
            if worst <= 0.9 * lowest:
                lowest, at = worst, passes
            elif passes >= 1.5 * at + 16:  # the remaining gap is a rounding error
                break
            due = passes + _passes_to_go(passes, worst, before, tol)
            before = (passes, worst)
        search.back()
        search.ahead()
        passes += 1
    return search.answer(passes)


def _passes_to_go(passes: int, gap: float, before: tuple[int, float] | None, tol: float) -> int:
    """Return the passes until the next measurement.

    The gap is assumed to fall by a constant factor per pass, a little more slowly than before. The
    result is at most twice the number of passes so far.
    """
    most = max(4, 2 * passes)
    if tol <= 0 or not gap < inf:
        return most
    fall = 0.45 if before is None else 0.8 * log(before[1] / gap) / max(1, passes - before[0])
    togo = log(gap / tol)
    return max(1, min(most, int(togo / fall + 0.9))) if fall > 0 else most


class _TreePasses:
    """The state of the message passing for one batch."""

    def __init__(
        self,
        programs: list[Kernel],
        theta: Tensor,
        right: Tensor,
        down: Tensor,
        sides: tuple[int, int],
        messages: Tensor | None,
    ) -> None:
        batch, labels, n = theta.shape
        self._sweep, *self._measures = programs
        self._sides, self._strips = sides, _strips(sides)
        self._stream: int = torch._C._cuda_getCurrentRawStream(theta.device.index)
        narrow: Any = {"device": theta.device}
        wide: Any = {"dtype": torch.float64, "device": theta.device}
        self._theta = theta.transpose(1, 2).contiguous()
        highest = self._theta.amax(2, keepdim=True)
        self._highest = highest.double().sum((1, 2))
        # The logits to base 2, with 0 as the largest of each pixel.
        self._based = ((self._theta - highest).double() * _LOG2_E).float().clamp(min=-1e30)
        self._weights = torch.stack((_inside(right, sides, 2), _inside(down, sides, 1))).double()
        present = self._weights > 0
        shares = present / present.sum(0).clamp(min=1)
        prices = _LOG2_E * self._weights / shares.clamp(min=0.5)
        self._edges = torch.stack((shares, prices), -1).float()
        self._dearest = self._edges[..., 1].amax()
        if messages is None:
            self._messages = torch.zeros(4, batch, n, labels, **narrow)
        else:
            self._messages = messages.clone()
        letters = batch * self._strips * sides[1] * 32 * _lanes(labels)
        self._mail = torch.zeros(letters, dtype=torch.int64, **narrow)
        self._counter = torch.zeros(1, dtype=torch.int32, **narrow)
        self._launches = self._taken = self._checks = 0
        self._step = 1.0
        most = max(program.blocks for program in self._measures)
        self._parts = torch.zeros(-(-most // batch), batch, 4, **wide)
        self._logs = torch.empty(batch, n, labels, **wide)
        self._differ = torch.empty(2, batch, n, **wide)
        self._upper = torch.full((batch,), inf, **wide)
        self._dual = torch.full((batch,), -inf, **wide)

    def _grid(self) -> tuple[int, ...]:
        batch, n, _ = self._theta.shape
        return (self._messages.data_ptr(), self._edges.data_ptr(), n, batch, *self._sides)

    def ahead(self) -> None:
        """Send messages to later pixels, from the first pixel to the last."""
        self._pass(0, 1.0)

    def back(self) -> None:
        """Send messages to earlier pixels, from the last pixel to the first."""
        self._pass(1, self._step)

    def _pass(self, backward: int, step: float) -> None:
        self._launches += 1
        tensors = (self._based, self._dearest, self._mail, self._counter)
        arguments = struct.pack(
            "<2Qq3i4x4Q2If2i4x",
            *self._grid(),
            *(tensor.data_ptr() for tensor in tensors),
            self._taken % 2**32,
            self._launches,
            step,
            self._strips,
            backward,
        )
        # Each strip increments the counter, and so does each block that finds no strip left.
        self._taken += len(self._theta) * self._strips + self._sweep.blocks
        self._sweep.launch(arguments, self._stream)

    def measure(self) -> float:
        """Return the largest relative gap, and store the best bounds and values of the dual.

        If a bound rose, the backward messages oscillate, and their steps become shorter.
        """
        tensors = (self._theta, self._weights, self._logs, self._differ, self._parts)
        arguments = struct.pack(
            "<2Qq3i4x5Q", *self._grid(), *(tensor.data_ptr() for tensor in tensors)
        )
        for program in self._measures:
            program.launch(arguments, self._stream)
        bound, of_pixels, of_pairs, sizes = self._parts.sum(0).unbind(1)
        slack = 1.5e-14 * sizes
        upper = bound + slack
        rose = (upper > self._upper).any()
        self._upper = torch.minimum(upper, self._upper)
        self._dual = torch.maximum(of_pixels + of_pairs - slack, self._dual)
        size = (self._upper - self._highest).abs().clamp(min=1.0)
        worst = (self._gap() / size).amax()
        relative, higher = torch.stack((worst, rose.to(worst))).tolist()
        self._step = min(1.0, max(LEAST_STEP, self._step / 2 if higher else 1.1 * self._step))
        self._checks += 1
        return float(relative)

    def _gap(self) -> Tensor:
        return (self._upper - self._dual).clamp(min=0.0)

    def answer(self, passes: int) -> TreeAnswer:
        """Return the answer as of the last measurement."""
        return TreeAnswer(
            self._logs.exp().to(self._theta.dtype).transpose(1, 2),
            self._upper,
            self._gap(),
            self._differ.transpose(0, 1),
            self._messages,
            passes,
            self._checks,
        )


def _programs(theta: Tensor, sides: tuple[int, int]) -> list[Kernel]:
    """Return the kernels sweep, settle and pairs; fewer if some cannot run."""
    batch, labels, _ = theta.shape
    device, per = theta.device, _lanes(labels)
    # The number of columns that are read ahead: more if every strip has a multiprocessor.
    units = torch.cuda.get_device_properties(device).multi_processor_count
    columns = 8 if batch * _strips(sides) <= units else 4
    macros = (
        ("LOGIT", "double" if theta.dtype == torch.float64 else "float"),
        ("LABELS", labels),
        ("PER", per),
        ("ROWS", _ROWS),
        ("CHUNK", max(1, columns // per)),
    )
    shapes = (("sweep", (32 * _ROWS, 2)), ("settle", (256, 3)), ("pairs", (256, 4)))
    made = [
        kernel(("trees.cu",), name, macros, 0, device.index, shape, False) for name, shape in shapes
    ]
    return [program for program in made if program is not None]


def _strips(sides: tuple[int, int]) -> int:
    return -(-sides[0] // _ROWS)


def _lanes(labels: int) -> int:
    """Return the number of labels per lane."""
    return -(-labels // 32)


def _inside(weights: Tensor, sides: tuple[int, int], axis: int) -> Tensor:
    """Return weights (B, N) along an axis with 0 where the edge would leave the image."""
    out = weights.reshape(-1, *sides).clone()
    out.select(axis, -1).zero_()
    return out.flatten(1)
