"""The function and the base class that all losses of scores share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from setwise.losses import Loss
from setwise.torch._inputs._loss_words import HoldsLoss, word_of
from setwise.torch._inputs._margins import are_classes, one_against_the_rest
from setwise.torch._inputs._sets import (
    ScoreOptions,
    as_rows,
    check_flags,
    check_input,
    check_per_class,
    fitting,
    reduced,
    same_shape,
)
from setwise.torch._inputs._weights import changed, on_device, read_weight
from setwise.torch._operators._eager import OneSet, is_eager
from setwise.torch._operators._gather import gathered
from setwise.torch._operators._library import compiled_with_operators
from setwise.torch._operators._nodes import values_of_rows


def of_scores(
    surrogate: str,
    input: Tensor,
    target: Tensor,
    loss: Loss | str,
    weight: Tensor | None,
    options: ScoreOptions,
    scale: float = 1.0,
) -> Tensor:
    """Return the surrogate of every set, reduced."""
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


def checked_weight(weight: Any, options: ScoreOptions) -> Tensor | None:
    """Return the class weights that a function was given, checked."""
    check_per_class(weight, options)
    return read_weight(weight)


class SurrogateLoss(HoldsLoss):
    """The base class of the modules that compute a surrogate of scores."""

    weight: Tensor | None
    _surrogate: str
    _scale: float = 1.0

    def __init__(
        self, loss: Loss | str, *, weight: Any = None, across_ranks: bool = False, **options: Any
    ) -> None:
        super().__init__(loss)
        self.options = ScoreOptions(**options)
        check_flags(across_ranks=across_ranks)
        self.across_ranks = across_ranks
        self.register_buffer("weight", checked_weight(weight, self.options), persistent=False)

    @compiled_with_operators
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of logits for their targets."""
        if self.across_ranks:
            input, target = gathered(input), gathered(target)
        return of_scores(
            self._surrogate, input, target, self._word, self.weight, self.options, self._scale
        )

    def extra_repr(self) -> str:
        """Return the loss, and the options that differ from their defaults."""
        more = {"across_ranks": True} if self.across_ranks else {}
        return ", ".join([repr(self.loss), *changed(self.options, self.weight, **more)])
