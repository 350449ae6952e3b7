"""Values of classes from their errors, and their coefficients in the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from setwise.losses import Loss
from setwise.torch import _cpu
from setwise.torch._inputs._labels import check_classes, comparable, voids
from setwise.torch._operators._dispatch import evaluate
from setwise.torch._reference._buckets import bucketed
from setwise.torch._reference._hinge import Answer, Sets, lovasz


def class_values(
    probabilities: Tensor,
    target: Tensor,
    loss: Loss,
    ignore: int | None,
    classes: Sequence[int],
    per_image: bool,
    buckets: int,
) -> Answer:
    """Return values (T, K) of K classes on each of T sets of images, and the gradient (N, K, P).

    The errors of class c are |[target = c] - p_c| for probabilities (N, C, P) in float32 or float64
    and targets (N, P). T is N with ``per_image``, else 1.
    """
    target = comparable(target)
    check_classes(target, probabilities.shape[1], ignore)
    if probabilities.device.type == "cpu" and _cpu.is_compiled():
        answer = _cpu.classes(probabilities, target, loss, ignore, classes, per_image, buckets)
        if answer is not None:
            return answer
    n_images, _, n_pixels = probabilities.shape
    chosen = torch.as_tensor(classes, device=target.device)
    p = probabilities[:, chosen]
    positive = target[:, None, :] == chosen[:, None]
    void = voids(target, ignore)
    valid = None if void is None else ~void[:, None, :].expand_as(positive)
    if valid is not None:
        positive = positive & valid

    def rows(tensor: Tensor) -> Tensor:
        """Return the rows (T * K, n) of the sets."""
        if per_image:
            return tensor.reshape(n_images * len(classes), n_pixels)
        return tensor.transpose(0, 1).reshape(len(classes), n_images * n_pixels)

    values, gradient = _of_rows(
        rows(p), rows(positive), None if valid is None else rows(valid), loss, buckets
    )
    if per_image:
        return values.view(n_images, len(classes)), gradient.view(p.shape)
    gradient = gradient.view(len(classes), n_images, n_pixels).transpose(0, 1)
    return values.view(1, len(classes)), gradient


def _of_rows(p: Tensor, positive: Tensor, valid: Tensor | None, loss: Loss, buckets: int) -> Answer:
    """Return the values and the gradient for the errors |[positive] - p| of each row."""
    margins = torch.where(positive, p - 1, -p)
    if valid is not None:
        margins = torch.where(valid, margins, math.inf)
    sets = Sets(margins, positive, valid, 0.0)
    if buckets:
        return bucketed(loss, sets, buckets, None)
    # A loss that is not submodular has no Lovász hinge, but its Lovász extension exists at errors
    # in [0, 1].
    if p.device.type != "cpu" or not _cpu.is_compiled() or loss.is_submodular is False:
        answer = lovasz(loss, sets)
        if answer is not None:
            return answer
    # The hinge has the same errors at the score p of a positive and the score p - 1 of a negative.
    wide = p.double()
    scores = torch.where(positive, wide, wide - 1)
    target = positive.to(torch.uint8)
    if valid is not None:
        target = torch.where(valid, target, 255)
    values, gradient = evaluate("lovasz", loss, scores, target, 255.0, 0, 1.0)
    return values.to(p.dtype), gradient.to(p.dtype)


# The largest rounding error of sums of probabilities or degrees in half precision: a bit of
# bfloat16 is 0.0078 at 1.
SLACK = 1e-2


def check_probabilities(p: Tensor) -> None:
    """Check numbers on the host: all must be in [0, 1] or NaN. On other devices do nothing."""
    if p.device.type != "cpu" or p.numel() == 0:
        return
    low, high = (bound.item() for bound in torch.aminmax(p.detach()))
    if low < -SLACK or high > 1 + SLACK:
        raise ValueError(
            "input must hold probabilities in [0, 1] with from_logits=False, "
            f"got {low if low < -SLACK else high}"
        )


def coefficients(
    target: Tensor,
    n_classes: int,
    ignore: int | None,
    classes: Sequence[int],
    present: bool,
    weight: Tensor | None,
    per_image: bool,
) -> Tensor:
    """Return the coefficients (T, K) of the classes of each set of images in the mean.

    They are float64. Each row sums to 1, or to 0 if no class counts. Targets are ``comparable``.
    """
    device = target.device
    sets = target if per_image else target.reshape(1, -1)
    weights = torch.ones(len(classes), dtype=torch.float64, device=device)
    if weight is not None:
        weights = weight.to(device, torch.float64)[torch.as_tensor(classes, device=device)]
    weights = weights.expand(len(sets), -1)
    if present:
        weights = (
            weights * _met(sets, n_classes, ignore)[:, torch.as_tensor(classes, device=device)]
        )
    elif (void := voids(sets, ignore)) is not None:  # a set without elements has no loss
        weights = weights * (~void).any(1, keepdim=True)
    total = weights.sum(1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)


def _met(sets: Tensor, n_classes: int, ignore: int | None) -> Tensor:
    """Return a mask (T, C) of the classes that occur in each set of images."""
    index = sets.long()
    if ignore is not None:
        index = torch.where(index == ignore, n_classes, index)
    met = torch.zeros(len(sets), n_classes + 1, dtype=torch.bool, device=sets.device)
    return met.scatter(1, index, True)[:, :-1]
