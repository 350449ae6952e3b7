"""The base class of all layers of fields, with their weights and the checks of their arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from setwise.torch._fields._arguments import (
    METHODS,
    Batch,
    as_passes,
    as_real,
    as_reals,
    check_logits,
    check_word,
    read_logits,
    read_region_weights,
    read_regions,
    read_weights,
)
from setwise.torch._fields._graph import as_directions
from setwise.torch._fields._problem import FieldProblem
from setwise.torch._inputs._module import Module
from setwise.torch._inputs._sets import check_flags
from setwise.torch._operators._library import with_doubles


def _tols_of(logits: Tensor) -> tuple[float, float]:
    """Return the default tolerances of the forward and the backward pass for a batch (B, L, N).

    Images of at most 1024 logits (pixels times labels) have fine ones, which take as long as 1e-8
    and 1e-6, since few passes are left when the blocks are known. These made the derivative wrong
    by up to 4 %: the backward pass made ten times as long a step, which crossed more kinks. Device
    solvers limit the tolerances further.
    """
    small = logits[0].numel() <= 1024 if len(logits) else True
    return (1e-10, 1e-8) if small else (1e-3, 1e-6)


@dataclass(frozen=True, eq=False)
class Call:
    """The checked arguments of a call: the tensors with derivatives, and the problem."""

    batch: Batch
    weights: Tensor
    region_weights: Tensor
    problem: FieldProblem

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.batch.logits, self.weights, self.region_weights


class FieldLayer(Module):
    """The base class of layers that hold a field over pixels; see ``FieldMarginals``."""

    raw_weight: nn.Parameter | None
    raw_region_weight: nn.Parameter | None

    def __init__(
        self,
        weight: float = 1.0,
        *,
        learn: bool = False,
        connectivity: Any = None,
        beta: float | None = None,
        region_weight: Any = None,
        alpha: float = 0.8,
        method: str = "projection",
        tol: float | None = None,
        backward_tol: float | None = None,
        max_iter: int | None = None,
        bounds: bool = False,
    ) -> None:
        super().__init__()
        check_flags(learn=learn, bounds=bounds)
        self.learn, self.bounds = learn, bounds
        self.connectivity = as_directions(connectivity)
        self.beta = None if beta is None else as_real(beta, "beta")
        self.alpha = as_real(alpha, "alpha", positive=True)
        if self.alpha > 1:
            raise ValueError(f"alpha must be at most 1, got {alpha}")
        self.method = check_word(method, "method", METHODS)
        self.tol = None if tol is None else as_real(tol, "tol")
        self.backward_tol = (
            None if backward_tol is None else as_real(backward_tol, "backward_tol", positive=True)
        )
        self.max_iter = as_passes(max_iter)
        self._hold("weight", [as_real(weight, "weight", positive=learn)])
        strengths = None if region_weight is None else as_reals(region_weight, "region_weight")
        if strengths == []:
            raise ValueError("region_weight must have a number for each layer, got none")
        if learn and strengths is not None and not all(strengths):
            raise ValueError("region_weight must be positive where it is learnt, got 0")
        self._hold("region_weight", strengths)

    def _hold(self, name: str, values: list[float] | None) -> None:
        """Store numbers, or a parameter whose softplus is the weight, so that it stays positive."""
        raw = None
        if values is not None and self.learn:
            given = torch.tensor(values)
            raw = nn.Parameter(given + torch.log(-torch.expm1(-given)))
        self.register_parameter(f"raw_{name}", raw)
        setattr(self, f"_{name}", values)

    def _held(self, name: str, like: Tensor, size: tuple[int, ...] = (1,)) -> Tensor | None:
        """Return learnt weights, or the given ones as a tensor of this size."""
        raw: Tensor | None = getattr(self, f"raw_{name}")
        if raw is not None:
            return softplus(raw).to(like)
        values: list[float] | None = getattr(self, f"_{name}")
        if values is None:
            return None
        most = torch.finfo(like.dtype).max
        held = [like.new_full(size, x if x <= most else torch.inf) for x in values]
        return held[0] if len(held) == 1 else torch.cat(held)

    @property
    def weight(self) -> Tensor:
        """The weight of pairs (1,), learnt or given."""
        held = self._held("weight", torch.zeros((), device=self._device))
        assert held is not None
        return held

    @property
    def region_weight(self) -> Tensor | None:
        """The weights (1,) or (K,) of the layers of regions, learnt or given."""
        return self._held("region_weight", torch.zeros((), device=self._device))

    @property
    def _device(self) -> torch.device | None:
        return None if self.raw_weight is None else self.raw_weight.device

    def _read(
        self,
        logits: Any,
        image: Any,
        regions: Any,
        weights: Any,
        region_weights: Any,
        edges: Any,
        *,
        check: bool = True,
    ) -> Call:
        batch = read_logits(logits, edges, self.connectivity)
        if check:
            check_logits(batch.logits)
        layers, n_regions = read_regions(regions, batch, weighted=region_weights is not None)
        alone = weights is None and image is None
        size = (len(batch.logits), *batch.graph.slots) if alone else (1,)
        pair_strength = self._held("weight", batch.logits, size)
        assert pair_strength is not None
        pairs = read_weights(pair_strength, batch, weights, image, self.beta)
        strength = self._held("region_weight", batch.logits)
        if strength is None:
            if layers.shape[1]:
                raise ValueError(
                    "region_weight must be given to a layer that is called with regions, got None"
                )
            if region_weights is not None:
                raise ValueError("region_weights must be None without regions, got a tensor")
            of_regions = batch.logits.new_empty(len(batch.logits), 0, 0)
        elif not layers.shape[1]:
            raise ValueError("regions must be given to a layer with a region_weight, got None")
        else:
            of_regions, n_regions = read_region_weights(
                strength, batch, layers.shape[1], n_regions, region_weights
            )
        alphas = (self.alpha,) * layers.shape[1]
        tol, backward_tol = _tols_of(batch.logits)
        problem = FieldProblem(
            batch.graph,
            layers,
            n_regions,
            alphas,
            self.method,
            tol if self.tol is None else self.tol,
            self.max_iter,
            backward_tol if self.backward_tol is None else self.backward_tol,
        )
        return Call(batch, pairs, of_regions, problem)

    def extra_repr(self) -> str:
        """Return the weights, and the options that differ from their defaults."""
        parts, weight, of_regions = [], self.weight, self.region_weight
        if not weight.is_meta:
            parts.append(f"weight={weight.item():.4g}")
        if self.learn:
            parts.append("learn=True")
        if of_regions is not None and not of_regions.is_meta:
            parts.append(f"region_weight={[round(w, 4) for w in of_regions.tolist()]}")
        if self.method != "projection":
            parts.append(f"method={self.method!r}")
        return ", ".join(parts)


F = TypeVar("F", bound=Callable[..., Any])


def eager(function: F) -> F:
    """Do the same as torch.compiler.disable without loading the compiler: graphs break here.

    Autocast is off inside: sums of energies need full precision.
    """
    hidden: list[Callable[..., Any]] = []

    @with_doubles
    def plain(*arguments: Any, **options: Any) -> Any:
        given = (*arguments, *options.values())
        device = next((a.device.type for a in given if isinstance(a, Tensor)), "cpu")
        if device == "meta":  # meta tensors have no autocast
            return function(*arguments, **options)
        with torch.autocast(device, enabled=False):
            return function(*arguments, **options)

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return plain(*arguments, **options)
        if not hidden:
            hidden.append(sys.modules["torch._dynamo"].disable(plain))
        return hidden[0](*arguments, **options)

    run._torchdynamo_disable = True  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]
