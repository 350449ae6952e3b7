"""What the losses of scores have in common: one operator, and a module that holds its options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from setwise.losses import Loss
from setwise.torch._distributed import gathered
from setwise.torch._inputs._loss_words import HoldsLoss, word_of
from setwise.torch._inputs._margins import are_classes, one_against_the_rest
from setwise.torch._inputs._sets import (
    Options,
    as_rows,
    check_flags,
    check_input,
    check_per_class,
    fitting,
    reduced,
    same_shape,
)
from setwise.torch._inputs._weights import on_device, read_weight
from setwise.torch._operators._eager import OneSet, is_eager
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._operators._nodes import values_of_rows


def of_scores(
    surrogate: str,
    input: Tensor,
    target: Tensor,
    loss: Loss | str,
    weight: Tensor | None,
    options: Options,
    scale: float = 1.0,
) -> Tensor:
    """The surrogate of every set, reduced."""
    check_input(input, target)
    if are_classes(input, target):
        if not options.per_class:
            raise ValueError(
                "per_class must be True where target holds classes, one for each pixel of input "
                f"{tuple(input.shape)}: every class is a set, got False"
            )
        input, target, void = one_against_the_rest(input, target, options.ignore_index)
        options = replace(options, ignore_index=void)
    target = same_shape(input, target)
    fitting(weight, input.shape)
    weight = on_device(weight, input)
    rest = (surrogate, word_of(loss), options.ignore, options.counted, scale)
    if is_eager(input) and not options.per_image and not options.per_class:
        value: Tensor = OneSet.apply(input, target, *rest)  # type: ignore[no-untyped-call]
        return value
    values = values_of_rows(as_rows(input, options), as_rows(target, options), *rest)
    return reduced(values, input.shape, weight, options)


def checked_weight(weight: Any, options: Options) -> Tensor | None:
    """What a function was given for weights of classes, looked at."""
    check_per_class(weight, options)
    return read_weight(weight)


class SurrogateLoss(HoldsLoss):
    """A loss module: the loss, the options, and ``forward``."""

    weight: Tensor | None
    _surrogate: str
    _scale: float = 1.0

    def __init__(
        self, loss: Loss | str, *, weight: Any = None, across_ranks: bool = False, **options: Any
    ) -> None:
        super().__init__(loss)
        self.options = Options(**options)
        check_flags(across_ranks=across_ranks)
        self.across_ranks = across_ranks
        self.register_buffer("weight", checked_weight(weight, self.options), persistent=False)

    @compiled_with_operators
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of logits and their targets."""
        if self.across_ranks:
            input, target = gathered(input), gathered(target)
        return of_scores(
            self._surrogate, input, target, self._word, self.weight, self.options, self._scale
        )

    def extra_repr(self) -> str:
        """The loss, and the options that are not the usual ones."""
        usual = Options()
        changed = {
            name: value
            for name, value in vars(self.options).items()
            if value != getattr(usual, name)
        }
        if self.across_ranks:
            changed["across_ranks"] = True
        return ", ".join([repr(self.loss), *(f"{name}={v!r}" for name, v in changed.items())])
