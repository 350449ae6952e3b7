"""Losses of CPU tensors by the compiled kernels, without a copy where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setwise._foundation import _kernels
from setwise._foundation._arguments import FloatArray
from setwise.losses import Loss
from setwise.losses._labels import HAS_MINUS, HAS_OTHER, HAS_ZERO, Labels
from setwise.surrogates import Surrogate, get
from setwise.surrogates._rows import ScoredRows
from setwise.torch._inputs._labels import MEANT, NO_MIXTURE, comparable, voids
from setwise.torch._inputs._sets import HALVES
from setwise.torch._reference._hinge import Answer

_HAS_VOID = 16  # a bit in addition to those of ``setwise.losses``
_SAFE = -1e30  # the score of void elements, which are treated as negatives that violate no margin


@cache
def is_compiled() -> bool:
    """Return whether the compiled kernels are installed; ``setwise.torch`` runs without them."""
    try:
        return find_spec("setwise._core") is not None and find_spec("scipy") is not None
    except ImportError:
        return False


@lru_cache(64)
def surrogate_of(kind: str, loss: Loss, scale: float) -> Surrogate:
    """Return the NumPy surrogate of the given name."""
    return get(kind, loss, scale=scale) if kind == "margin" else get(kind, loss)


def codes_of(target: Tensor, ignore: float) -> tuple[NDArray[np.uint8], bool]:
    """Return flat codes, 0 for negative, 1 for positive and 2 for void, and whether any is void."""
    if target.dtype == torch.bool:
        target = target.view(torch.uint8)
        if ignore not in (0.0, 1.0):
            return target.reshape(-1).numpy(), False
    if target.dtype in HALVES:
        target = target.float()
    flat = comparable(target).reshape(-1).numpy()
    codes = np.empty(flat.size, np.uint8)
    seen = _kernels.encode_targets(flat, ignore, codes)
    if seen & HAS_OTHER:
        wrong = flat[~np.isin(flat, (-1, 0, 1, ignore))][0]
        raise ValueError(f"{MEANT}, got {wrong}")
    if seen & HAS_MINUS and seen & HAS_ZERO:
        raise ValueError(NO_MIXTURE)
    return codes, bool(seen & _HAS_VOID)


def hinge(surrogate: Surrogate, scores: Tensor, target: Tensor, ignore: float) -> Answer | None:
    """Return the values and the gradient of S sets.

    The result is None if void elements cannot be left out or a score is not finite.
    """
    n_sets, n = scores.shape
    wide = scores if scores.dtype == torch.float64 else scores.float()
    flat = wide.reshape(-1).numpy()
    codes, some_void = codes_of(target, ignore)
    if some_void and surrogate._traits.ignores_safe_negatives:
        # Void elements become negatives that violate no margin.
        flat = np.where(codes == 2, flat.dtype.type(_SAFE), flat)
        codes, some_void = np.where(codes == 2, np.uint8(0), codes), False
    if not some_void:
        if not _kernels.all_finite(flat):
            return None
        labels = Labels(codes, np.arange(n_sets + 1) * n, "rows", (n_sets, n))
        values, gradient = surrogate.evaluate(ScoredRows(labels, flat))
    else:
        if not surrogate.loss._traits.is_symmetric:
            return None
        kept = codes != 2
        flat, codes = flat[kept], codes[kept]
        if not _kernels.all_finite(flat):
            return None
        sizes = np.count_nonzero(kept.reshape(n_sets, n), axis=1)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = ScoredRows(Labels(codes, offsets, "ragged", codes.shape), flat)
        values, slopes = surrogate.evaluate(rows)
        gradient = np.zeros(n_sets * n, flat.dtype)
        gradient[kept] = slopes
    return torch.from_numpy(values).to(wide.dtype), torch.from_numpy(gradient).view(n_sets, n)


def in_buckets(
    loss: Loss, scores: Tensor, target: Tensor, ignore: float, buckets: int
) -> Answer | None:
    """Return the Lovász hinge of S sets by counting their errors; None in double precision."""
    if scores.dtype == torch.float64:
        return None
    codes, _ = codes_of(target, ignore)
    half = scores.dtype != torch.float32
    values = np.empty(len(scores))
    gradient = np.empty(scores.shape, np.float32)
    flat = (scores.view(torch.uint16) if half else scores).reshape(-1).numpy()
    if not half and not _kernels.all_finite(flat):
        return None
    how: Any = _errors_of_bits(scores.dtype) if half else buckets
    if loss._fraction is not None:
        kernel = _kernels.bucket_ratio_16 if half else _kernels.bucket_ratio
        kernel(codes, flat, *loss._fraction._constants, how, values, gradient.reshape(-1))
    else:
        sizes = np.count_nonzero(codes.reshape(scores.shape) != 2, axis=1)
        family = loss._table_rows(_of_sizes(sizes))
        assert family is not None
        table = _kernels.bucket_table_16 if half else _kernels.bucket_table
        table(codes, flat, family.tables, family.starts, how, values, gradient.reshape(-1))
    if not np.isfinite(values).all():  # a score in half precision is not finite
        return None
    return torch.from_numpy(values).float(), torch.from_numpy(gradient)


def _of_sizes(sizes: NDArray[np.int64]) -> Labels:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Labels(np.zeros(offsets[-1], np.uint8), offsets, "ragged", (int(offsets[-1]),))


@cache
def _errors_of_bits(dtype: torch.dtype) -> FloatArray:
    """Return the errors 1 + x of all 16-bit numbers x = -g y, in ascending order of x."""
    keys = np.arange(1 << 16)
    bits = np.where(keys < 1 << 15, 0xFFFF ^ keys, keys ^ 0x8000).astype(np.uint16)
    errors = 1.0 + torch.from_numpy(bits).view(dtype).double()
    return torch.where(errors.isfinite(), errors, torch.nan).numpy()


def classes(
    probabilities: Tensor,
    target: Tensor,
    loss: Loss,
    ignore: int | None,
    named: Sequence[int],
    per_image: bool,
    buckets: int,
) -> Answer | None:
    """Return values (T, K) and gradient (N, K, P) of classes; None if no kernel computes them."""
    if loss._fraction is None or probabilities.dtype != torch.float32:
        return None
    n_images, n_classes, n_pixels = probabilities.shape
    flat = probabilities.reshape(-1).numpy()
    n_sets = n_images if per_image else 1
    if n_images == 0 or n_images // n_sets * len(named) * n_pixels >= 1 << 31:
        return None
    if not _kernels.all_finite(flat):
        return None
    void = voids(target, ignore)
    labels = target.to(torch.int32)
    if void is not None:
        labels = labels.masked_fill(void, -1)
    values = np.empty(n_sets * len(named))
    gradient = np.empty((n_images, len(named), n_pixels), np.float32)
    _kernels.lovasz_classes(
        flat,
        labels.reshape(-1).numpy(),
        n_images,
        n_classes,
        np.array(named, np.int32),
        per_image,
        *loss._fraction._constants,
        buckets,
        values,
        gradient.reshape(-1),
    )
    return (
        torch.from_numpy(values).view(n_sets, len(named)).float(),
        torch.from_numpy(gradient),
    )
