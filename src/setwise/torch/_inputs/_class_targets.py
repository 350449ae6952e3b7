"""Targets of class probabilities: class labels, one-hot labels and soft labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from setwise.torch._inputs._labels import asserts, check_classes, comparable, is_mapped, voids

_SOFT = "target must hold soft labels in [0, 1] or ignore_index where it is floating"
_ONE_HOT = "target must be one-hot, one class a pixel, where it has the shape of input"


@dataclass(frozen=True)
class ClassTable:
    """The truths of every class, and the elements that count."""

    truth: Tensor
    """(N, K, P), in [0, 1], in the dtype of the probabilities"""
    valid: Tensor | None
    """a mask (N, K, P); None if every element counts"""
    groups: int
    """the number of sets of images: N or 1"""

    def met(self) -> Tensor:
        """Return a mask (T, K) of the classes that occur in each set of images."""
        return self.over_sets(self.truth) > 0

    def some(self) -> Tensor:
        """Return a mask (T, K) of the sets with an element that counts."""
        if self.valid is None:
            many = self.truth.numel() > 0
            shape = (self.groups, self.truth.shape[1])
            return torch.full(shape, many, device=self.truth.device)
        return self.over_sets(self.valid.to(self.truth.dtype)) > 0

    def over_sets(self, elements: Tensor) -> Tensor:
        """Return sums (T, K) of (N, K, P) over the pixels that count and the images of a set."""
        if self.valid is not None:
            elements = torch.where(self.valid, elements, 0.0)
        sums = elements.sum(2)
        return sums if self.groups == len(sums) else sums.sum(0, keepdim=True)

    def rows(self, elements: Tensor) -> Tensor:
        """Return the elements (T K, n) of each set."""
        if self.groups == len(elements):
            return elements.flatten(0, 1)
        return elements.transpose(0, 1).flatten(1)


def of_classes(tensor: Tensor, classes: Sequence[int]) -> Tensor:
    """Return the given classes (N, K, ...) of (N, C, ...); ``tensor`` itself if these are all."""
    if list(classes) == list(range(tensor.shape[1])):
        return tensor
    return tensor[:, torch.as_tensor(classes, device=tensor.device)]


def is_soft(input: Tensor, target: Tensor) -> bool:
    """Return whether the target holds a degree for each element of the input."""
    return target.is_floating_point() and target.shape == input.shape


def read_table(
    probabilities: Tensor,
    target: Tensor,
    ignore: int | None,
    classes: Sequence[int],
    per_image: bool,
) -> ClassTable:
    """Return the table for classes (N, C, P) and targets (N, P), or (N, C, P) of degrees."""
    groups = len(probabilities) if per_image else 1
    target = comparable(target)
    if target.ndim == probabilities.ndim:
        void = voids(target, ignore)
        check_degrees(target, void)
        truth = of_classes(target, classes).to(probabilities.dtype)
        valid = None if void is None else ~of_classes(void, classes)
    else:
        check_classes(target, probabilities.shape[1], ignore)
        every = torch.arange(probabilities.shape[1], device=target.device)
        chosen = of_classes(every[None, :], classes)
        truth = (target[:, None, :] == chosen[..., None]).to(probabilities.dtype)
        void = voids(target, ignore)
        valid = None if void is None else ~void[:, None, :].expand_as(truth)
    if valid is not None:
        truth = torch.where(valid, truth, 0.0)
    return ClassTable(truth, valid, groups)


def check_degrees(target: Tensor, void: Tensor | None) -> None:
    """Check that degrees that count are in [0, 1]; devices other than the CPU assert it."""
    if target.numel() == 0 or target.dtype == torch.bool or is_mapped(target):
        return
    known = (target >= 0) & (target <= 1)
    if void is not None:
        known = known | void
    if asserts(target):
        torch._assert_async(known.all(), _SOFT)
    elif not bool(known.all()):
        raise ValueError(f"{_SOFT}, got {target[~known][0].item()}")


def labels_of_one_hot(target: Tensor, ignore: int | None) -> Tensor:
    """Return class labels (N, ...) for a one-hot target (N, C, ...) of integers or booleans.

    A pixel is void if all its entries are ``ignore_index``.
    """
    target = comparable(target)
    void = voids(target, ignore)
    dropped = None if void is None else void.all(1)
    good = (((target == 0) | (target == 1)).all(1)) & ((target == 1).sum(1) == 1)
    if dropped is not None:
        good = good | dropped
    if asserts(target):
        torch._assert_async(good.all(), _ONE_HOT)
    elif not is_mapped(target) and not bool(good.all()):
        pixel = target.movedim(1, -1)[~good][0]
        raise ValueError(f"{_ONE_HOT}, got {pixel.tolist()}")
    labels = (target == 1).to(torch.uint8).argmax(1)
    return labels if dropped is None else torch.where(dropped, _as_label(ignore), labels)


def _as_label(ignore: int | None) -> int:
    assert ignore is not None
    assert math.isfinite(ignore)
    return ignore
