r"""Means of the values of classes and images, as in fine-grained mIoU.

Let :math:`v_{ic}` be the value of class c on image i, which counts where :math:`k_{ic}` is true,
and let w be the class weights:

- "images" is the mean over images of :math:`\sum_c w_c k_{ic} v_{ic} / \sum_c w_c k_{ic}`;
- "classes" is :math:`\sum_c w_c u_c / \sum_c w_c` over the classes that occur, with
  :math:`u_c` the mean of :math:`v_{ic}` over the images that have class c;
- ``worst`` = q takes the mean over the q n largest of n values, rounded up: over all images, or
  over the images of each class (fine-grained mIoU, arXiv 2310.19252).
"""

from __future__ import annotations

from numbers import Real
from typing import Literal

import torch
from torch import Tensor

from setwise._foundation._arguments import did_you_mean

Average = Literal["images", "classes"]


def check_average(average: object, worst: object, per_image: bool) -> None:
    """Check ``average`` and ``worst``; values other than the defaults need ``per_image``."""
    if average not in ("images", "classes"):
        near = did_you_mean(average, ("images", "classes"))
        raise ValueError(f"average must be 'images' or 'classes', got {average!r}{near}")
    if worst is not None:
        if isinstance(worst, bool) or not isinstance(worst, Real):
            raise TypeError(f"worst must be a number in (0, 1] or None, got {worst!r}")
        if not 0 < float(worst) <= 1:
            raise ValueError(f"worst must lie in (0, 1] or be None, got {worst}")
    if (average != "images" or worst is not None) and not per_image:
        raise ValueError(
            "per_image must be True for a mean over the images of a class or for the worst of "
            f"them, got average={average!r} and worst={worst} with False"
        )


def mean_of_sets(
    values: Tensor, counts: Tensor, weight: Tensor | None, average: Average, worst: float | None
) -> Tensor:
    """Return the mean of the values (T, K) that count, a mask (T, K); 0 if none counts."""
    wide = torch.where(counts, values, 0.0).double()
    weights = counts.double()
    if weight is not None:
        weights = weights * weight.double()
    if average == "images":
        some = weights.sum(1) > 0
        of_images = (weights * wide).sum(1) / torch.where(some, weights.sum(1), 1.0)
        return _mean_of_largest(of_images[:, None], some[:, None], worst)[0].to(values.dtype)
    met = counts.any(0)
    of_classes = _mean_of_largest(wide, counts, worst)
    scales = met.double() if weight is None else met * weight.double()
    total = scales.sum()
    mean = (scales * of_classes).sum() / torch.where(total > 0, total, 1.0)
    return mean.to(values.dtype)


def _mean_of_largest(values: Tensor, counts: Tensor, worst: float | None) -> Tensor:
    """Return the mean (K,) of the values of each column that count, or of the largest of them."""
    number = counts.sum(0)
    if worst is None:
        total = torch.where(counts, values, 0.0).sum(0)
        return total / number.clamp(min=1)
    largest = torch.where(counts, values, -torch.inf).sort(0, descending=True).values
    # A share of 0.3 of ten values is three, although 0.3 * 10 may be rounded up.
    kept = (number * worst - 1e-9).ceil()
    taken = torch.arange(len(values), device=values.device)[:, None] < kept
    return torch.where(taken, largest, 0.0).sum(0) / kept.clamp(min=1)
