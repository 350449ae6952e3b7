r"""The upper bound on log Z of a batch of fields and its marginals, with their derivatives.

The bound :math:`U(\theta, w)` of logits and weights is convex in the logits. By Danskin's theorem
its gradient is :math:`(p, -f(p))`: the marginals, and minus the prices of edges and regions at
them. So the derivative of p is the Hessian of U, which is symmetric. For a function of p with
slopes g,

.. math:: \frac{d}{d(\theta, w)} = \lim_{\epsilon \to 0}
   \frac{\nabla U(\theta + \epsilon g, w) - \nabla U(\theta - \epsilon g, w)}{2 \epsilon},

which takes two more solutions that start at the first one, and no memory for the passes. With two
labels the blocks of ``projection`` are known exactly, and so is the derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise.torch._fields._arguments import check_logits
from setwise.torch._fields._problem import FieldAnswer, FieldProblem, centred

# A step shorter than the root of _LEAST is smaller than the rounding errors of the solutions. Not
# tuned.
_LEAST = 1e-12


def answer_of(problem: FieldProblem, *tensors: Tensor, **options: Any) -> FieldAnswer:
    """Return the solution by the device of the tensors if it can solve it, else by the host."""
    from setwise._foundation._imports import load

    if tensors[0].device.type == "cuda":
        found = load("setwise.torch._fields._device_solver").solve(problem, *tensors, **options)
        if found is not None:
            answer: FieldAnswer = found
            return answer
        check_logits(tensors[0])
    answer = load("setwise.torch._fields._host_solver").solve(problem, *tensors, **options)
    return answer


class LogPartition(torch.autograd.Function):
    """The map of logits (B, L, N) and weights to marginals, upper and lower bound, and gap."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        weights: Tensor,
        region_weights: Tensor,
        problem: FieldProblem,
        lower: bool,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        answer = answer_of(problem, logits, weights, region_weights, lower=lower)
        dtype, device = logits.dtype, logits.device
        below = torch.full_like(answer.upper, -torch.inf) if answer.lower is None else answer.lower
        p = answer.probabilities.to(device, dtype).contiguous()
        if p._is_view():  # a view could not be written to
            p = p.clone()
        # A node that holds its own output forms a reference cycle, whose memory is freed only by
        # garbage collection. Tensors that are saved by torch are checked for later writes.
        alone, bound = answer.probabilities.detach(), answer.upper.detach()
        ctx.problem, ctx.answer = problem, replace(answer, probabilities=alone, upper=bound)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(logits, weights, region_weights, answer.probabilities)
        below, gap = below.to(device), answer.gap.to(device)
        ctx.mark_non_differentiable(below, gap)
        return p, answer.upper.to(device), below, gap

    @staticmethod
    def backward(ctx: Any, slopes: Any, upper: Any, *rest: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors[:3]
        with torch.no_grad():
            found = _slopes(ctx.problem, ctx.answer, tensors, slopes, upper, ctx.needs_input_grad)
        if torch.is_grad_enabled():  # true if create_graph=True
            of = [x for x in (*tensors, slopes, upper) if x is not None]
            once: Any = _Once.apply
            found = tuple(None if x is None else once(x, *of) for x in found)
        return *found, None, None


class _Once(torch.autograd.Function):
    """The identity on a first derivative, which raises an error if it is differentiated."""

    @staticmethod
    def forward(ctx: Any, slope: Tensor, *of: Tensor) -> Tensor:
        return slope.clone()  # a view could not be written to

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        raise RuntimeError("a field has first derivatives only, got a request for second ones")


def _slopes(
    problem: FieldProblem,
    answer: FieldAnswer,
    tensors: tuple[Tensor, ...],
    slopes: Tensor | None,
    upper: Tensor | None,
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the logits and weights, given those of the marginals and bound."""
    logits, weights, region_weights = tensors
    needs = (wanted[1], wanted[2])
    p = answer.probabilities
    found: list[Tensor | None] = [None, None, None]
    if upper is not None:
        of_bound: list[Tensor | None] = [p, None, None]
        if needs[0]:
            of_bound[1] = -answer.pairs(problem)
        if needs[1]:
            of_bound[2] = -answer.layers(problem)
        scale = upper.to(p.device)
        found = [None if x is None else _times(scale, x) for x in of_bound]
    if slopes is not None and slopes.any():
        moved = _of_marginals(problem, tensors, answer, slopes.to(p), needs)
        found = [y if x is None else x + y for x, y in zip(found, moved, strict=True)]
    d_logits, d_pairs, d_layers = found
    d_weights = d_regions = None
    if needs[0] and d_pairs is not None:
        d_weights = problem.graph.to_slots(d_pairs).to(weights)
    if needs[1] and d_layers is not None:
        d_regions = d_layers.to(region_weights)
    d_logits = torch.zeros_like(logits) if d_logits is None else d_logits.to(logits)
    return d_logits, d_weights, d_regions


def _times(scale: Tensor, values: Tensor) -> Tensor:
    """Return the values of each image times its number in ``scale``."""
    return scale.to(values.dtype).view(-1, *[1] * (values.ndim - 1)) * values


def _of_marginals(
    problem: FieldProblem,
    tensors: tuple[Tensor, ...],
    answer: FieldAnswer,
    slopes: Tensor,
    needs: tuple[bool, bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return slopes in logits, edges and regions for slopes (B, L, N) in the marginals."""
    if answer.is_exact:
        return _binary(problem, answer.probabilities, slopes)
    logits, weights, region_weights = tensors
    logits = centred(logits.to(torch.promote_types(logits.dtype, slopes.dtype)))
    # The gap is about the square of the error of the marginals. A search that starts at this
    # solution and stops at a gap of the squared step might not move at all. So the tolerance is a
    # ten-thousandth of the squared step.
    tol = max(problem.backward_tol, answer.least_tol, _LEAST)
    largest = slopes.abs().flatten(1).amax(1)
    finite = torch.isfinite(largest)  # images whose slopes overflowed get slopes of NaN and no step
    step = sqrt(tol) / torch.where(finite & (largest > 0), largest, 1.0)
    shift = step[:, None, None] * torch.where(finite[:, None, None], slopes, 0.0)
    rate = torch.where(finite, 0.5 / step, torch.nan)
    ahead, behind = (
        answer_of(
            problem,
            logits.to(shift) + sign * shift,
            weights,
            region_weights,
            states=answer.states,
            tol=max(1e-4 * min(problem.tol, tol), answer.least_tol),
        )
        for sign in (1.0, -1.0)
    )

    def quotient(of: Callable[[FieldAnswer], Tensor]) -> Tensor:
        return _times(rate, of(ahead) - of(behind))

    nothing = torch.zeros((), dtype=slopes.dtype, device=slopes.device)
    return (
        quotient(lambda answer: answer.probabilities),
        -quotient(lambda answer: answer.pairs(problem)) if needs[0] else nothing,
        -quotient(lambda answer: answer.layers(problem)) if needs[1] else nothing,
    )


def _binary(problem: FieldProblem, p: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    from setwise._foundation._imports import load

    slopes_of = load("setwise.torch._fields._binary").binary_slopes
    regions = problem.regions.cpu().numpy()
    on_host = [t.cpu().double().transpose(1, 2).contiguous().numpy() for t in (p, slopes)]
    found = []
    for b, (one, along) in enumerate(zip(*on_host, strict=True)):
        layers = [(regions[b, k], a, problem.n_regions) for k, a in enumerate(problem.alphas)]
        found.append(slopes_of(one, along, problem.graph.edges, layers))

    def stacked(parts: list[Any], *shape: int) -> Tensor:
        return torch.from_numpy(np.array(parts).reshape(len(found), *shape)).to(p.device)

    return (
        stacked([s.logits for s in found], p.shape[2], 2).transpose(1, 2),
        stacked([s.edges for s in found], len(problem.graph.edges)),
        stacked([s.layers for s in found], len(problem.alphas), problem.n_regions),
    )


def log_partition(
    logits: Tensor,
    weights: Tensor,
    region_weights: Tensor,
    problem: FieldProblem,
    *,
    lower: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return marginals (B, L, N), and upper and lower bounds on log Z and gaps, (B,) each."""
    answer: tuple[Tensor, Tensor, Tensor, Tensor] = LogPartition.apply(
        logits, weights, region_weights, problem, lower
    )  # type: ignore[no-untyped-call]
    return answer
