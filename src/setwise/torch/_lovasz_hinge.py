"""The Lovász hinge of logits."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from setwise._foundation._keywords import hints_at_names
from setwise.losses import Loss, get
from setwise.torch._inputs._loss_words import constant
from setwise.torch._inputs._sets import Reduction, ScoreOptions
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
    buckets: int | None = None,
) -> Tensor:
    r"""Return the Lovász hinge of a set loss; see ``LovaszHingeLoss`` for the arguments.

    ``weight`` gives class weights w: the loss is the weighted mean
    :math:`\sum_s w_s l_s / \sum_s w_s` over the sets s.

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
    options = ScoreOptions(per_image, per_class, ignore_index, reduction, buckets)
    check_loss(loss, options.buckets)
    return of_scores("lovasz", input, target, loss, checked_weight(weight, options), options)


@constant
def check_loss(loss: Loss | str, buckets: int | None) -> None:
    """Check that the loss is submodular and that buckets can evaluate it."""
    whole = get(loss)
    if whole.is_submodular is False:
        raise ValueError(
            f"loss must be submodular for LovaszHingeLoss, got {whole!r}: use DecomposedHingeLoss"
        )
    check_blocks(whole, buckets)


@constant
def check_extension(loss: Loss | str, buckets: int | None) -> None:
    """Check that the loss has an extension at errors in [0, 1]: it is submodular or has gains."""
    whole = get(loss)
    if whole.is_submodular is False and not has_gains(whole._unscaled()[0]):
        raise ValueError(
            f"loss must be submodular or one of counts for a loss of probabilities, got {whole!r}"
        )
    check_blocks(whole, buckets)


@constant
def check_blocks(loss: Loss | str, buckets: int | None) -> None:
    """Check that buckets can evaluate the loss."""
    whole = get(loss)
    if buckets is not None and not has_blocks(whole._unscaled()[0]):
        raise ValueError(
            "buckets must be None unless the loss is Jaccard, Dice, F-beta or an increasing loss "
            f"of the number of mistakes, got {buckets} for {whole!r}"
        )


class LovaszHingeLoss(SurrogateLoss):
    r"""The Lovász hinge of any submodular set loss, for binary and multi-label logits.

    Let the errors :math:`s_i = 1 - g_i y_i` of logits g and labels y in {-1, +1} be sorted in
    decreasing order, and let mu be the gains of the loss along that order. The value of a set is
    :math:`\sum_i (s_i)_+ \mu_i` (Lovász hinge paper, Definition 6). It is convex in the logits,
    equals the loss at the corners of the unit cube, and is an upper bound of the loss everywhere if
    the loss increases. The gradient is :math:`-y_i \mu_i [s_i > 0]`, with gains in closed form.

    All elements of the input form one set unless ``per_image`` or ``per_class`` is True. The input
    may have any shape and memory format and any dtype from float16 to float64. Half precision gives
    a float32 loss and a gradient in the precision of the input. The backward pass needs 4 bytes per
    element (8 in float64).

    All derivatives are available (``torch.func``, forward mode, ``vmap``, a second backward pass).
    The value is piecewise linear: its second derivatives are zero wherever they exist.

    The cost is one sort: on the CPU a compiled sort of the violators (s > 0), elsewhere a sort of
    all elements. ``buckets=8192`` counts instead, in O(n). On CUDA, Jaccard runs in kernels that
    the NVRTC of torch compiles when they are first used.

    For networks of several classes use ``LovaszSoftmaxLoss``: with ``per_class`` the hinge trained
    worse than cross-entropy (see the guide on PyTorch).

    Parameters
    ----------
    loss : Loss or str
        A submodular loss; ``sw.losses.names()`` lists the names. Jaccard, losses of counts and of
        the number of mistakes, concave functions of weights, and sums of these run on the device of
        the input. Other losses run through their ``gains`` on the host, with a warning.
    per_image : bool
        Each index of dimension 0 is a set.
    per_class : bool
        Each index of dimension 1 is a set; with ``per_image`` each pair of indices is a set.
    ignore_index : int, optional
        Elements with this label belong to no set. The other labels are in {-1, +1} or in {0, 1}.
        A target with both -1 and 0 is refused: one of them is probably the label of void elements.
    reduction : {"mean", "sum", "none"}
        The reduction over the sets. "none" returns shape (N,), (C,) or (N, C).
    weight : tensor of shape (C,), optional
        Class weights w, finite and not negative, with ``per_class``. With :math:`l_s` the value of
        set s and :math:`w_s` the weight of its class, "mean" returns the weighted mean
        :math:`\sum_s w_s l_s / \sum_s w_s` (0 if all weights are 0), so multiplying all weights by
        a constant changes nothing. "sum" and "none" return values :math:`w_s l_s`. kornia and
        others return :math:`\frac{1}{S} \sum_s w_s l_s`, which is ``reduction="sum"`` divided by
        the number of sets. A module checks its weights when it is made. A function checks weights
        on the host, and weights on a GPU by an assertion on the GPU.
    buckets : int, optional
        None sorts the errors. A number from 2 to 65536 counts them in this number of buckets
        instead, for Jaccard, Dice, F-beta and increasing losses of the number of mistakes: the
        errors s of a set are rounded to ``buckets`` equal steps of (0, largest s]. The value is off
        by at most half the width of a step times the 1-norm of the gains, which is the loss of
        everything wrong (1 for Jaccard). The gradient is a subgradient at the rounded errors.
        float16 and bfloat16 logits have a bucket for each value of g y, so that the answer is
        exact. On CUDA float32 errors have buckets of 1 + s: 2^b per octave with b =
        min(log2(buckets) - 3, 11), so that a large error does not widen the other buckets. If
        errors are below 127, the value is below the exact one by at most 2^-b (exact value + loss
        of everything wrong). Larger errors have coarser buckets: an eighth of an octave at b = 10.
    across_ranks : bool
        Whether a process group computes one loss over the batch of all ranks. Logits and targets
        are gathered along dimension 0, and with DistributedDataParallel the gradient is that of the
        whole batch.

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
        check_loss(self.loss, self.options.buckets)
