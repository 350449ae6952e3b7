"""Margin and slack rescaling of logits, for losses of counts."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from setwise._foundation._keywords import hints_at_names
from setwise.losses import Loss, get
from setwise.torch._inputs._loss_words import constant
from setwise.torch._inputs._sets import Reduction, ScoreOptions
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._reference._rescaling import has_maximum
from setwise.torch._score_loss import SurrogateLoss, checked_weight, of_scores


@compiled_with_operators
def margin_rescaling(
    input: Tensor,
    target: Tensor,
    loss: Loss | str = "jaccard",
    *,
    scale: float = 1.0,
    per_image: bool = False,
    per_class: bool = False,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
    weight: Any = None,
) -> Tensor:
    r"""Return margin rescaling of a loss of counts; see ``MarginRescalingLoss`` for the arguments.

    ``weight`` gives class weights w: the loss is the weighted mean
    :math:`\sum_s w_s l_s / \sum_s w_s` over the sets s.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.tensor([0.5, 2.0, 0.0])
    >>> round(sw.torch.margin_rescaling(logits, torch.tensor([1, 1, 0])).item(), 3)
    0.333
    """
    options = ScoreOptions(per_image, per_class, ignore_index, reduction)
    check_counts(loss)
    check_scale(scale)
    weight = checked_weight(weight, options)
    return of_scores("margin", input, target, loss, weight, options, float(scale))


@compiled_with_operators
def slack_rescaling(
    input: Tensor,
    target: Tensor,
    loss: Loss | str = "jaccard",
    *,
    per_image: bool = False,
    per_class: bool = False,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
    weight: Any = None,
) -> Tensor:
    r"""Return slack rescaling of a loss of counts; see ``SlackRescalingLoss`` for the arguments.

    ``weight`` gives class weights w: the loss is the weighted mean
    :math:`\sum_s w_s l_s / \sum_s w_s` over the sets s.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.tensor([-0.5, 2.0, -1.0])
    >>> sw.torch.slack_rescaling(logits, torch.tensor([1, 1, 0])).item()
    1.0
    """
    options = ScoreOptions(per_image, per_class, ignore_index, reduction)
    check_counts(loss)
    return of_scores("slack", input, target, loss, checked_weight(weight, options), options)


@constant
def check_counts(loss: Loss | str) -> None:
    """Check that every device can compute the maximum for the loss."""
    whole = get(loss)
    if not has_maximum(whole._unscaled()[0]):
        raise ValueError(
            "loss must be a loss of counts (Jaccard, Dice, F-beta, CountsLoss) or of the number of "
            f"mistakes, got {whole!r}: sw.surrogates has more for NumPy arrays"
        )


def check_scale(scale: object) -> None:
    """Check that the scale and its inverse are positive and finite."""
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise TypeError(f"scale must be a number, got {type(scale).__name__}")
    if not 1e-300 <= scale <= 1e300:
        raise ValueError(f"scale must be positive and finite, in [1e-300, 1e300], got {scale}")


class _Rescaling(SurrogateLoss):
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
        across_ranks: bool = False,
    ) -> None:
        super().__init__(
            loss,
            per_image=per_image,
            per_class=per_class,
            ignore_index=ignore_index,
            reduction=reduction,
            weight=weight,
            across_ranks=across_ranks,
        )
        check_counts(self.loss)


class MarginRescalingLoss(_Rescaling):
    r"""Margin rescaling of a loss of counts: :math:`\max_I l(I) - (2/\gamma) \sum_I g_i y_i`.

    It is convex and an upper bound of the loss (Lovász hinge paper, equation (21)). The maximum
    over all sets of mistakes is exact. It takes one sort, followed by a binary search for each
    number of false negatives (Jaccard, Dice, F-beta), a scan (losses of the number of mistakes), or
    all pairs of counts, of which there may be 2**22 (``CountsLoss``).

    Parameters
    ----------
    loss : Loss or str
        Jaccard, Dice, F-beta, a ``CountsLoss``, or a loss of the number of mistakes.
    scale : float
        The positive number gamma. For Jaccard with m positives the loss is not tight above 2 m.
    weight : tensor of shape (C,), optional
        Class weights w, with ``per_class``: the loss is the weighted mean
        :math:`\sum_s w_s l_s / \sum_s w_s` over the sets s.
    per_image, per_class, ignore_index, reduction, across_ranks
        As for ``LovaszHingeLoss``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> sw.torch.MarginRescalingLoss("dice")(torch.zeros(4), torch.tensor([1, 1, 0, 0])).item()
    1.0
    """

    _surrogate = "margin"

    @hints_at_names
    def __init__(
        self,
        loss: Loss | str = "jaccard",
        *,
        scale: float = 1.0,
        per_image: bool = False,
        per_class: bool = False,
        ignore_index: int | None = None,
        reduction: Reduction = "mean",
        weight: Any = None,
        across_ranks: bool = False,
    ) -> None:
        super().__init__(
            loss,
            per_image=per_image,
            per_class=per_class,
            ignore_index=ignore_index,
            reduction=reduction,
            weight=weight,
            across_ranks=across_ranks,
        )
        check_scale(scale)
        self._scale = float(scale)


class SlackRescalingLoss(_Rescaling):
    r"""Slack rescaling of a loss of counts: :math:`\max_I l(I) (1 - 2 \sum_I g_i y_i)`.

    It is convex, an upper bound of the loss, and equal to the loss at the corners of the unit cube
    (Lovász hinge paper, equation (22)). The maximum is exact, as for ``MarginRescalingLoss``. The
    loss must not be negative anywhere.

    Parameters
    ----------
    loss : Loss or str
        Jaccard, Dice, F-beta, a ``CountsLoss``, or a loss of the number of mistakes.
    weight : tensor of shape (C,), optional
        Class weights w, with ``per_class``: the loss is the weighted mean
        :math:`\sum_s w_s l_s / \sum_s w_s` over the sets s.
    per_image, per_class, ignore_index, reduction, across_ranks
        As for ``LovaszHingeLoss``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> sw.torch.SlackRescalingLoss("dice")(torch.zeros(4), torch.tensor([1, 1, 0, 0])).item()
    1.0
    """

    _surrogate = "slack"
