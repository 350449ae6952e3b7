"""The Lovász hinge in plain torch on every device, with sums in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from setwise.losses import Loss
from setwise.losses._labels import Labels
from setwise.surrogates import LovaszHinge
from setwise.torch._inputs._labels import read_target
from setwise.torch._reference._gains import Chain, gains, rises, split_labels

Answer = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Sets:
    """The margins g y and truths of S sets of n elements, and the elements that count."""

    margins: Tensor
    """(S, n), float32 or float64; infinite where void."""
    positive: Tensor
    """(S, n), bool; False where void."""
    valid: Tensor | None
    """(S, n), bool; None if every element is."""
    offset: float = 1.0
    """The error of an element is offset - margin."""

    @classmethod
    def read(cls, scores: Tensor, target: Tensor, ignore: float) -> Sets:
        """Read scores and targets (S, n): positive is target > 0, void is target == ignore."""
        positive, valid = read_target(target, ignore)
        wide = scores.double() if scores.dtype == torch.float64 else scores.float()
        margins = torch.where(positive, wide, -wide)
        if valid is not None:
            margins = torch.where(valid, margins, math.inf)
        return cls(margins, positive, valid)

    def labels(self) -> Labels:
        """Return the sets on the host, with their positives first."""
        negative = ~self.positive if self.valid is None else ~self.positive & self.valid
        return split_labels(self.positive.sum(1), negative.sum(1))

    def signed(self, slopes: Tensor) -> Tensor:
        """Return y times the slopes."""
        return torch.where(self.positive, slopes, -slopes)

    def answer(self, values: Tensor, slopes: Tensor) -> Answer:
        """Return the values (S,) and the gradient, y times slopes, in the precision of the margins.

        The value and the gradient of a set with a NaN margin are NaN.
        """
        spoilt = self.margins.isnan().any(1) if self.margins.shape[1] else values.isnan()
        values = torch.where(spoilt, math.nan, values)
        gradient = torch.where(spoilt[:, None], math.nan, self.signed(slopes))
        return values.to(self.margins.dtype), gradient.to(self.margins.dtype)


def lovasz(loss: Loss, sets: Sets) -> Answer | None:
    """Return the Lovász hinge of each set; None if only the host has the gains."""
    chain, along = Chain.sort(sets.margins, sets.positive, sets.valid)
    steps = gains(loss, chain)
    if steps is None:
        return None
    componentwise = _componentwise(loss, chain)
    if componentwise is None:
        return None
    errors = sets.offset - along.double()
    counted = (errors > 0) | ~componentwise
    if sets.valid is not None:
        counted = counted & sets.valid.gather(1, chain.order)
    steps = torch.where(counted, steps, 0.0)
    # An infinite error with gain 0 contributes nothing, and neither does a void element.
    values = torch.where(steps == 0, 0.0, errors * steps).sum(1)
    keep = componentwise.view(-1) | (values > 0)
    values = torch.where(keep, values, 0.0)
    steps = torch.where(keep[:, None], steps, 0.0)
    slopes = torch.zeros_like(steps).scatter_(1, chain.order, -steps)
    return sets.answer(values, slopes)


def _componentwise(loss: Loss, chain: Chain) -> Tensor | None:
    """Return a mask (S, 1) of the sets with an increasing loss, for which only violators count."""
    every = torch.ones_like(chain.positives, dtype=torch.bool)
    if loss.is_increasing:
        return every
    known = rises(loss, chain)
    if known is not None:
        return known
    family = loss._table_rows(chain.labels())
    if family is None:
        return None
    hinge = LovaszHinge(loss)
    flags = [hinge._componentwise(loss, function) for function in family.functions]
    which = torch.tensor(family.which, device=every.device)
    return torch.tensor(flags, dtype=torch.bool, device=every.device)[which][:, None]
