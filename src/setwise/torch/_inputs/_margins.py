"""Class labels for the losses of scores, by the margin of each class over the others."""

from __future__ import annotations

import torch
from torch import Tensor

from setwise.torch._inputs._labels import check_classes, comparable, voids


def are_classes(input: Tensor, target: Tensor) -> bool:
    """Return whether the target names a class for each pixel of input (N, C, ...), C > 1."""
    return (
        input.ndim >= 2
        and input.shape[1] > 1
        and not target.is_floating_point()
        and target.shape == input.shape[:1] + input.shape[2:]
    )


def one_against_the_rest(
    input: Tensor, target: Tensor, ignore: int | None
) -> tuple[Tensor, Tensor, int | None]:
    r"""Return margins :math:`z_c - \max_{k \ne c} z_k`, truths (N, C, ...), and the void label.

    The margin of a class is positive where it is predicted: positive margins are the mask of the
    class by argmax, and every loss of scores bounds the loss of that mask.
    """
    target = comparable(target)
    check_classes(target, input.shape[1], ignore)
    largest = input.topk(2, dim=1).values
    first, second = largest[:, :1], largest[:, 1:]
    margins = input - torch.where(
        input == first, torch.where(first == second, first, second), first
    )
    classes = torch.arange(input.shape[1], device=input.device)
    classes = classes.view(-1, *(1,) * (input.ndim - 2))
    truths = (target.unsqueeze(1) == classes).to(torch.uint8)
    void = voids(target, ignore)
    if void is None:
        return margins, truths, None
    return margins, torch.where(void.unsqueeze(1), 255, truths), 255
