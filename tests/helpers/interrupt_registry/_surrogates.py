"""Long calls of the surrogates, in NumPy and in torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

import setwise as sw
from interrupt_registry._calls import Call, long
from interrupt_registry._functions import cut_function
from setwise import functions
from setwise.surrogates._maximizers import RescalingRule, most_violated


def _surrogate_of(surrogate: sw.surrogates.Surrogate, method: str) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        rng = np.random.default_rng(0)
        y, scores = rng.random((400 * size, 50)) < 0.3, rng.normal(size=(400 * size, 50))
        return lambda: getattr(surrogate, method)(y, scores)

    return make


for _surrogate in (
    sw.surrogates.LovaszHinge("jaccard"),
    sw.surrogates.DecomposedHinge("dice"),
    sw.surrogates.MarginRescaling("jaccard"),
    sw.surrogates.SlackRescaling("jaccard"),
):
    for _method in ("__call__", "value_and_gradient"):
        long(f"surrogates.{type(_surrogate).__name__}.{_method}")(
            _surrogate_of(_surrogate, _method)
        )


@long("surrogates.MarginRescaling.value_and_gradient", "by minimisation")
def most_violated_sets(size: int) -> Call:
    function = functions.Modular(np.full(20 * size, 8.0)) - cut_function(20 * size)
    margins = np.random.default_rng(0).normal(size=(3, function.n))
    rule = RescalingRule(slack=False, weight=2.0)
    return lambda: most_violated(function, margins, rule, "minimize")


def _torch_loss(name: str, **options: object) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        generator = torch.Generator().manual_seed(0)
        softmax = name == "lovasz_softmax"
        shape = (1, 4, 100 * size, 100) if softmax else (100 * size, 100)
        scores = torch.randn(shape, generator=generator, requires_grad=True)
        target = torch.randint(
            0, 4 if softmax else 2, (1, 100 * size, 100) if softmax else shape, generator=generator
        )

        def call() -> object:
            scores.grad = None
            loss = getattr(sw.torch, name)(scores, target, **options)
            loss.backward()
            return loss.detach().numpy(), scores.grad.numpy().copy()

        return call

    return make


for _name in ("lovasz_hinge", "lovasz_softmax"):
    long(f"torch.{_name}")(_torch_loss(_name))
    long(f"torch.{_name}", "bucket")(_torch_loss(_name, buckets=8192))
for _name in ("decomposed_hinge", "lovasz_sigmoid", "margin_rescaling", "slack_rescaling"):
    long(f"torch.{_name}")(_torch_loss(_name))
