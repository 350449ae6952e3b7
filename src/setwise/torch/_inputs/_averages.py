r"""From one value a class and image to a number: the means of fine-grained mIoU, and the worst.

With :math:`v_{ic}` the value of class c on image i, counted where :math:`k_{ic}` is true, and
weights w of the classes:

- "images", the mean over images of :math:`\sum_c w_c k_{ic} v_{ic} / \sum_c w_c k_{ic}`;
- "classes", :math:`\sum_c w_c u_c / \sum_c w_c` over the classes that were met, with
  :math:`u_c` the mean of :math:`v_{ic}` over the images that have class c;
- ``worst`` = q takes the mean over the q n largest values, rounded up, in place of all n: of the
  images, or of the images of each class (fine-grained mIoU, arXiv 2310.19252).
"""

from __future__ import annotations

from numbers import Real
from typing import Literal

import torch
from torch import Tensor

from setwise._foundation._arguments import did_you_mean

Average = Literal["images", "classes"]


def check_average(average: object, worst: object, per_image: bool) -> None:
    """One of the two words and a share in (0, 1], both of images that are sets of their own."""
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
    """The mean of values (T, K) where counts, (T, K) bool, is true; 0 where nothing counts."""
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
    """(K,): of each column the mean of its values that count, or of the largest share of them."""
    number = counts.sum(0)
    if worst is None:
        total = torch.where(counts, values, 0.0).sum(0)
        return total / number.clamp(min=1)
    largest = torch.where(counts, values, -torch.inf).sort(0, descending=True).values
    # A share of 0.3 of ten values is three, though 0.3 * 10 is a little more in floating point.
    kept = (number * worst - 1e-9).ceil()
    taken = torch.arange(len(values), device=values.device)[:, None] < kept
    return torch.where(taken, largest, 0.0).sum(0) / kept.clamp(min=1)
