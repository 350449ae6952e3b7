"""The Lovász hinge of logits."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from setwise._foundation._keywords import hints_at_names
from setwise.losses import Loss, get
from setwise.torch._inputs._loss_words import constant
from setwise.torch._inputs._sets import Method, Options, Reduction
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._reference._buckets import has_blocks
from setwise.torch._reference._gains import has_gains
from setwise.torch._score_loss import SurrogateLoss, checked_weight, of_scores


@compiled_with_operators
def lovasz_hinge(
    input: Tensor,
    target: Tensor,
    loss: Loss | str = "jaccard",
    *,
    per_image: bool = False,
    per_class: bool = False,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
    weight: Any = None,
    method: Method = "exact",
    buckets: int = 8192,
) -> Tensor:
    r"""The Lovász hinge of a set loss; see ``LovaszHingeLoss`` for the arguments.

    With ``weight`` w the mean over sets s is a weighted one, :math:`\sum_s w_s l_s / \sum_s w_s`;
    it is not the mean of weight times loss.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> logits = torch.tensor([0.5, 2.0, 0.0], requires_grad=True)
    >>> value = sw.torch.lovasz_hinge(logits, torch.tensor([1, 1, 0]))
    >>> value.backward()
    >>> round(value.item(), 3), logits.grad.round(decimals=3).tolist()
    (0.5, [-0.333..., 0.0, 0.333...])
    """
    options = Options(per_image, per_class, ignore_index, reduction, method, buckets)
    check_loss(loss, options.method)
    return of_scores("lovasz", input, target, loss, checked_weight(weight, options), options)


@constant
def check_loss(loss: Loss | str, method: Method) -> None:
    """Submodular; and for the bucket method one whose blocks are known."""
    whole = get(loss)
    if whole.is_submodular is False:
        raise ValueError(
            f"loss must be submodular for LovaszHingeLoss, got {whole!r}: use DecomposedHingeLoss"
        )
    check_blocks(whole, method)


@constant
def check_extension(loss: Loss | str, method: Method) -> None:
    """Submodular, or with gains on every device: what has an extension at errors in [0, 1]."""
    whole = get(loss)
    if whole.is_submodular is False and not has_gains(whole._unscaled()[0]):
        raise ValueError(
            f"loss must be submodular or one of counts for a loss of probabilities, got {whole!r}"
        )
    check_blocks(whole, method)


@constant
def check_blocks(loss: Loss | str, method: Method) -> None:
    """For the bucket method, a loss whose blocks are known."""
    whole = get(loss)
    if method == "bucket" and not has_blocks(whole._unscaled()[0]):
        raise ValueError(
            "method must be 'exact' unless the loss is Jaccard, Dice, F-beta or an increasing loss "
            f"of the number of mistakes, got 'bucket' for {whole!r}"
        )


class LovaszHingeLoss(SurrogateLoss):
    r"""The Lovász hinge of any submodular set loss, for binary and multi-label logits.

    With :math:`s_i = 1 - g_i y_i` sorted in decreasing order, y in {-1, +1}, and mu the gains of
    the loss along that order, the value of a set is :math:`\sum_i (s_i)_+ \mu_i` (Lovász hinge
    paper, Definition 6): convex in the logits, equal to the loss at the corners of the unit cube,
    and an upper bound of it everywhere where the loss increases. The gradient is
    :math:`-y_i \mu_i [s_i > 0]`, its gains in closed form.

    All elements of the input form one set unless ``per_image`` or ``per_class`` is True. Any shape,
    any memory format, float16 to float64; half precision gives a float32 loss and a gradient in the
    precision of the input. 4 bytes an element are kept for the backward pass (8 in float64).

    Derivatives of every kind are there (``torch.func``, forward mode, ``vmap``, a second backward
    pass). The value is piecewise linear: its second derivatives are zero wherever they exist.

    Cost: on the CPU one sort of the violators (s > 0), compiled; elsewhere one sort of all
    elements. ``method="bucket"`` counts instead, O(n). On CUDA, Jaccard runs in kernels that NVRTC,
    which torch brings, compiles when they are first used.

    Parameters
    ----------
    loss : Loss or str
        Submodular; ``sw.losses.names()`` lists the names. Jaccard, losses of counts and of the
        number of mistakes, concave functions of weights and sums of these run on the device of the
        input; any other runs through its ``gains`` on the host, and a warning says so.
    per_image : bool
        Each index of dimension 0 is a set.
    per_class : bool
        Each index of dimension 1 is a set; with ``per_image`` each pair of indices.
    ignore_index : int, optional
        Elements of this label belong to no set. The others have labels in {-1, +1} or in {0, 1};
        both -1 and 0 in one target are refused, as one of them will be the label of the void.
    reduction : {"mean", "sum", "none"}
        Over the sets. "none" gives shape (N,), (C,) or (N, C).
    weight : tensor of shape (C,), optional
        w, a number for each class, finite and not negative, with ``per_class``. With :math:`l_s`
        the value of set s and :math:`w_s` the weight of its class, the mean is a weighted one,
        :math:`\sum_s w_s l_s / \sum_s w_s` (0 where all weights are): a factor common to all
        weights changes nothing. kornia and others take the mean of weight times loss,
        :math:`\frac{1}{S} \sum_s w_s l_s`, which here is ``reduction="sum"`` over the number of
        sets; "sum" and "none" are of :math:`w_s l_s`. Weights on the CPU are looked at there and
        copied; those of a module once, when it is made; those of a function on a GPU by the GPU,
        which ends with an error where one is negative or not finite.
    method : {"exact", "bucket"}
        "bucket", for Jaccard and losses of the number of mistakes that increase, rounds the errors
        s of a set to ``buckets`` equal steps of (0, largest s]. Its value is off by at most half
        the width of a step times the 1-norm of the gains, which is the loss of everything wrong (1
        for Jaccard); its gradient is a subgradient at the rounded errors. float16 and bfloat16
        logits are not rounded: the buckets are the values of g y themselves, so it is exact.
        On CUDA float32 errors have buckets of 1 + s instead, 2^b for each octave, b = log2(buckets)
        - 3 but at most 11, so that a large error does not widen the others: as long as errors are
        below 127 the value is below the exact one by at most 2^-b (exact value + loss of
        everything wrong). Beyond, a bucket is an eighth of an octave at b = 10.
    buckets : int
        How many, 2 to 65536.
    across_ranks : bool
        In a process group, one loss over the batch of all ranks: logits and targets are gathered
        along dimension 0, and under DistributedDataParallel the gradient is that of the whole.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.LovaszHingeLoss("jaccard", per_image=True, ignore_index=255)
    >>> logits = torch.zeros(2, 1, 3, 3, requires_grad=True)
    >>> target = torch.ones(2, 1, 3, 3, dtype=torch.uint8)
    >>> criterion(logits, target).item()
    1.0
    """

    _surrogate = "lovasz"

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
        method: Method = "exact",
        buckets: int = 8192,
        across_ranks: bool = False,
    ) -> None:
        super().__init__(
            loss,
            per_image=per_image,
            per_class=per_class,
            ignore_index=ignore_index,
            reduction=reduction,
            weight=weight,
            method=method,
            buckets=buckets,
            across_ranks=across_ranks,
        )
        check_loss(self.loss, self.options.method)
