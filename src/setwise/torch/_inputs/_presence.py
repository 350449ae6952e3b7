"""The probabilities of pixels given the probability that their set is not empty.

The model is documented in ``setwise.decisions._presence``; this solves its equation for tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, MANY_ROUNDINGS

# As in setwise.decisions._presence, which needs the compiled kernels.
_LEAST_SCALE = FEW_ROUNDINGS * MANY_ROUNDINGS * EPS
_LEAST_PRESENCE = torch.finfo(torch.float64).tiny
# The most float64 probabilities that are in memory at a time: 256 MiB. More of them do not make a
# device faster.
_AT_ONCE = 1 << 25


def as_presence(presence: object, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the presence as a flat tensor of numbers in [0, 1], one for each set."""
    if not isinstance(presence, Tensor):
        raise TypeError(f"presence must be a tensor, got {type(presence).__name__}")
    if presence.dtype.is_complex or presence.dtype == torch.bool:
        raise TypeError(f"presence must hold real numbers, got {presence.dtype}")
    if tuple(presence.shape) != shape:
        raise ValueError(
            f"presence must have a number for each set, shape {shape}, got {tuple(presence.shape)}"
        )
    if presence.device != device:
        raise ValueError(
            f"presence must be on the device of input, {device}, got {presence.device}"
        )
    flat = presence.detach().double().reshape(-1)
    if flat.numel():
        low, high = (float(x) for x in torch.aminmax(flat))
        if not (low >= 0 and high <= 1):
            raise ValueError(f"presence must lie in [0, 1], got {low if not low >= 0 else high}")
    return flat


def independent(p: Tensor, presence: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return c p (S, n) in the dtype of p, the factors c (S,) and the presence used (S,)."""
    at_once = max(1, _AT_ONCE // max(p.shape[1], 1))
    rows = range(0, max(len(p), 1), at_once)
    parts = [_independent(p[k : k + at_once], presence[k : k + at_once]) for k in rows]
    chances, scales, there = zip(*parts, strict=True)
    return torch.cat(chances), torch.cat(scales), torch.cat(there)


def _independent(given: Tensor, presence: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    presence = torch.where(presence >= _LEAST_PRESENCE, presence, 0.0)
    p = torch.minimum(given.double(), presence[:, None])
    total = p.sum(1)
    presence = torch.where(total > 0, presence, 0.0)
    short = (total <= presence * (1 + _LEAST_SCALE)) & (total > 0)
    # Divide by the sum first, because it may be the least positive number.
    p = p / torch.where(short, total, 1.0)[:, None] * torch.where(short, presence, 1.0)[:, None]
    active = (presence > 0) & ~short
    scale = torch.where(active, 1 / torch.where(active, presence, 1.0), 1.0)
    scale = torch.where(short, _LEAST_SCALE, scale)
    while len(rows := active.nonzero()[:, 0]):
        some, c, there = p[rows], scale[rows], presence[rows]
        r = (c[:, None] * some).clamp(max=1.0)
        logs = torch.log1p(-r).sum(1)
        product = logs.exp()
        value = -torch.expm1(logs) - c * there
        odds = (some / (1 - r).clamp(min=1e-200)).sum(1)
        slope = product * odds - there
        falls = (value < 0) & (slope < 0)
        step = torch.where(falls, value / slope.clamp(max=-1e-300), 0.0)
        c = (c - step).clamp(min=_LEAST_SCALE)
        scale[rows] = c
        active[rows] = (step > EPS / 2 * c) & (c > _LEAST_SCALE)
    return (scale[:, None] * p).clamp(max=1.0).to(given.dtype), scale, presence
