"""The Lovász-sigmoid loss of separate masks, with hard or soft labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setwise._foundation._keywords import hints_at_names
from setwise.losses import Loss
from setwise.torch._inputs._class_targets import check_degrees
from setwise.torch._inputs._labels import NO_MIXTURE, comparable, read_target, voids
from setwise.torch._inputs._loss_words import constant, loss_of, word_of
from setwise.torch._inputs._sets import (
    Reduction,
    ScoreOptions,
    as_rows,
    check_input,
    fitting,
    reduced,
    same_shape,
)
from setwise.torch._inputs._weights import on_device
from setwise.torch._lovasz_hinge import check_extension
from setwise.torch._operators._eager import is_transformed
from setwise.torch._operators._gather import gathered
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._operators._nodes import values_of_classes, values_of_rows
from setwise.torch._reference._soft_jaccard import soft_jaccard, soft_scale
from setwise.torch._score_loss import SurrogateLoss, checked_weight


@compiled_with_operators
def lovasz_sigmoid(
    input: Tensor,
    target: Tensor,
    loss: Loss | str = "jaccard",
    *,
    per_image: bool = False,
    per_class: bool = False,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
    weight: Any = None,
    buckets: int | None = None,
) -> Tensor:
    """Return the Lovász-sigmoid of a set loss; see ``LovaszSigmoidLoss`` for the arguments.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> soft = torch.tensor([0.9, 0.6, 0.1])
    >>> round(sw.torch.lovasz_sigmoid(torch.logit(soft), soft).item(), 4)
    0.0
    """
    options = ScoreOptions(per_image, per_class, ignore_index, reduction, buckets)
    check_extension(loss, options.buckets)
    return of_masks(input, target, loss, checked_weight(weight, options), options)


@constant
def scale_of_soft(loss: Loss | str) -> float | None:
    """Return a if the loss is a times Jaccard, or None, because only Jaccard has soft labels."""
    return soft_scale(loss_of(word_of(loss)))


@constant
def has_hinge(word: str) -> bool:
    """Return whether the Lovász hinge of the loss has the value of its extension."""
    return loss_of(word).is_submodular is not False


def of_masks(
    input: Tensor, target: Tensor, loss: Loss | str, weight: Tensor | None, options: ScoreOptions
) -> Tensor:
    """Return the extension of every set, reduced."""
    check_input(input, target)
    target = same_shape(input, target)
    fitting(weight, input.shape)
    weight = on_device(weight, input)
    wide = torch.float64 if input.dtype == torch.float64 else torch.float32
    p, y = torch.sigmoid(as_rows(input, options).to(wide)), as_rows(target, options)
    scale = scale_of_soft(loss)
    if y.is_floating_point() and scale is not None:
        void = voids(y, options.ignore_index)
        if not is_transformed() and not torch.compiler.is_compiling():
            _check_degrees(y, void)
        truth = torch.where(y == -1, 0.0, y.to(wide))
        values = scale * soft_jaccard(p, truth, None if void is None else ~void, options.counted)
    else:
        values = _of_labels(p, y, word_of(loss), options)
    return reduced(values, input.shape, weight, options)


def _check_degrees(y: Tensor, void: Tensor | None) -> None:
    """Check that labels are soft, in [0, 1], or hard, in {-1, +1}."""
    minus, other = y == -1, (y >= 0) & (y < 1)
    if void is not None:
        minus, other = minus & ~void, other & ~void
    check_degrees(y, minus if void is None else void | minus)
    mixed = minus.any() & other.any()
    if y.device.type != "cpu":
        torch._assert_async(~mixed, NO_MIXTURE)
    elif bool(mixed):
        raise ValueError(NO_MIXTURE)


def _of_labels(p: Tensor, target: Tensor, word: str, options: ScoreOptions) -> Tensor:
    """Return the values (S,) of hard labels.

    A submodular loss has a hinge, whose errors are 1 - p at the score p of a positive and p at the
    score p - 1 of a negative. Any other loss is computed as that of class 1 of two classes, with
    every set as an image.
    """
    if not torch.compiler.is_compiling() and not is_transformed():
        read_target(target, options.ignore)  # raises an error for wrong labels
    target = comparable(target)
    positive, void = target > 0, voids(target, options.ignore)
    if has_hinge(word):
        scores = torch.where(positive, p, p - 1)
        rest = ("lovasz", word, options.ignore, options.counted, 1.0)
        return values_of_rows(scores, target, *rest)
    labels = positive.to(torch.uint8)
    if void is not None:
        labels = torch.where(void, 255, labels)
    how = (word, None if void is None else 255, [1], True, options.counted)
    both = torch.stack([1 - p, p], 1)
    return values_of_classes(both, labels, *how)[:, 0]


class LovaszSigmoidLoss(SurrogateLoss):
    r"""The Lovász extension of a set loss on the errors of masks, for multi-label logits.

    With p the sigmoid of the logits and y the truth, the errors are :math:`e_i = |p_i - y_i|`. Let
    them be sorted in decreasing order, and let mu be the gains of the loss along that order. The
    value of a set is :math:`\sum_i e_i \mu_i`. It equals the loss where all p are 0 or 1, and is at
    most the loss of everything wrong. Unlike ``LovaszHingeLoss`` it is not convex in the logits.

    For Jaccard, floating targets are soft labels in [0, 1], as for ``LovaszSoftmaxLoss``. Other
    losses take floats that are 0 or 1.

    Parameters
    ----------
    loss : Loss or str
        Any loss of counts, or a submodular loss.
    per_image, per_class, ignore_index, reduction, weight, across_ranks
        As for ``LovaszHingeLoss``.
    buckets
        As for ``LovaszSoftmaxLoss``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.LovaszSigmoidLoss("dice", per_image=True)
    >>> criterion(torch.zeros(2, 1, 8, 8), torch.ones(2, 1, 8, 8)).item()
    0.5
    """

    @hints_at_names
    def __init__(
        self,
        loss: Loss | str = "jaccard",
        *,
        per_image: bool = False,
        per_class: bool = False,
        ignore_index: int | None = None,
        reduction: Reduction = "mean",
        weight: Any = None,
        buckets: int | None = None,
        across_ranks: bool = False,
    ) -> None:
        super().__init__(
            loss,
            per_image=per_image,
            per_class=per_class,
            ignore_index=ignore_index,
            reduction=reduction,
            weight=weight,
            buckets=buckets,
            across_ranks=across_ranks,
        )
        check_extension(self.loss, buckets)

    @compiled_with_operators
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits for their targets."""
        if self.across_ranks:
            input, target = gathered(input), gathered(target)
        return of_masks(input, target, self._word, self.weight, self.options)
