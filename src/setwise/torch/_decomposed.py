"""The decomposed hinge B_D of logits, for any set loss, such as Dice and F-beta."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from setwise._foundation._keywords import hints_at_names
from setwise.losses import Loss
from setwise.torch._inputs._sets import Reduction, ScoreOptions
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._score_loss import SurrogateLoss, checked_weight, of_scores


@compiled_with_operators
def decomposed_hinge(
    input: Tensor,
    target: Tensor,
    loss: Loss | str = "dice",
    *,
    per_image: bool = False,
    per_class: bool = False,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
    weight: Any = None,
) -> Tensor:
    r"""Return B_D, a convex surrogate of any set loss; see ``DecomposedHingeLoss``.

    ``weight`` gives class weights w: the loss is the weighted mean
    :math:`\sum_s w_s l_s / \sum_s w_s` over the sets s.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> round(sw.torch.decomposed_hinge(torch.zeros(3), torch.tensor([1, 1, 0])).item(), 3)
    1.0
    """
    options = ScoreOptions(per_image, per_class, ignore_index, reduction)
    return of_scores("decomposed", input, target, loss, checked_weight(weight, options), options)


class DecomposedHingeLoss(SurrogateLoss):
    r"""The surrogate B_D: convex, and equal to the set loss at the corners of the unit cube.

    The loss is split into l = f + g, where f is submodular and g is supermodular and increasing
    (operator D of the B_D paper). The value of a set is the Lovász hinge of f plus the slack
    rescaling of g (Definition 9). For Dice, and for F-beta with beta >= 1, both have closed forms
    at any size.

    **B_D is tight on the unit cube, but it is not an upper bound outside of it.** For Dice it can
    be 0, with zero gradient, at a wrong prediction, if the margins of the right pixels outweigh
    those of the wrong ones. Start from a network that was trained with cross-entropy, or use
    ``WithCrossEntropy``.

    The cost is two sorts of the elements of each set.

    Parameters
    ----------
    loss : Loss or str
        Dice, F-beta and losses of the number of mistakes or of counts run on the device of the
        input. Other losses run on the host, for sets of up to 12 elements.
    weight : tensor of shape (C,), optional
        Class weights w, with ``per_class``: the loss is the weighted mean
        :math:`\sum_s w_s l_s / \sum_s w_s` over the sets s.
    per_image, per_class, ignore_index, reduction, across_ranks
        As for ``LovaszHingeLoss``.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.DecomposedHingeLoss("dice", per_image=True)
    >>> criterion(torch.zeros(2, 1, 8, 8), torch.ones(2, 1, 8, 8)).item()
    1.0
    """

    _surrogate = "decomposed"

    @hints_at_names
    def __init__(
        self,
        loss: Loss | str = "dice",
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
