"""Long calls of the layers of fields."""

from __future__ import annotations

from collections.abc import Callable

import torch

import setwise as sw
from interrupt_registry._calls import Call, long


def _batch(n_labels: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    side = 12 * size
    logits = 2 * torch.randn(1, n_labels, side, side, generator=generator).double()
    return logits, torch.randint(0, n_labels, (1, side, side), generator=generator)


def _marginals(n_labels: int, **options: object) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        layer, (x, _) = sw.torch.FieldMarginals(1.0, bounds=True, **options), _batch(n_labels, size)

        def call() -> object:
            leaf = x.clone().requires_grad_()
            post = layer(leaf)
            post.probabilities.square().sum().backward()
            parts = (post.probabilities.detach(), post.log_partition_lower, leaf.grad)
            return [part.numpy() for part in parts]

        return call

    return make


def _loss(kind: type[torch.nn.Module]) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        x, y = _batch(3, size)
        return lambda: kind(1.0, tol=1e-6)(x, y).numpy()

    return make


_OF_MARGINALS = "torch.FieldMarginals.forward"
long(_OF_MARGINALS, "projection")(_marginals(3, tol=1e-4))
long(_OF_MARGINALS, "two labels")(_marginals(2))
long(_OF_MARGINALS, "trees")(_marginals(3, method="trees", tol=1e-6))
long("torch.FieldLikelihoodLoss.forward")(_loss(sw.torch.FieldLikelihoodLoss))
long("torch.FieldHingeLoss.forward")(_loss(sw.torch.FieldHingeLoss))


@long("torch.FieldMAP.forward")
def best_labels(size: int) -> Call:
    x, _ = _batch(4, size)
    return lambda: sw.torch.FieldMAP(1.0, tol=1e-6)(x).numpy()
