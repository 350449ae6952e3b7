"""A metric of predictions, with the same sets, classes and means as the losses."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from setwise._foundation._arguments import did_you_mean
from setwise._foundation._keywords import hints_at_names
from setwise.losses import Loss, get
from setwise.torch._inputs._averages import Average, mean_of_sets
from setwise.torch._inputs._class_targets import of_classes
from setwise.torch._inputs._labels import check_classes, comparable, read_target, voids
from setwise.torch._inputs._module import Module
from setwise.torch._inputs._sets import INTEGERS
from setwise.torch._inputs._softmax_options import Classes, SoftmaxOptions, read_classes
from setwise.torch._inputs._weights import changed, on_device, read_weight
from setwise.torch._operators._gather import gathered
from setwise.torch._operators._library import with_doubles


class SetScore(Module):
    r"""A score, 1 minus a set loss of predicted masks, accumulated over batches and ranks.

    With ``per_image=False`` the counts of all batches are summed and each class has one loss: for
    Jaccard the mean is the usual mIoU. With ``per_image=True`` each image has its own losses, which
    ``average`` and ``worst`` combine: "images" and "classes" give the image-wise and the class-wise
    mIoU of fine-grained evaluation (arXiv 2310.19252). The interface is that of torchmetrics:
    ``update``, ``compute``, ``reset``, and a call for the score of one batch alone.

    Parameters
    ----------
    loss : Loss or str
        A ratio of counts: Jaccard, Dice, F-beta.
    n_classes : int
        The number C of classes. For masks it is the number of masks, 1 for binary segmentation.
    kind : {"classes", "masks"}
        With "classes" each pixel has one class: the argmax of logits (N, C, ...), or an integer
        class (N, ...). With "masks" the masks are separate: logits (N, C, ...) above 0, or
        booleans, and a target of the same shape.
    classes : {"present", "all"} or list of int
        The classes that count: those that occur in the truth of a set, all, or those listed. A
        class that neither occurs nor is predicted has a loss of 0: with "all" its score is 1.
    per_image, ignore_index, weight, average, worst
        As for ``LovaszSoftmaxLoss``; ``worst`` selects the lowest scores.
    reduction : {"mean", "none"}
        "none" returns shape (C,), or (images, C) with ``per_image``, with NaN for classes that do
        not count.

    Examples
    --------
    >>> import torch
    >>> import setwise as sw
    >>> score = sw.torch.SetScore("jaccard", n_classes=3)
    >>> score.update(torch.tensor([[0, 0, 1, 1]]), torch.tensor([[0, 0, 0, 1]]))
    >>> score.update(torch.tensor([[1, 1, 1, 1]]), torch.tensor([[1, 1, 1, 1]]))
    >>> round(score.compute().item(), 3)  # class 0: 2 of 3, class 1: 5 of 6
    0.75
    """

    weight: Tensor | None

    @hints_at_names
    def __init__(
        self,
        loss: Loss | str = "jaccard",
        *,
        n_classes: int,
        kind: Literal["classes", "masks"] = "classes",
        classes: Classes = "present",
        per_image: bool = False,
        ignore_index: int | None = None,
        weight: Any = None,
        average: Average = "images",
        worst: float | None = None,
        reduction: Literal["mean", "none"] = "mean",
    ) -> None:
        super().__init__()
        self.loss = get(loss)
        bare, self._factor = self.loss._unscaled()
        if bare._fraction is None:
            raise ValueError(
                f"loss must be a ratio of counts such as 'jaccard' or 'dice', got {self.loss!r}"
            )
        self._constants = bare._fraction._constants
        if isinstance(n_classes, bool) or not isinstance(n_classes, int):
            raise TypeError(f"n_classes must be an integer, got {n_classes!r}")
        if n_classes < 1:
            raise ValueError(f"n_classes must be at least 1, got {n_classes}")
        if kind not in ("classes", "masks"):
            near = did_you_mean(kind, ("classes", "masks"))
            raise ValueError(f"kind must be 'classes' or 'masks', got {kind!r}{near}")
        if reduction not in ("mean", "none"):
            near = did_you_mean(reduction, ("mean", "none"))
            raise ValueError(f"reduction must be 'mean' or 'none', got {reduction!r}{near}")
        self.n_classes, self.kind = n_classes, kind
        self.options = SoftmaxOptions(
            read_classes(classes), per_image, ignore_index, reduction, average=average, worst=worst
        )
        self.options.named(n_classes)
        self.register_buffer("weight", read_weight(weight), persistent=False)
        if self.weight is not None and self.weight.shape != (n_classes,):
            raise ValueError(
                f"weight must have shape ({n_classes},), one entry a class, "
                f"got {tuple(self.weight.shape)}"
            )
        self.reset()

    def reset(self) -> None:
        """Discard the counts of all batches."""
        self._counts: list[Tensor] = []

    def update(self, input: Tensor, target: Tensor) -> None:
        """Add a batch of predictions and targets to the counts."""
        counts = self._counted(input, target)
        if self.options.per_image or not self._counts:
            self._counts.append(counts)
        else:
            self._counts[0] = self._counts[0] + counts

    def compute(self) -> Tensor:
        """Return the score of all batches of all ranks since the last reset."""
        several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        if not self._counts and not several:
            raise ValueError("update must be called before compute, got no batch")
        # With NCCL every rank sends tensors of its device, even a rank without a batch.
        where = "cuda" if several and dist.get_backend() == "nccl" else "cpu"
        nothing = torch.zeros(0, self.n_classes, 4, dtype=torch.int64, device=where)
        parts = self._counts or [nothing]
        counts = gathered(torch.cat(parts))
        return self._score(counts if self.options.per_image else counts.sum(0, keepdim=True))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the score of one batch, and add the batch to the counts."""
        self.update(input, target)
        return self._score(self._counted(input, target))

    def _counted(self, input: Tensor, target: Tensor) -> Tensor:
        """Return counts (T, C, 4): positives, false negatives, false positives, valid elements."""
        predicted, truth, valid = self._masks(input, target)
        if valid is not None:
            predicted, truth = predicted & valid, truth & valid
        else:
            valid = torch.ones_like(truth)
        parts = (truth, truth & ~predicted, predicted & ~truth, valid)
        counts = torch.stack([part.sum(2) for part in parts], 2)
        return counts if self.options.per_image else counts.sum(0, keepdim=True)

    def _masks(self, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return predicted and true masks (N, C, P), and a mask of the elements that count."""
        for name, tensor in (("input", input), ("target", target)):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{name} must be a tensor, got {type(tensor).__name__}")
        number, ignore = self.n_classes, self.options.ignore_index
        if self.kind == "masks":
            if input.shape != target.shape or input.ndim < 2 or input.shape[1] != number:
                raise ValueError(
                    f"input and target must have one shape (N, {number}, ...), got "
                    f"{tuple(input.shape)} and {tuple(target.shape)}"
                )
            void = float("nan") if ignore is None else float(ignore)
            truth, valid = read_target(target, void)
            predicted = input if input.dtype == torch.bool else input > 0
            shape = (len(input), number, math.prod(input.shape[2:]))
            return (
                predicted.reshape(shape),
                truth.reshape(shape),
                None if valid is None else valid.reshape(shape),
            )
        if target.dtype != torch.bool and target.dtype not in INTEGERS:
            raise TypeError(f"target must hold integers or booleans, got {target.dtype}")
        target = comparable(target)
        if input.is_floating_point():
            if input.ndim < 2 or input.shape[1] != number:
                raise ValueError(
                    f"input must have shape (N, {number}, ...) where it holds logits, "
                    f"got {tuple(input.shape)}"
                )
            input = input.argmax(1)
        if input.shape != target.shape:
            raise ValueError(
                f"target must have shape {tuple(input.shape)}, a class for each pixel, "
                f"got {tuple(target.shape)}"
            )
        if target.ndim == 0:
            raise ValueError("input and target must have a dimension of images, got scalars")
        check_classes(target, number, ignore)
        classes = torch.arange(number, device=target.device)[:, None]
        shape = (len(target), 1, math.prod(target.shape[1:]))
        labels, found = target.reshape(shape), input.reshape(shape)
        void_pixels = voids(target, ignore)
        valid = None
        if void_pixels is not None:
            valid = (~void_pixels).reshape(shape).expand(-1, number, -1)
        return found == classes, labels == classes, valid

    @with_doubles
    def _score(self, counts: Tensor) -> Tensor:
        """Return the score of counts (T, C, 4)."""
        named = self.options.named(self.n_classes)
        m, missed, added, elements = of_classes(counts, named).double().unbind(2)
        a, c, d = self._constants
        below = c * m - d * missed + added
        ratio = (a * missed + added) / torch.where(below > 0, below, 1.0)
        losses = torch.where(m > 0, ratio, (added > 0).double()) * self._factor
        counted = m > 0 if self.options.classes == "present" else elements > 0
        weight = on_device(self.weight, counts)
        weight = None if weight is None else of_classes(weight[None], named)[0]
        if self.options.reduction == "none":
            scores = torch.where(counted, 1 - losses, torch.nan)
            return scores if self.options.per_image else scores[0]
        if not bool(counted.any()):
            return losses.new_tensor(torch.nan)
        mean = mean_of_sets(losses, counted, weight, self.options.average, self.options.worst)
        return 1 - mean

    def extra_repr(self) -> str:
        """Return the loss, what is counted, and the options that differ from their defaults."""
        words = [repr(self.loss), f"n_classes={self.n_classes}", f"kind={self.kind!r}"]
        return ", ".join([*words, *changed(self.options, self.weight)])
