"""The structured hinge of a field as a loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from setwise.torch._fields._arguments import as_real
from setwise.torch._fields._criterion import FieldCriterion, FieldLoss, Truth, energy_of, one_hot
from setwise.torch._fields._field_map import best_labels
from setwise.torch._fields._layer import Call
from setwise.torch._fields._problem import centred


class FieldHingeLoss(FieldCriterion):
    r"""The structured hinge: the largest violation of a margin by other labels.

    .. math:: \max_x \; \mu \, |\{i: x_i \ne y_i\}| - E(x) + E(y)

    The energy E, and the arguments that are not listed here, are those of ``FieldMarginals``. A
    best labelling of a field attains the maximum (exactly with two labels). The loss is convex in
    logits and weights; its subgradient is that of the energy at y minus the energy at x. If the
    labelling is not proved to be best, the loss is the value at that labelling: it is below the
    maximum by at most the slack that ``bounds=True`` returns, and its gradient is a subgradient up
    to this slack. With weights of 0 it is the hinge of each pixel's best other label.

    Parameters
    ----------
    margin : float
        The margin :math:`\mu` per wrong pixel.
    ignore_index : int, optional
        Pixels with this label are left out of the field.
    reduction : {"mean", "sum", "none"}
        As in ``FieldLikelihoodLoss``.
    tol : float
        The relative gap at which the search for the labelling stops.
    bounds : bool
        Whether a call returns a ``FieldLoss``: the hinge lies between its ``lower`` and ``upper``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.FieldHingeLoss(weight=0.5)
    >>> logits = torch.zeros(1, 2, 3, 3, requires_grad=True)
    >>> target = torch.zeros(1, 3, 3, dtype=torch.int64)
    >>> criterion(logits, target).item()  # all pixels change together
    1.0
    """

    _soft = False

    def __init__(
        self,
        weight: float = 1.0,
        *,
        margin: float = 1.0,
        learn: bool = False,
        connectivity: Any = None,
        beta: float | None = None,
        region_weight: Any = None,
        alpha: float = 0.8,
        ignore_index: int | None = None,
        reduction: str = "mean",
        tol: float = 1e-3,
        bounds: bool = False,
    ) -> None:
        super().__init__(
            weight,
            learn=learn,
            connectivity=connectivity,
            beta=beta,
            region_weight=region_weight,
            alpha=alpha,
            tol=tol,
            bounds=bounds,
            ignore_index=ignore_index,
            reduction=reduction,
        )
        self.margin = as_real(margin, "margin")

    def _of_images(self, call: Call, truth: Truth) -> FieldLoss:
        counts, y = truth.counts, truth.degrees
        logits = centred(call.batch.logits.double())
        raised = logits + self.margin * (1.0 - y) * counts[:, None]
        call, augmented = (
            replace(call, batch=replace(call.batch, logits=scores)) for scores in (logits, raised)
        )
        found = best_labels(augmented)
        x = one_hot(found.labels, y.shape[1]) * counts[:, None]
        right, wrong = energy_of(call, y), energy_of(augmented, x)
        # The labelling y itself violates nothing.
        value = (right.value - wrong.value).clamp(min=0)
        slack = right.rounding + wrong.rounding
        above = torch.maximum(right.value - found.bound, value).detach() + slack
        below = (value.detach() - slack).clamp(min=0)
        return FieldLoss(value, below, above)
