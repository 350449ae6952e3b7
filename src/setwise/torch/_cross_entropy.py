"""Cross-entropy and a set loss in one module, with one weight between them."""

from __future__ import annotations

from numbers import Real

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    log_softmax,
)

from setwise.torch._class_loss import ClassLoss, with_classes
from setwise.torch._inputs._class_targets import read_table
from setwise.torch._inputs._labels import comparable, read_target, voids
from setwise.torch._inputs._margins import are_classes
from setwise.torch._inputs._sets import same_shape
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


class WithCrossEntropy(nn.Module):
    r"""A share of a set loss, and the rest of cross-entropy.

    The value is :math:`w \, l + (1 - w) \, h`, l the set loss and h the mean cross-entropy of the
    elements that count: over the classes of a pixel for a loss of classes, of every logit by itself
    (``binary_cross_entropy_with_logits``) for masks. Void elements are those of the set loss. Where
    all is void, h is 0.

    Parameters
    ----------
    criterion : module
        A loss of ``setwise.torch`` that takes logits.
    weight : float
        w, in [0, 1].
    label_smoothing : float
        eps, in [0, 1]: cross-entropy, and it alone, sees :math:`(1 - \epsilon) y + \epsilon / C`
        (C = 2 for masks).

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> criterion = sw.torch.WithCrossEntropy(sw.torch.LovaszSoftmaxLoss("dice"), weight=0.5)
    >>> logits, target = torch.zeros(1, 2, 4, requires_grad=True), torch.tensor([[0, 1, 1, 1]])
    >>> round(criterion(logits, target).item(), 4)
    0.5966
    """

    def __init__(
        self, criterion: nn.Module, weight: float = 0.5, *, label_smoothing: float = 0.0
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
        self.weight = _share("weight", weight)
        self.label_smoothing = _share("label_smoothing", label_smoothing)

    @compiled_with_operators
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of logits and their targets."""
        of_sets: Tensor = self.criterion(input, target)
        of_elements = self._cross_entropy(input, target)
        if of_sets.dtype == of_elements.dtype:
            return torch.lerp(of_elements, of_sets, self.weight)
        return self.weight * of_sets + (1 - self.weight) * of_elements

    def _cross_entropy(self, input: Tensor, target: Tensor) -> Tensor:
        wide = torch.float64 if input.dtype == torch.float64 else torch.float32
        ignore = self.criterion.options.ignore_index
        if self.of_classes or are_classes(input, target):
            if self.label_smoothing == 0 and input.numel() and are_classes(input, target):
                return _of_labels(input.to(wide), target, ignore)
            logits, target = with_classes(input, target, ignore)
            log_p = log_softmax(logits, 1, dtype=wide)
            table = read_table(log_p, target, ignore, range(log_p.shape[1]), True)
            truth = self._smoothed(table.truth, log_p.shape[1])
            # A class that a mask of the logits excludes has no part where it is not the truth.
            losses = -(truth * torch.where(truth > 0, log_p, 0.0)).sum(1)
            valid = None if table.valid is None else table.valid.any(1)
            return _mean(losses, valid)
        target = same_shape(input, target)
        truth, valid = _degrees(target, ignore, wide)
        losses = binary_cross_entropy_with_logits(
            input.to(wide), self._smoothed(truth, 2), reduction="none"
        )
        return _mean(losses, valid)

    def _smoothed(self, truth: Tensor, number: int) -> Tensor:
        eps = self.label_smoothing
        return truth if eps == 0 else (1 - eps) * truth + eps / number

    def extra_repr(self) -> str:
        """The share of the set loss."""
        return f"weight={self.weight:g}, label_smoothing={self.label_smoothing:g}"


def _of_labels(logits: Tensor, target: Tensor, ignore: int | None) -> Tensor:
    """Of labels (N, ...), which the criterion has looked at: what is no class it has refused."""
    target = comparable(target)
    void = voids(target, ignore)
    # Each by itself first: torch has no other sum over pixels that is the same every time on CUDA.
    if void is None:
        return cross_entropy(logits, target.long(), reduction="none").mean()
    assert ignore is not None
    losses = cross_entropy(logits, target.long(), ignore_index=ignore, reduction="none")
    return losses.sum() / (~void).sum().clamp(min=1)


def _degrees(
    target: Tensor, ignore: int | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """Truths in [0, 1], and which elements count; -1 is negative."""
    if target.is_floating_point():
        void = voids(target, ignore)
        truth = target.to(dtype).clamp(min=0)
        return (truth if void is None else torch.where(void, 0.0, truth)), (
            None if void is None else ~void
        )
    positive, valid = read_target(target, float("nan") if ignore is None else float(ignore))
    return positive.to(dtype), valid


def _mean(losses: Tensor, valid: Tensor | None) -> Tensor:
    if valid is None:
        return losses.sum() / max(losses.numel(), 1)
    return torch.where(valid, losses, 0.0).sum() / valid.sum().clamp(min=1)
