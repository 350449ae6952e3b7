r"""The upper bound on log Z of a batch of fields and its marginals, with their derivatives.

The bound :math:`U(\theta, w)` of logits and weights is convex in the logits, and its gradient is
:math:`(p, -f(p))`: the marginals, and minus what each edge and region pays at them (Danskin). So
the derivative of p is the Hessian of U, which is symmetric: for a function of p with slopes g,

.. math:: \frac{d}{d(\theta, w)} = \lim_{\epsilon \to 0}
   \frac{\nabla U(\theta + \epsilon g, w) - \nabla U(\theta - \epsilon g, w)}{2 \epsilon},

two more solutions that start at the first, and no memory for the passes between. With two labels
the blocks of ``projection`` are known exactly, and so is the derivative.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setwise.torch._fields._answer import Answer, Problem


def answer_of(problem: Problem, *tensors: Tensor, **options: Any) -> Answer:
    """The solution on the device of the tensors where it can be had there, else on the host."""
    from setwise._foundation._imports import load

    found: Answer = load("setwise.torch._fields._host").solve(problem, *tensors, **options)
    return found


class LogPartition(torch.autograd.Function):
    """Logits (B, L, N), weights (B, K, M), (B, K', R) -> marginals, upper, lower, gap."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        weights: Tensor,
        region_weights: Tensor,
        problem: Problem,
        lower: bool,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        answer = answer_of(problem, logits, weights, region_weights, lower=lower)
        dtype, device = logits.dtype, logits.device
        below = torch.full_like(answer.upper, -torch.inf) if answer.lower is None else answer.lower
        p = answer.probabilities.to(device, dtype).contiguous()
        ctx.problem, ctx.states = problem, answer.states
        ctx.save_for_backward(
            logits, weights, region_weights, p, answer.probabilities, answer.pairs, answer.layers
        )
        below, gap = below.to(device), answer.gap.to(device)
        ctx.mark_non_differentiable(below, gap)
        return p, answer.upper.to(device), below, gap

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, slopes: Tensor, upper: Tensor, *_: Tensor) -> tuple[Any, ...]:
        logits, weights, region_weights, _, p, pairs, layers = ctx.saved_tensors
        problem: Problem = ctx.problem
        scale = upper.to(pairs)
        d_logits = scale[:, None, None] * p
        d_pairs, d_layers = -scale[:, None] * pairs, -scale[:, None, None] * layers
        if slopes.any():
            moved = _of_marginals(
                problem, (logits, weights, region_weights), p, slopes.to(p), ctx.states
            )
            d_logits, d_pairs, d_layers = (
                a + b for a, b in zip((d_logits, d_pairs, d_layers), moved, strict=True)
            )
        d_weights = problem.graph.to_slots(d_pairs).to(weights)
        return d_logits.to(logits), d_weights, d_layers.to(region_weights), None, None


def _of_marginals(
    problem: Problem, tensors: tuple[Tensor, ...], p: Tensor, slopes: Tensor, states: list[Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """From slopes (B, L, N) in the marginals to those in logits, edges and regions."""
    if problem.method == "projection" and p.shape[1] == 2 and all(s is None for s in states):
        return _binary(problem, p, slopes)
    logits, weights, region_weights = tensors
    largest = slopes.abs().flatten(1).amax(1)
    # An error of the gap is about the square of one of the marginals.
    step = sqrt(problem.backward_tol) / torch.where(largest > 0, largest, 1.0)
    shift = step[:, None, None] * slopes
    ahead, behind = (
        answer_of(
            problem,
            logits.to(slopes) + sign * shift,
            weights,
            region_weights,
            states=states,
            tol=min(problem.tol, problem.backward_tol),
        )
        for sign in (1.0, -1.0)
    )

    def quotient(a: Tensor, b: Tensor) -> Tensor:
        width = (2.0 * step).to(a).view(-1, *[1] * (a.ndim - 1))
        return (a - b) / width

    return (
        quotient(ahead.probabilities, behind.probabilities),
        -quotient(ahead.pairs, behind.pairs),
        -quotient(ahead.layers, behind.layers),
    )


def _binary(problem: Problem, p: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    from setwise._foundation._imports import load

    slopes_of = load("setwise.torch._fields._binary").binary_slopes
    regions = problem.regions.cpu().numpy()
    on_host = [t.double().cpu().transpose(1, 2).contiguous().numpy() for t in (p, slopes)]
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
    problem: Problem,
    *,
    lower: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Marginals (B, L, N), upper and lower bounds on log Z and the duality gap, (B,) each."""
    answer: tuple[Tensor, Tensor, Tensor, Tensor] = LogPartition.apply(
        logits, weights, region_weights, problem, lower
    )  # type: ignore[no-untyped-call]
    return answer
