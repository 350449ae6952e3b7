"""A mixture of cross-entropy and a set loss."""

from __future__ import annotations

from numbers import Real

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    log_softmax,
)

from setwise._foundation._keywords import hints_at_names
from setwise.torch._class_loss import ClassLoss, with_classes
from setwise.torch._inputs._class_targets import read_table
from setwise.torch._inputs._labels import comparable, read_target, voids
from setwise.torch._inputs._margins import are_classes
from setwise.torch._inputs._module import Module
from setwise.torch._inputs._sets import same_shape
from setwise.torch._inputs._weights import on_device
from setwise.torch._lovasz_softmax import LovaszSoftmaxLoss
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._score_loss import SurrogateLoss


def _share(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number in [0, 1], got {value!r}")
    share = float(value)
    if not 0 <= share <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {share:g}")
    return share


class WithCrossEntropy(Module):
    r"""A convex combination of a set loss and cross-entropy.

    The value is :math:`s \, l + (1 - s) \, h`, where l is the set loss and h the mean cross-entropy
    of the elements that are not void. For a loss of classes h is taken over the classes of each
    pixel; for masks it is taken for each logit (``binary_cross_entropy_with_logits``). The set loss
    says which elements are void. If all elements are void, h is 0.

    The class weights of the set loss, its ``weight``, also apply to cross-entropy: h is the
    weighted mean :math:`\sum_i w_{y_i} h_i / \sum_i w_{y_i}`, as in
    ``torch.nn.functional.cross_entropy``. With soft labels it is the mean over pixels and classes,
    :math:`-\sum_{ic} w_c y_{ic} \log p_{ic} / \sum_{ic} w_c y_{ic}`. For masks it is the mean over
    the logits, where each logit has the weight of its class.

    If some of several classes are rare, the mixture loses them more often than the set loss alone;
    the guide on PyTorch has the figures.

    Parameters
    ----------
    criterion : module
        A loss of ``setwise.torch`` that takes logits. Give the class weights to it.
    share : float
        The share s of the set loss, in [0, 1].
    label_smoothing : float
        A number :math:`\epsilon` in [0, 1]. Cross-entropy, but not the set loss, is computed for
        the targets :math:`(1 - \epsilon) y + \epsilon / C` (C = 2 for masks).

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.WithCrossEntropy(sw.torch.LovaszSoftmaxLoss("dice"), share=0.5)
    >>> logits, target = torch.zeros(1, 2, 4, requires_grad=True), torch.tensor([[0, 1, 1, 1]])
    >>> round(criterion(logits, target).item(), 4)
    0.5966
    """

    @hints_at_names
    def __init__(
        self, criterion: nn.Module, share: float = 0.5, *, label_smoothing: float = 0.0
    ) -> None:
        super().__init__()
        if not isinstance(criterion, (SurrogateLoss, LovaszSoftmaxLoss, ClassLoss)):
            raise TypeError(
                f"criterion must be a loss of setwise.torch, got {type(criterion).__name__}"
            )
        self.of_classes = isinstance(criterion, LovaszSoftmaxLoss) or (
            isinstance(criterion, ClassLoss) and criterion.activation == "softmax"
        )
        takes_logits = (
            criterion.options.from_logits
            if isinstance(criterion, LovaszSoftmaxLoss)
            else getattr(criterion, "activation", "") != "none"
        )
        if not takes_logits:
            raise ValueError("criterion must take logits, got one that takes probabilities")
        self.criterion = criterion
        self.share = _share("share", share)
        self.label_smoothing = _share("label_smoothing", label_smoothing)

    @compiled_with_operators
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits for their targets."""
        of_sets: Tensor = self.criterion(input, target)
        of_elements = self._cross_entropy(input, target)
        if of_sets.dtype == of_elements.dtype:
            return torch.lerp(of_elements, of_sets, self.share)
        return self.share * of_sets + (1 - self.share) * of_elements

    def _cross_entropy(self, input: Tensor, target: Tensor) -> Tensor:
        wide = torch.float64 if input.dtype == torch.float64 else torch.float32
        ignore = self.criterion.options.ignore_index
        weight: Tensor | None = on_device(self.criterion.weight, input)
        weight = None if weight is None else weight.to(wide)
        if self.of_classes or are_classes(input, target):
            if self.label_smoothing == 0 and input.numel() and are_classes(input, target):
                return _of_labels(input.to(wide), target, ignore, weight)
            logits, target = with_classes(input, target, ignore)
            log_p = log_softmax(logits, 1, dtype=wide)
            table = read_table(log_p, target, ignore, range(log_p.shape[1]), True)
            truth = self._smoothed(table.truth, log_p.shape[1])
            # A class with a logit of -inf contributes nothing unless it is the truth.
            losses = -(truth * torch.where(truth > 0, log_p, 0.0))
            valid = None if table.valid is None else table.valid.any(1)
            if weight is None:
                return _mean(losses.sum(1), valid)
            counted = weight[:, None] * table.truth
            return _mean((weight[:, None] * losses).sum(1), valid, counted.sum(1))
        target = same_shape(input, target)
        truth, valid = _degrees(target, ignore, wide)
        losses = binary_cross_entropy_with_logits(
            input.to(wide), self._smoothed(truth, 2), reduction="none"
        )
        if weight is None:
            return _mean(losses, valid)
        weight = weight.view(-1, *(1,) * (input.ndim - 2)).expand_as(losses)
        return _mean(weight * losses, valid, weight)

    def _smoothed(self, truth: Tensor, number: int) -> Tensor:
        eps = self.label_smoothing
        return truth if eps == 0 else (1 - eps) * truth + eps / number

    def extra_repr(self) -> str:
        """Return the share of the set loss and the label smoothing."""
        return f"share={self.share:g}, label_smoothing={self.label_smoothing:g}"


def _of_labels(logits: Tensor, target: Tensor, ignore: int | None, weight: Tensor | None) -> Tensor:
    """Return the cross-entropy of labels (N, ...), which the criterion has already checked."""
    target = comparable(target)
    void = voids(target, ignore)
    if weight is not None:
        labels = target.long() if void is None else torch.where(void, 0, target.long())
        losses, counted = cross_entropy(logits, labels, reduction="none"), weight[labels]
        return _mean(counted * losses, None if void is None else ~void, counted)
    # No other sum over pixels in torch gives the same bits in every run on CUDA.
    if void is None:
        return cross_entropy(logits, target.long(), reduction="none").mean()
    assert ignore is not None
    losses = cross_entropy(logits, target.long(), ignore_index=ignore, reduction="none")
    return losses.sum() / (~void).sum().clamp(min=1)


def _degrees(
    target: Tensor, ignore: int | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """Return truths in [0, 1], with 0 for labels of -1, and a mask of the elements that count."""
    if target.is_floating_point():
        void = voids(target, ignore)
        truth = target.to(dtype).clamp(min=0)
        return (truth if void is None else torch.where(void, 0.0, truth)), (
            None if void is None else ~void
        )
    positive, valid = read_target(target, float("nan") if ignore is None else float(ignore))
    return positive.to(dtype), valid


def _mean(losses: Tensor, valid: Tensor | None, counted: Tensor | None = None) -> Tensor:
    """Return the sum of the valid losses divided by their number, or by the sum of ``counted``."""
    if counted is not None:
        if valid is not None:
            losses, counted = torch.where(valid, losses, 0.0), torch.where(valid, counted, 0.0)
        total = counted.sum()
        return losses.sum() / torch.where(total > 0, total, 1.0)
    if valid is None:
        return losses.sum() / max(losses.numel(), 1)
    return torch.where(valid, losses, 0.0).sum() / valid.sum().clamp(min=1)
