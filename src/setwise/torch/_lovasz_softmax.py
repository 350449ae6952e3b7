"""The Lovász-softmax loss of multi-class logits or probabilities."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from setwise._foundation._keywords import hints_at_names
from setwise.losses import Loss
from setwise.torch._class_loss import (
    Activation,
    class_weight,
    combined,
    of_probabilities,
    probabilities_of,
    with_classes,
)
from setwise.torch._inputs._averages import Average
from setwise.torch._inputs._class_sets import coefficients
from setwise.torch._inputs._class_targets import ClassTable, is_soft
from setwise.torch._inputs._labels import comparable
from setwise.torch._inputs._loss_words import HoldsLoss, constant, loss_of, word_of
from setwise.torch._inputs._sets import Reduction, check_flags, check_input
from setwise.torch._inputs._softmax_options import Classes, SoftmaxOptions, read_classes
from setwise.torch._inputs._weights import changed, read_weight
from setwise.torch._lovasz_hinge import check_extension
from setwise.torch._operators._eager import is_transformed
from setwise.torch._operators._gather import gathered
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._operators._nodes import mean_over_classes, values_of_classes
from setwise.torch._reference._soft_jaccard import soft_jaccard, soft_scale


@compiled_with_operators
def lovasz_softmax(
    input: Tensor,
    target: Tensor,
    loss: Loss | str = "jaccard",
    *,
    classes: Classes = "present",
    per_image: bool = False,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
    weight: Any = None,
    from_logits: bool = True,
    buckets: int | None = None,
    average: Average = "images",
    worst: float | None = None,
) -> Tensor:
    r"""Return the Lovász-softmax of a set loss; see ``LovaszSoftmaxLoss`` for the arguments.

    ``weight`` gives class weights w: the loss is the weighted mean
    :math:`\sum_c w_c l_c / \sum_c w_c` over the classes c.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]], requires_grad=True)
    >>> round(sw.torch.lovasz_softmax(logits, torch.tensor([0, 1])).item(), 3)
    0.318
    """
    options = SoftmaxOptions(
        read_classes(classes),
        per_image,
        ignore_index,
        reduction,
        from_logits,
        buckets,
        average,
        worst,
    )
    check_extension(loss, options.buckets)
    return of_classes(input, target, loss, read_weight(weight), options)


def of_classes(
    input: Tensor, target: Tensor, loss: Loss | str, weight: Tensor | None, options: SoftmaxOptions
) -> Tensor:
    """Return the values of the classes, reduced."""
    check_input(input, target)
    activation: Activation = "softmax" if options.from_logits else "none"
    if is_soft(input, target):
        of_sets = partial(soft_values, scale=checked_scale(loss), buckets=options.counted)
        return of_probabilities(of_sets, input, target, weight, activation, options)
    logits, target = with_classes(input, target, options.ignore_index)
    weight = class_weight(weight, input if input.ndim > 1 else input.unsqueeze(0))
    n_classes, labels = logits.shape[1], comparable(target)
    word, ignore = word_of(loss), options.ignore_index
    present = options.classes == "present"
    named = options.named(n_classes)
    # The fused operator has a derivative in the logits alone.
    whole = is_transformed() or (weight is not None and weight.requires_grad)
    if options.is_plain and not whole:
        return mean_over_classes(
            logits.contiguous(),
            labels.contiguous(),
            word,
            ignore,
            [] if isinstance(options.classes, str) else named,
            present,
            weight,
            options.per_image,
            options.counted,
            options.from_logits,
        )
    p = probabilities_of(logits, activation)
    rest = (word, ignore, named, options.per_image, options.counted)
    values = values_of_classes(p, labels, *rest)
    if options.is_plain:
        scales = coefficients(labels, n_classes, ignore, named, present, weight, options.per_image)
        scales = scales / max(len(scales), 1)
        return torch.where(scales == 0, 0.0, scales * values).sum().to(values.dtype)
    counts = coefficients(labels, n_classes, ignore, named, present, None, options.per_image) > 0
    if weight is not None:
        weight = weight[torch.as_tensor(named, device=values.device)]
    return combined(values, counts, weight, options)


@constant
def checked_scale(loss: Loss | str) -> float:
    """Return a if the loss is a times Jaccard; raise an error for other losses of soft labels."""
    whole = loss_of(word_of(loss))
    scale = soft_scale(whole)
    if scale is None:
        raise ValueError(
            "loss must be 'jaccard' where target holds soft labels, floats in the shape of input, "
            f"got {whole!r}: DiceSemimetricLoss takes soft labels for Dice"
        )
    return scale


def soft_values(p: Tensor, table: ClassTable, scale: float, buckets: int) -> Tensor:
    """Return the values (T, K) of the Jaccard loss of soft labels."""
    valid = None if table.valid is None else table.rows(table.valid)
    values = soft_jaccard(table.rows(p), table.rows(table.truth), valid, buckets)
    return scale * values.view(table.groups, p.shape[1])


class LovaszSoftmaxLoss(HoldsLoss):
    r"""The Lovász extension of a set loss on the errors of every class.

    With p the softmax of the logits, the errors of class c are :math:`e_i = |[y_i = c] - p_{ci}|`.
    Let them be sorted in decreasing order, and let mu be the gains of the loss along that order,
    with the pixels of class c as positives. The value of the class is :math:`\sum_i e_i \mu_i`. It
    equals the loss where all p are 0 or 1, and lies between 0 and the loss of everything wrong. It
    is not convex in the logits. The loss is the mean over the classes.

    All images form one set for each class unless ``per_image`` is True. The backward pass needs 4
    bytes per pixel and class (8 in float64, or with a reduction other than "mean").

    The value of a class is piecewise linear in p, so second derivatives are those of the softmax.
    They are available from ``torch.func``, from forward mode, and from a second backward pass with
    the reductions "sum" and "none". With "mean", ``create_graph=True`` is refused, because the
    tensors that it needs are not kept.

    Parameters
    ----------
    loss : Loss or str
        Any loss of counts (Jaccard, Dice, F-beta, your own), or a submodular loss. Jaccard, losses
        of counts and of the number of mistakes, concave functions of weights, and sums of these run
        on the device; other losses run on the host, with a warning. The value of a class is convex
        in p if the loss is submodular. For Dice and F-beta it is not convex.
    classes : {"present", "all"} or list of int
        The classes of the mean: those that occur in the targets of a set, all, or the given list of
        distinct integers in any order. If no class occurs (everything is void), the loss and its
        gradient are 0.
    per_image : bool
        Whether each image has its own sets. The mean is then taken over classes and over images.
    ignore_index : int, optional
        Pixels with this label belong to no set.
    reduction : {"mean", "sum", "none"}
        "none" returns shape (C,), or (N, C) with ``per_image``; C is the length of ``classes`` if
        that is a list. Classes that do not count have the value 0.
    weight : tensor of shape (C,), optional
        Class weights w, finite and not negative. With :math:`l_c` the value of class c, "mean"
        returns the weighted mean :math:`\sum_c w_c l_c / \sum_c w_c` over the classes that count (0
        if all weights are 0), so multiplying all weights by a constant changes nothing. "sum" and
        "none" return values :math:`w_c l_c`. kornia and others return
        :math:`\frac{1}{C} \sum_c w_c l_c`, which is ``reduction="sum"`` divided by the number of
        classes. Weights are checked as for ``LovaszHingeLoss``.
    from_logits : bool
        Whether the input holds logits. Otherwise it holds probabilities in [0, 1]; on the CPU
        other numbers are refused.
    buckets : int, optional
        None sorts the errors. A number from 2 to 65536 rounds them to this number of equal steps of
        [0, 1] and counts, for Jaccard, Dice, F-beta and increasing losses of the number of
        mistakes. The value of a class is off by at most half the width of a step times the 1-norm
        of the gains, which is 1 / (2 buckets) for Jaccard and Dice. The gradient is a subgradient
        at the rounded errors.
    average : {"images", "classes"}
        With ``per_image``, "images" is the mean over images of the mean over the classes that
        count there, and "classes" the mean over classes of the mean over images with the class.
    worst : float, optional
        A share q in (0, 1], with ``per_image``. The mean is taken over the q n largest of n values,
        over all images or over the images of each class.
    across_ranks : bool
        Whether a process group computes one loss over the batch of all ranks, as for
        ``LovaszHingeLoss``.

    Notes
    -----
    Targets are classes (N, ...), or one-hot integers or booleans (N, C, ...). Jaccard also takes
    soft labels (N, C, ...): floats in [0, 1], as label smoothing, mixup and distillation give them.
    With y the soft labels of a class, :math:`e_i = |p_i - y_i|`, and the loss of a set of errors A
    is :math:`|A| / (\sum_i y_i + \sum_{i \in A} (1 - y_i))`, which increases and is submodular. The
    value is 0 only at p = y, and it is that of hard labels if y is 0 or 1.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.LovaszSoftmaxLoss(classes="present", ignore_index=255)
    >>> logits = torch.zeros(2, 4, 8, 8, requires_grad=True)
    >>> target = torch.full((2, 8, 8), 3)
    >>> criterion(logits, target).item()
    0.75
    """

    weight: Tensor | None
    _meant: ClassVar = {"mode": "its targets are classes, LovaszSigmoidLoss is the loss of masks"}

    @hints_at_names
    def __init__(
        self,
        loss: Loss | str = "jaccard",
        *,
        classes: Classes = "present",
        per_image: bool = False,
        ignore_index: int | None = None,
        reduction: Reduction = "mean",
        weight: Any = None,
        from_logits: bool = True,
        buckets: int | None = None,
        average: Average = "images",
        worst: float | None = None,
        across_ranks: bool = False,
    ) -> None:
        super().__init__(loss)
        self.options = SoftmaxOptions(
            read_classes(classes),
            per_image,
            ignore_index,
            reduction,
            from_logits,
            buckets,
            average,
            worst,
        )
        check_extension(self.loss, buckets)
        check_flags(across_ranks=across_ranks)
        self.across_ranks = across_ranks
        self.register_buffer("weight", read_weight(weight), persistent=False)

    @compiled_with_operators
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits (N, C, ...) for targets (N, ...) or (N, C, ...)."""
        if self.across_ranks:
            input, target = gathered(input), gathered(target)
        return of_classes(input, target, self._word, self.weight, self.options)

    def extra_repr(self) -> str:
        """Return the loss, and the options that differ from their defaults."""
        more = {"across_ranks": True} if self.across_ranks else {}
        return ", ".join([repr(self.loss), *changed(self.options, self.weight, **more)])
