"""The tree-reweighted bound on log Z of grids with four neighbours."""

from __future__ import annotations

import struct
from math import inf, log
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setwise.torch._cuda._driver import Kernel, kernel

_MOST_PASSES = 2000
_ROWS = 8  # of a strip
_LEAST_STEP = 1.0 / 64.0
_LOG2_E = 1.4426950408889634


class TreeAnswer(NamedTuple):
    """What the passes found."""

    p: Tensor
    """(B, L, N), as the logits"""
    upper: Tensor
    """(B,) float64, allowing for its rounding"""
    gap: Tensor
    """(B,) float64"""
    differ: Tensor
    """(B, 2, N) float64: how likely the ends of an edge differ, right and down"""
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
    """Of logits (B, L, N) and weights (B, N) to the right and down; None where no kernel runs.

    ``messages`` are those of an answer for the same grid, to go on from. The host waits for each
    measured gap.
    """
    batch, labels, n = theta.shape
    if not 0 < batch <= 64 or not 2 <= labels <= 128 or not 0 < n < 2**31:
        return None
    if theta.dtype not in (torch.float32, torch.float64):
        return None
    search = _Search.of(theta, right, down, sides, messages)
    if search is None:
        return None
    limit = _MOST_PASSES if limit is None else limit
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
            elif passes >= 1.5 * at + 16:  # rounding has the last word
                break
            due = passes + _passes_to_go(passes, worst, before, tol)
            before = (passes, worst)
        search.back()
        search.ahead()
        passes += 1
    return search.answer(passes)


def _passes_to_go(passes: int, gap: float, before: tuple[int, float] | None, tol: float) -> int:
    """If the gap goes on to fall by a factor a pass, a little slower; at most twice as many."""
    most = max(4, 2 * passes)
    if tol <= 0:
        return most
    fall = 0.45 if before is None else 0.8 * log(before[1] / gap) / max(1, passes - before[0])
    togo = log(gap / tol)
    return max(1, min(most, int(togo / fall + 0.9))) if fall > 0 else most


