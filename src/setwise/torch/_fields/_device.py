"""The solvers on a CUDA device; what they do not take is for the host."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from setwise.torch._cuda._field import grid_bound
from setwise.torch._fields._answer import Answer, Problem

_PRECISION = 1e-5  # the relative gap that single precision reaches


def solve(
    problem: Problem,
    logits: Tensor,
    weights: Tensor,
    region_weights: Tensor,
    *,
    lower: bool = False,
    states: Any = None,
    tol: float | None = None,
) -> Answer | None:
    """As the host's; None where the field is no grid with pairs alone, or a lower bound is due."""
    graph = problem.graph
    if graph.sides is None or problem.alphas or problem.method != "projection" or lower:
        return None
    index = logits.device.index
    here = nullcontext() if index == torch.cuda.current_device() else torch.cuda.device(index)
    with here:
        found = grid_bound(
            logits.detach(),
            weights.detach(),
            graph.sides,
            graph.directions,
            max(problem.tol if tol is None else tol, _PRECISION),
            problem.max_iter,
            states,
        )
    if found is None:
        return None
    return Answer(
        found.p,
        found.upper,
        found.gap,
        states=found.flow,
        least_tol=_PRECISION,
    )
