"""What the losses of fields have in common: how labels are read, and values made one."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from torch import Tensor

from setwise.torch._fields._eager import eager
from setwise.torch._fields._layer import Call, FieldLayer
from setwise.torch._fields._targets import Truth, read_truth, reduced, rounded, without_void
from setwise.torch._inputs._sets import check_ignore, check_reduction


class FieldLoss(NamedTuple):
    r"""A loss, and the interval that what it stands for lies in.

    Attributes
    ----------
    loss : tensor
        What is to be differentiated.
    lower : tensor
        Of a likelihood :math:`-\log p(y)` is at least this; of a hinge it is the loss, less what
        rounding may have added.
    upper : tensor
        Of a likelihood it is the loss, rounded up; of a hinge no labelling violates the margin by
        more.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> found = sw.torch.FieldLikelihoodLoss(bounds=True)(
    ...     torch.zeros(1, 2, 2, 2), torch.zeros(1, 2, 2, dtype=torch.int64)
    ... )
    >>> bool(found.lower <= found.loss), bool(found.slack >= 0)
    (True, True)
    """

    loss: Tensor
    lower: Tensor
    upper: Tensor

    @property
    def slack(self) -> Tensor:
        """upper - lower: how far the loss can be from what it stands for."""
        return self.upper - self.lower


class FieldCriterion(FieldLayer):
    """A loss of labels under a field; subclasses say what that of an image is."""

    _soft = True  # whether labels may be degrees

    def __init__(
        self, weight: float, *, ignore_index: int | None, reduction: str, **options: Any
    ) -> None:
        super().__init__(weight, **options)
        check_ignore(ignore_index)
        check_reduction(reduction)
        self.ignore_index, self.reduction = ignore_index, reduction

    @eager
    def forward(
        self,
        logits: Tensor,
        target: Tensor,
        *,
        image: Tensor | None = None,
        regions: Any = None,
        weights: Tensor | None = None,
        region_weights: Tensor | None = None,
        edges: Any = None,
    ) -> Tensor | FieldLoss:
        """The loss of logits and labels; the rest as in ``FieldMarginals``."""
        call = self._read(logits, image, regions, weights, region_weights, edges)
        truth = read_truth(logits, target, call.batch, self.ignore_index, soft=self._soft)
        found = self._of_images(without_void(call, truth.counts), truth)
        dtype = call.batch.logits.dtype
        wanted = found if self.bounds else found[:1]
        parts = [reduced(part, truth.counts, self.reduction) for part in wanted]
        loss = parts[0].to(dtype)
        if not self.bounds:
            return loss
        return FieldLoss(loss, rounded(parts[1], dtype, -inf), rounded(parts[2], dtype, inf))

    def _of_images(self, call: Call, truth: Truth) -> FieldLoss:
        """Loss, lower and upper (B,) of the fields without void pixels, in float64.

        The interval is asked for with ``bounds`` alone.
        """
        raise NotImplementedError
