"""Losses that are quotients of sums over classes: soft Dice, Tversky, the metric losses."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import torch

from setwise.torch._cuda._driver import IN_REGISTERS, LABELS, SCORES, THREADS, kernel, workspaces
from setwise.torch._cuda._softmax import weights_of
from setwise.torch._inputs._labels import void_label

_ARGUMENTS = struct.Struct("<11Q7q8d")
_ACTIVATIONS = {"none": 0, "softmax": 1, "sigmoid": 2}


class Quotient(NamedTuple):
    r"""A loss of sets :math:`(1 - (n^T s + a) / (d^T s + a))^{\gamma}`.

    The vector s holds the sums of x, of y, and of x y if ``overlap`` is set, else of \|x - y\|.
    """

    overlap: bool
    above: tuple[float, float, float]
    below: tuple[float, float, float]
    smooth: float = 0.0
    gamma: float = 1.0


class Overlaps:
    """A call of the kernels: first the mean over the sets, then the gradient in the logits."""

    def __init__(
        self,
        logits: torch.Tensor,
        target: torch.Tensor,
        ignore: int | None,
        classes: list[int],
        present: bool,
        weight: torch.Tensor | None,
        per_image: bool,
        activation: str,
        quotient: Quotient,
    ) -> None:
        images, number, pixels = logits.shape
        soft = target.ndim == 3
        void = void_label(ignore, target.dtype)
        self._macros = (
            ("SCORE", SCORES[logits.dtype]),
            ("LABEL", LABELS[target.dtype]),
            ("CLASSES", number),
            ("ACTIVATION", _ACTIVATIONS[activation]),
            ("FROM_LOGITS", int(activation == "softmax")),
            ("SOFT", int(soft)),
            ("OVERLAP", int(quotient.overlap)),
            ("PRESENT", int(present)),
            ("HAS_IGNORE", int(void is not None)),
        )
        self._logits, self._target = logits, target
        self._weights = weights_of(classes, weight, number, logits.device)
        self._groups = images if per_image else 1
        self._rest = (
            images,
            pixels,
            self._groups,
            void or 0,
            *logits.stride(),
            *quotient.above,
            *quotient.below,
            quotient.smooth,
            quotient.gamma,
        )
        self._shared = 8 * (THREADS // 32) * ((4 if soft else 3) * number + 1)

    def _kernel(self, name: str) -> Any:
        return kernel(
            ("pixels.cuh", "overlaps.cu"),
            name,
            self._macros,
            self._shared if name == "sums" else 0,
            self._logits.device.index,
            (THREADS, 1),
            together=False,
        )

    def can_run(self) -> bool:
        """Return whether both kernels can run."""
        self._sums = self._kernel("sums")
        return self._sums is not None and self._kernel("gradient") is not None

    def _launch(self, program: Any, slopes: torch.Tensor, *places: int) -> None:
        """Launch a kernel with the addresses of its buffers, in the order of its structure."""
        partial, sets, of_group, marks, total, upwards, gradient = places
        arguments = _ARGUMENTS.pack(
            self._logits.data_ptr(),
            self._target.data_ptr(),
            self._weights.data_ptr(),
            partial,
            sets,
            of_group,
            marks,
            total,
            slopes.data_ptr(),
            upwards,
            gradient,
            *self._rest,
        )
        stream = torch._C._cuda_getCurrentRawStream(self._logits.device.index)
        program.launch(arguments, stream)

    def mean(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean, a scalar tensor, and its slopes (T, C, 2)."""
        device, groups, number = self._logits.device, self._groups, self._logits.shape[1]
        program = self._sums
        stream = torch._C._cuda_getCurrentRawStream(device.index)
        parts = 32 * number * (groups + program.blocks)
        zero, scratch = workspaces(device, stream, 8, parts + 32 * number * groups + 8 * groups)
        total = torch.empty((), dtype=torch.float32, device=device)
        slopes = torch.empty(groups, number, 2, dtype=torch.float32, device=device)
        at = scratch.data_ptr()
        sets, of_group = at + parts, at + parts + 32 * number * groups
        self._launch(program, slopes, at, sets, of_group, zero.data_ptr(), total.data_ptr(), 0, 0)
        return total, slopes

    def gradient(self, slopes: torch.Tensor, upwards: torch.Tensor) -> torch.Tensor:
        """Return the gradient in the logits, in their dtype."""
        x = self._logits
        gradient = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
        upwards = upwards.float()
        places = (0, 0, 0, 0, 0, upwards.data_ptr(), gradient.data_ptr())
        self._launch(self._kernel("gradient"), slopes, *places)
        return gradient


def fits(logits: torch.Tensor, target: torch.Tensor) -> bool:
    """Return whether the kernels support logits (N, C, ...) and a target of any shape."""
    return (
        logits.dtype in SCORES
        and target.dtype in LABELS
        and 0 < logits.shape[1] <= IN_REGISTERS
        and logits.numel() > 0
    )
