"""Logits without what the labels of a pixel have in common, and bounds with it added back.

A number that is added to all labels of a pixel changes no marginal and no best labelling, and log Z
by that number. Sums are rounded at the size of their parts, so a large one would cost the digits
that bounds, derivatives and margins are made of. ``setwise.inference`` removes it from the fields
of the host; these functions remove it from tensors.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

# Levels are multiples of _STEP and at most _MOST_LEVEL: 2**31 of them have an exact sum in float64.
_STEP = 64.0
_MOST_LEVEL = 2.0**28


class LevelledLogits(NamedTuple):
    """Logits in double precision, and what was taken out of them.

    In single precision the difference itself would be rounded for labels far below the best one,
    which couplings may choose all the same.
    """

    logits: Tensor
    """(B, L, N)"""
    constant: Tensor
    """(B,): by how much log Z of the given logits is larger"""

    def above(self, bound: Tensor) -> Tensor:
        """Return upper bounds (B,) on log Z of the given logits, rounded up."""
        total = bound + self.constant
        above = torch.nextafter(total, torch.full_like(total, torch.inf))
        return torch.where(self.constant == 0, bound, above)


def levelled(logits: Tensor) -> LevelledLogits:
    """Take a level near the largest logit of each pixel out of logits (B, L, N)."""
    wide = logits.double()
    level = _STEP * torch.trunc(wide.amax(1, keepdim=True) / _STEP)
    level = level.clamp(-_MOST_LEVEL, _MOST_LEVEL)
    return LevelledLogits(wide - level, level.sum((1, 2)))


def centred(logits: Tensor) -> Tensor:
    """Return logits (B, L, N) whose largest of each pixel is 0, for what a constant cancels in."""
    return logits - logits.detach().amax(1, keepdim=True)
