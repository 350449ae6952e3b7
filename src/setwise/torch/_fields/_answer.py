"""What a solver is given, and what it hands back to a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from setwise.torch._fields._graph import Graph
from setwise.torch._fields._regions import layer_prices


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
    """The least upper bounds on log Z of a batch, and where they are reached."""

    probabilities: Tensor
    """(B, L, N)"""
    upper: Tensor
    """(B,) float64"""
    gap: Tensor
    """(B,) float64: the least upper bound is at most this far below"""
    expected: Tensor | None = None
    """(B, E) of ``trees``: how likely the ends of an edge differ, under the pair's marginals"""
    lower: Tensor | None = None
    """(B,) float64, where it was asked for"""
    states: Any = None
    """What the solver goes on from."""
    is_exact: bool = False
    """Whether two labels were solved by cuts, so that the blocks are known."""
    least_tol: float = 0.0
    """The relative gap that the precision of the solver allows."""

    def pairs(self, problem: Problem) -> Tensor:
        r"""(B, E): minus the derivative of the bound in the weights of pairs.

        The Lovász extension of a pair at p, :math:`\frac12 \sum_j |p_{ij} - p_{kj}|`, of ``trees``
        the expectation of a change.
        """
        if self.expected is not None:
            return self.expected
        return problem.graph.pair_prices(self.probabilities)

    def layers(self, problem: Problem) -> Tensor:
        """(B, K, R): minus the derivative of the bound in the weights of regions."""
        p = self.probabilities
        return layer_prices(p, problem.regions.to(p.device), problem.alphas, problem.n_regions)
