"""What a solver is given, and what it hands back to a layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from setwise.torch._fields._graph import Graph


@dataclass(frozen=True, eq=False)
class Problem:
    """Fields of one graph: everything but the logits and the weights, which have derivatives."""

    graph: Graph
    regions: Tensor
    """(B, K, N) integers: the region of each pixel in each layer, -1 for none."""
    n_regions: int
    """R: numbers of regions are below."""
    alphas: tuple[float, ...]
    """(K,)"""
    method: str
    tol: float
    max_iter: int | None
    backward_tol: float
    """Of the solutions that a derivative is a quotient of; their distance is its root."""


@dataclass(frozen=True, eq=False)
class Answer:
    r"""The least upper bounds on log Z of a batch, and where they are reached.

    ``pairs`` and ``layers`` are minus the derivatives of the bound in the weights: at
    probabilities p the Lovász extension :math:`\frac12 \sum_j |p_{ij} - p_{kj}|` of an edge, of
    ``trees`` the expectation of a change under the pair's marginals.
    """

    probabilities: Tensor
    """(B, L, N)"""
    upper: Tensor
    """(B,) float64"""
    gap: Tensor
    """(B,) float64: the least upper bound is at most this far below"""
    pairs: Tensor
    """(B, E)"""
    layers: Tensor
    """(B, K, R)"""
    lower: Tensor | None = None
    """(B,) float64, where it was asked for"""
    states: list[Any] = field(default_factory=list)
    """What the solver goes on from."""