class _Search(NamedTuple):
    """The passes of one batch: what they change is in tensors and in ``now``."""

    theta: Tensor
    based: Tensor
    edges: Tensor
    weights: Tensor
    messages: Tensor
    highest: Tensor
    sides: tuple[int, int]
    sweep: Kernel
    kernels: tuple[Kernel, Kernel]
    dearest: Tensor
    mail: Tensor
    counter: Tensor
    parts: Tensor
    logs: Tensor
    differ: Tensor
    now: dict[str, Any]

    @classmethod
    def of(
        cls,
        theta: Tensor,
        right: Tensor,
        down: Tensor,
        sides: tuple[int, int],
        messages: Tensor | None,
    ) -> _Search | None:
        batch, labels, n = theta.shape
        device, per = theta.device, -(-labels // 32)
        strips = -(-sides[0] // _ROWS)
        # columns that are read ahead: more where few blocks have a multiprocessor each
        alone = batch * strips <= torch.cuda.get_device_properties(device).multi_processor_count
        macros = (
            ("LOGIT", "double" if theta.dtype == torch.float64 else "float"),
            ("LABELS", labels),
            ("PER", per),
            ("ROWS", _ROWS),
            ("CHUNK", max(1, (8 if alone else 4) // per)),
        )
        shapes = (("sweep", (32 * _ROWS, 2)), ("settle", (256, 3)), ("pairs", (256, 4)))
        programs = [
            kernel(("trees.cu",), name, macros, 0, device.index, shape, False)
            for name, shape in shapes
        ]
        if None in programs:
            return None
        sweep, *others = (program for program in programs if program is not None)
        own = theta.transpose(1, 2).contiguous()
        highest = own.amax(2, keepdim=True)
        weights = torch.stack((_inside(right, sides, 2), _inside(down, sides, 1))).double()
        present = weights > 0
        shares = present / present.sum(0).clamp(min=1)
        edges = torch.stack((shares, _LOG2_E * weights / shares.clamp(min=0.5)), -1).float()
        if messages is None:
            messages = torch.zeros(4, batch, n, labels, device=device)
        most = max(program.blocks for program in others)
        wide: Any = {"dtype": torch.float64, "device": device}
        return cls(
            theta=own,
            based=((own - highest).double() * _LOG2_E).float().clamp(min=-1e30),
            edges=edges,
            weights=weights,
            messages=messages.clone(),
            highest=highest.double().sum((1, 2)),
            sides=sides,
            sweep=sweep,
            kernels=(others[0], others[1]),
            dearest=edges[..., 1].amax(),
            mail=torch.zeros(
                batch * strips * sides[1] * 32 * per, dtype=torch.int64, device=device
            ),
            counter=torch.zeros(1, dtype=torch.int32, device=device),
            parts=torch.zeros(-(-most // batch), batch, 4, **wide),
            logs=torch.empty(batch, n, labels, **wide),
            differ=torch.empty(2, batch, n, **wide),
            now={"launch": 0, "taken": 0, "step": 1.0, "checks": 0, "best": None},
        )

    def _grid(self) -> tuple[int, ...]:
        batch, n, _ = self.theta.shape
        return (self.messages.data_ptr(), self.edges.data_ptr(), n, batch, *self.sides)

    def ahead(self) -> None:
        """Messages to later pixels, one pixel after the other."""
        self._pass(0, 1.0)

    def back(self) -> None:
        """Messages to earlier pixels, last pixel first."""
        self._pass(1, self.now["step"])

    def _pass(self, backward: int, step: float) -> None:
        now, batch = self.now, len(self.theta)
        now["launch"] += 1
        strips = -(-self.sides[0] // _ROWS)
        arguments = struct.pack(
            "<2Qq3i4x4Q2If2i4x",
            *self._grid(),
            *(tensor.data_ptr() for tensor in (self.based, self.dearest, self.mail, self.counter)),
            now["taken"] % 2**32,
            now["launch"],
            step,
            strips,
            backward,
        )
        now["taken"] += batch * strips + self.sweep.blocks
        self.sweep.launch(arguments, self._stream())

    def measure(self) -> float:
        """The largest relative gap; of bounds and values of the dual the best are kept."""
        tensors = (self.theta, self.weights, self.logs, self.differ, self.parts)
        arguments = struct.pack(
            "<2Qq3i4x5Q", *self._grid(), *(tensor.data_ptr() for tensor in tensors)
        )
        for program in self.kernels:
            program.launch(arguments, self._stream())
        bound, pixels, of_pairs, sizes = self.parts.sum(0).unbind(1)
        slack = 1.5e-14 * sizes
        upper, dual = bound + slack, pixels + of_pairs - slack
        now = self.now
        now["checks"] += 1
        rose = None
        if now["best"] is not None:
            rose = (upper > now["best"][0]).any()
            upper = torch.minimum(upper, now["best"][0])
            dual = torch.maximum(dual, now["best"][1])
        gap = (upper - dual).clamp(min=0.0)
        now["best"] = (upper, dual)
        worst = (gap / (upper - self.highest).abs().clamp(min=1.0)).amax()
        if rose is None:
            return float(worst)
        relative, higher = torch.stack((worst, rose.to(worst))).tolist()
        step = now["step"] / 2 if higher else 1.1 * now["step"]
        now["step"] = min(1.0, max(_LEAST_STEP, step))
        return float(relative)

    def _stream(self) -> int:
        return int(torch._C._cuda_getCurrentRawStream(self.theta.device.index))

    def answer(self, passes: int) -> TreeAnswer:
        """As of the last measure."""
        upper, dual = self.now["best"]
        return TreeAnswer(
            self.logs.exp().to(self.theta.dtype).transpose(1, 2),
            upper,
            (upper - dual).clamp(min=0.0),
            self.differ.transpose(0, 1),
            self.messages,
            passes,
            self.now["checks"],
        )


def _inside(weights: Tensor, sides: tuple[int, int], axis: int) -> Tensor:
    """Weights (B, N) of the direction along an axis, 0 where it leads out of the image."""
    out = weights.reshape(-1, *sides).clone()
    out.select(axis, -1).zero_()
    return out.flatten(1)
