r"""Losses that are quotients of sums over a set: soft Dice, Tversky and the two metric losses.

The probabilities x and truths y of a class are in [0, 1], and :math:`|x| = \sum_i x_i`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, TypedDict, Unpack

import torch
from torch import Tensor

from setwise._foundation._keywords import hints_at_names
from setwise.torch._class_loss import Activation, ClassLoss
from setwise.torch._cuda._overlaps import Quotient
from setwise.torch._inputs._averages import Average
from setwise.torch._inputs._class_targets import ClassTable
from setwise.torch._inputs._sets import Reduction
from setwise.torch._inputs._softmax_options import Classes, SoftmaxOptions, read_classes


def _number(name: str, value: object, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not least <= number < float("inf"):
        raise ValueError(f"{name} must be finite and at least {least:g}, got {number:g}")
    return number


def _quotient_of(above: Tensor, below: Tensor) -> Tensor:
    """Return above / below, and 1 where both are 0."""
    return torch.where(below > 0, above / torch.where(below > 0, below, 1.0), 1.0)


class ClassOptions(TypedDict, total=False):
    """The options that all losses of overlaps share."""

    activation: Activation
    classes: Classes
    per_image: bool
    ignore_index: int | None
    reduction: Reduction
    weight: Any
    average: Average
    worst: float | None
    across_ranks: bool


class _OverlapLoss(ClassLoss):
    """The base class of the losses of overlaps; its options are those of ``LovaszSoftmaxLoss``."""

    @hints_at_names
    def __init__(
        self,
        *,
        activation: Activation = "softmax",
        classes: Classes = "present",
        per_image: bool = False,
        ignore_index: int | None = None,
        reduction: Reduction = "mean",
        weight: Any = None,
        average: Average = "images",
        worst: float | None = None,
        across_ranks: bool = False,
    ) -> None:
        options = SoftmaxOptions(
            read_classes(classes),
            per_image,
            ignore_index,
            reduction,
            average=average,
            worst=worst,
        )
        super().__init__(activation, weight, across_ranks, options)


class SoftDiceLoss(_OverlapLoss):
    r"""The soft Dice loss, the baseline of segmentation.

    The loss of a class is :math:`1 - (2 \langle x, y \rangle + s) / (|x| + |y| + s)`. It equals the
    Dice loss if x and y are 0 or 1 and s = 0. With soft labels its minimum is not at x = y; use
    ``DiceSemimetricLoss`` for soft labels.

    Parameters
    ----------
    smooth : float
        The number s >= 0. For a class without truth the gradient is 0 unless s > 0.
    activation : {"softmax", "sigmoid", "none"}
        How logits become probabilities: "softmax" for one class per pixel, "sigmoid" for separate
        classes, and "none" if the input holds probabilities. Classes are dimension 1 in each case,
        so that a binary mask has shape (N, 1, ...).
    classes, per_image, ignore_index, reduction, weight, average, worst, across_ranks
        As for ``LovaszSoftmaxLoss``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.SoftDiceLoss(activation="sigmoid", per_image=True)
    >>> criterion(torch.zeros(2, 1, 8, 8), torch.ones(2, 1, 8, 8)).round(decimals=4).item()
    0.333...
    """

    def __init__(self, *, smooth: float = 0.0, **options: Unpack[ClassOptions]) -> None:
        super().__init__(**options)
        self.smooth = _number("smooth", smooth, 0.0)

    def _of_sets(self, p: Tensor, table: ClassTable) -> Tensor:
        both = table.over_sets(p * table.truth)
        total = table.over_sets(p) + table.over_sets(table.truth)
        return 1 - _quotient_of(2 * both + self.smooth, total + self.smooth)

    def _quotient(self) -> Quotient:
        return Quotient(True, (0.0, 0.0, 2.0), (1.0, 1.0, 0.0), self.smooth)


class TverskyLoss(_OverlapLoss):
    r"""The Tversky loss, which weights false positives and false negatives separately.

    With :math:`t = \langle x, y \rangle`, the loss of a class is
    :math:`1 - (t + s) / (t + \alpha (|x| - t) + \beta (|y| - t) + s)`. With alpha =
    beta = 1/2 it is soft Dice, and with alpha = beta = 1 soft Jaccard. Its power ``gamma`` is the
    focal Tversky loss.

    Parameters
    ----------
    alpha, beta : float
        The weights of false positives and of false negatives, not negative.
    gamma : float
        The power; it increases small losses below 1 and decreases them above 1.
    smooth : float
        As for ``SoftDiceLoss``.
    activation, classes, per_image, ignore_index, reduction, weight, average, worst, across_ranks
        As for ``SoftDiceLoss``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits, target = torch.zeros(1, 2, 4), torch.tensor([[0, 0, 0, 1]])
    >>> round(sw.torch.TverskyLoss(alpha=0.3, beta=0.7)(logits, target).item(), 4)
    0.5299
    >>> focal = sw.torch.TverskyLoss(alpha=0.3, beta=0.7, gamma=0.75)
    """

    def __init__(
        self,
        *,
        alpha: float = 0.5,
        beta: float = 0.5,
        gamma: float = 1.0,
        smooth: float = 0.0,
        **options: Unpack[ClassOptions],
    ) -> None:
        super().__init__(**options)
        self.alpha, self.beta = _number("alpha", alpha, 0.0), _number("beta", beta, 0.0)
        self.gamma, self.smooth = _number("gamma", gamma, 0.0), _number("smooth", smooth, 0.0)

    def _of_sets(self, p: Tensor, table: ClassTable) -> Tensor:
        both = table.over_sets(p * table.truth)
        false = table.over_sets(p) - both
        missed = table.over_sets(table.truth) - both
        below = both + self.alpha * false + self.beta * missed + self.smooth
        values = 1 - _quotient_of(both + self.smooth, below)
        if self.gamma == 1:
            return values
        # With gamma < 1 the slope at 0 is infinite: a set without loss gets the slope 0.
        some = values > 0
        return torch.where(some, torch.where(some, values, 1.0) ** self.gamma, 0.0)

    def _quotient(self) -> Quotient:
        below = (self.alpha, self.beta, 1 - self.alpha - self.beta)
        return Quotient(True, (0.0, 0.0, 1.0), below, self.smooth, self.gamma)


class JaccardMetricLoss(_OverlapLoss):
    r"""The Jaccard metric loss, for soft labels too.

    The loss of a class is :math:`1 - (|x| + |y| - |x - y|) / (|x| + |y| + |x - y|)`, which equals
    :math:`1 - \sum_i \min(x_i, y_i) / \sum_i \max(x_i, y_i)`. It is a metric on [0, 1]^n, 0 only
    at x = y, and the Jaccard loss if x and y are 0 or 1 (Wang, Ning and Blaschko 2023).

    Networks of several classes that are trained with it from the start often lose the rare ones,
    and a warm-up or a share of cross-entropy makes this worse. Use ``LovaszSoftmaxLoss`` there; the
    guide on PyTorch has the figures.

    Parameters
    ----------
    activation, classes, per_image, ignore_index, reduction, weight, average, worst, across_ranks
        As for ``SoftDiceLoss``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> p = torch.tensor([[[0.9, 0.2], [0.1, 0.8]]])
    >>> criterion = sw.torch.JaccardMetricLoss(activation="none")
    >>> criterion(p, p.clone()).item()
    0.0
    """

    def __init__(self, **options: Unpack[ClassOptions]) -> None:
        super().__init__(**options)

    def _of_sets(self, p: Tensor, table: ClassTable) -> Tensor:
        total = table.over_sets(p) + table.over_sets(table.truth)
        apart = table.over_sets((p - table.truth).abs())
        return 1 - _quotient_of(total - apart, total + apart)

    def _quotient(self) -> Quotient:
        return Quotient(False, (1.0, 1.0, -1.0), (1.0, 1.0, 1.0))


class DiceSemimetricLoss(_OverlapLoss):
    r"""The Dice semimetric loss, for soft labels too.

    The loss of a class is :math:`|x - y| / (|x| + |y|)`. It is 0 only at x = y, and the Dice loss
    if x and y are 0 or 1 (Wang, Popordanoska, Bertels, Lemmens and Blaschko 2023).

    Parameters
    ----------
    activation, classes, per_image, ignore_index, reduction, weight, average, worst, across_ranks
        As for ``SoftDiceLoss``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits, target = torch.zeros(1, 2, 4), torch.tensor([[0, 0, 0, 1]])
    >>> round(sw.torch.DiceSemimetricLoss(classes="all")(logits, target).item(), 4)
    0.5333
    """

    def __init__(self, **options: Unpack[ClassOptions]) -> None:
        super().__init__(**options)

    def _of_sets(self, p: Tensor, table: ClassTable) -> Tensor:
        total = table.over_sets(p) + table.over_sets(table.truth)
        return 1 - _quotient_of(total - table.over_sets((p - table.truth).abs()), total)

    def _quotient(self) -> Quotient:
        return Quotient(False, (1.0, 1.0, -1.0), (1.0, 1.0, 0.0))
