"""The negative log likelihood of labels under a field as a loss."""

from __future__ import annotations

import math
from typing import Any

from setwise.torch._fields._criterion import FieldCriterion, FieldLoss, Truth, energy_of
from setwise.torch._fields._layer import Call
from setwise.torch._fields._log_partition import log_partition


class FieldLikelihoodLoss(FieldCriterion):
    r"""The negative log likelihood of labels under a field, with log Z bounded from above.

    .. math:: E(y) + U(\theta, w) \ge -\log p(y)

    The inequality holds up to rounding to the dtype of the logits. The energy E, the bound U and
    the arguments that are not listed here are those of ``FieldMarginals``. The loss is convex in
    logits and weights with ``projection``, and in logits and positive weights with ``trees``. The
    gradient in a logit is :math:`p_{ij} - [y_i = j]`, and in a weight it is the price of the pair
    or region at y minus its price at p. With weights of 0 the loss is
    ``torch.nn.functional.cross_entropy``. Labels may be soft: degrees in [0, 1] that sum to 1. The
    prices of pairs and regions are then their Lovász extensions, and the loss is least at p = y.

    Parameters
    ----------
    ignore_index : int, optional
        Pixels with this label are left out of the field.
    reduction : {"mean", "sum", "none"}
        "mean" is the sum over the images divided by the number of pixels that count; "none" returns
        a value for each image.
    bounds : bool
        Whether a call returns a ``FieldLoss``, which also holds the interval of the loss.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.FieldLikelihoodLoss(weight=0.5, learn=True, ignore_index=255)
    >>> logits = torch.zeros(1, 3, 4, 4, requires_grad=True)
    >>> loss = criterion(logits, torch.zeros(1, 4, 4, dtype=torch.int64))
    >>> loss.backward()
    >>> round(loss.item(), 4), criterion.raw_weight.grad.abs().item() < 1e-6
    (1.0986, True)
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        learn: bool = False,
        connectivity: Any = None,
        beta: float | None = None,
        region_weight: Any = None,
        alpha: float = 0.8,
        ignore_index: int | None = None,
        reduction: str = "mean",
        method: str = "projection",
        tol: float = 1e-3,
        max_iter: int | None = None,
        bounds: bool = False,
    ) -> None:
        super().__init__(
            weight,
            learn=learn,
            connectivity=connectivity,
            beta=beta,
            region_weight=region_weight,
            alpha=alpha,
            method=method,
            tol=tol,
            max_iter=max_iter,
            bounds=bounds,
            ignore_index=ignore_index,
            reduction=reduction,
        )

    def _of_images(self, call: Call, truth: Truth) -> FieldLoss:
        energy = energy_of(call, truth.degrees)
        _, upper, lower, _ = log_partition(*call.tensors, call.problem, lower=self.bounds)
        void = (~truth.counts).sum(1).double() * math.log(call.batch.logits.shape[1])
        above = energy.value + upper - void + energy.rounding
        below = energy.value.detach() + lower - void - energy.rounding
        return FieldLoss(above, below, above.detach())
