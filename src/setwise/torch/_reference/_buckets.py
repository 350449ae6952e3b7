r"""The Lovász extension of errors that are rounded to buckets, by counting, in plain torch.

Errors in one bucket are treated as equal. Equal errors may be sorted in any order, so a histogram
for each label and a scan over the buckets replace the sort. This takes O(n) and is exact for the
rounded errors. With buckets of width w the value is off by at most :math:`w / 2 \cdot \sum_k
|\mu_k|`, where mu are the gains along the sorted elements, because the extension is a maximum of
linear functions with such coefficients. For an increasing loss the sum is the loss of everything
wrong. The gradient is a subgradient at the rounded errors.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from setwise.losses import Loss
from setwise.torch._reference._gains import is_of_size, split_labels
from setwise.torch._reference._hinge import Answer, Sets


def has_blocks(loss: Loss) -> bool:
    """Return whether the loss increases and has a formula for a block of mistakes."""
    of_size = is_of_size(loss) and loss._traits.is_symmetric
    return (of_size or loss._fraction is not None) and loss.is_increasing is True


def bucketed(loss: Loss, sets: Sets, buckets: int, half: torch.dtype | None) -> Answer:
    """Return the value and a subgradient of each set with its errors rounded to buckets.

    ``half`` is the dtype of the scores if it has 16 bits. Then each possible margin has its own
    bucket, and nothing is rounded.
    """
    errors = (sets.offset - sets.margins.double()).clamp(min=0.0)
    counted = errors > 0  # a NaN is not counted; its set becomes NaN in the end
    if half is not None:
        keys, centers = _of_bits(sets, half)
    else:
        top = errors.new_ones(len(errors), 1)
        if sets.offset != 0 and errors.shape[1]:
            top = torch.where(errors.isfinite(), errors, 0.0).amax(1, keepdim=True)
            top = torch.where(top > 0, top, 1.0)
        keys = (errors / top * buckets).floor().clamp(max=buckets - 1)
        keys = (buckets - torch.where(counted, keys, 0.0)).long()
        centers = (buckets - 0.5 - torch.arange(buckets, device=keys.device)) * (top / buckets)
        # Infinite errors have the first bucket.
        keys = torch.where(errors.isposinf(), 0, keys)
        centers = torch.cat([torch.full_like(top, math.inf), centers], 1)
    size = centers.shape[-1]
    hits, falses = (
        torch.zeros(len(keys), size, dtype=torch.float64, device=keys.device).scatter_add_(
            1, keys, (side & counted).double()
        )
        for side in (sets.positive, ~sets.positive)
    )
    found = sets.positive.sum(1, keepdim=True).double()
    absent = ~sets.positive if sets.valid is None else ~sets.positive & sets.valid
    blocks = _blocks(loss, hits, falses, found, absent.sum(1, keepdim=True).double())
    total = blocks[0] + blocks[1]
    values = torch.where(total == 0, 0.0, total * centers).sum(1)
    mean = [
        torch.where(count > 0, block / count, 0.0)
        for block, count in zip(blocks, (hits, falses), strict=True)
    ]
    steps = torch.where(sets.positive, mean[0].gather(1, keys), mean[1].gather(1, keys))
    return sets.answer(values, torch.where(counted, -steps, 0.0))


def _of_bits(sets: Sets, half: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return buckets in the order of the 16-bit margins, and the error of each."""
    narrow = sets.margins.to(half)
    bits = narrow.view(torch.int16).long()
    keys = torch.where(bits < 0, -bits - 32769, bits) + 32768
    every = torch.arange(65536, device=keys.device) - 32768
    pattern = torch.where(every < 0, -every - 32769, every).to(torch.int16)
    errors = sets.offset - pattern.view(half).double()
    return keys, torch.where(errors > 0, errors, 0.0)[None]


def _blocks(
    loss: Loss, hits: Tensor, falses: Tensor, positives: Tensor, negatives: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gains of the false negatives and of the false positives of each bucket.

    They are means over two orders inside the bucket: positives first, and negatives first.
    """
    n, q = torch.cumsum(hits, 1) - hits, torch.cumsum(falses, 1) - falses
    if loss._fraction is not None:
        a, c, d = loss._fraction._constants
        x = c * positives

        def missing(at: Tensor) -> Tensor:
            below = x - d * n + at
            return hits * (a * below + d * (a * n + at)) / (below * (below - d * hits))

        def adding(at: Tensor) -> Tensor:
            below = x - d * at + q
            return falses * (below - a * at - q) / (below * (below + falses))

        alone = torch.where((q == 0) & (falses > 0), 1.0, 0.0)
        some = positives > 0
        return (
            torch.where(some, (missing(q) + missing(q + falses)) / 2, 0.0),
            torch.where(some, (adding(n) + adding(n + hits)) / 2, alone),
        )
    family = loss._table_rows(split_labels(positives.view(-1), negatives.view(-1)))
    assert family is not None
    tables = torch.tensor(family.tables, device=hits.device)
    starts = torch.tensor(family.starts, device=hits.device)[:, None]
    before, both = (n + q).long() + starts, (hits + falses).long()
    block = tables[before + both] - tables[before]
    share = torch.where(both > 0, hits / both, 0.0)
    return block * share, block * (1 - share)
