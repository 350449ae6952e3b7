"""The records that solvers of field layers take and return, and the prices of regions.

Adding a constant to all logits of a pixel changes log Z by this constant, but neither marginals nor
best labellings. A large constant would increase the rounding errors of bounds, derivatives and
margins. ``setwise.inference`` removes constants from the fields of the host; ``levelled`` and
``centred`` remove them from tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setwise._foundation._arguments import MOST_ENTRIES
from setwise._foundation._certificate import INTEGERS
from setwise.torch._fields._graph import Graph


@dataclass(frozen=True, eq=False)
class FieldProblem:
    """A batch of fields on one graph, without the tensors that have derivatives."""

    graph: Graph
    regions: Tensor
    """(B, K, N) integers: the region of each pixel in each layer, -1 for none."""
    n_regions: int
    """R: the numbers of the regions are less than this."""
    alphas: tuple[float, ...]
    """The powers (K,) of the layers."""
    method: str
    tol: float
    max_iter: int | None
    backward_tol: float
    """The tolerance of the two solutions of a difference quotient; their distance is its root."""


@dataclass(frozen=True, eq=False)
class FieldAnswer:
    """The upper bounds on log Z of a batch of fields, and the marginals that attain them."""

    probabilities: Tensor
    """(B, L, N)"""
    upper: Tensor
    """(B,) float64"""
    gap: Tensor
    """(B,) float64: the optimal bound is lower by at most this"""
    expected: Tensor | None = None
    """(B, E) with ``trees``: the probability that the ends of an edge differ, by pair marginals"""
    lower: Tensor | None = None
    """(B,) float64, if a lower bound was requested"""
    states: Any = None
    """The state of the solver, for a warm start."""
    is_exact: bool = False
    """Whether cuts solved two labels exactly, so that the blocks are known."""
    least_tol: float = 0.0
    """The least relative gap that the precision of the solver allows."""

    def pairs(self, problem: FieldProblem) -> Tensor:
        r"""Return minus the derivative (B, E) of the bound in the weights of pairs.

        It is the Lovász extension of a pair at p, :math:`\frac12 \sum_j |p_{ij} - p_{kj}|`. With
        ``trees`` it is the probability that the ends differ.
        """
        if self.expected is not None:
            return self.expected
        return problem.graph.pair_prices(self.probabilities)

    def layers(self, problem: FieldProblem) -> Tensor:
        """Return minus the derivative (B, K, R) of the bound in the weights of regions."""
        p = self.probabilities
        return layer_prices(p, problem.regions.to(p.device), problem.alphas, problem.n_regions)


def layer_prices(p: Tensor, regions: Tensor, alphas: tuple[float, ...], n_regions: int) -> Tensor:
    """Return the prices (B, K, R) of the regions of all layers (B, K, N) at p, with weight 1."""
    if not alphas:
        return torch.zeros(len(p), 0, 0, dtype=torch.float64, device=p.device)
    prices = [region_prices(p, regions[:, k], a, n_regions) for k, a in enumerate(alphas)]
    return torch.stack(prices, 1)


def region_prices(p: Tensor, regions: Tensor, alpha: float, n_regions: int) -> Tensor:
    r"""Return the prices (B, R) of the regions of a layer (B, N) at p (B, L, N), with weight 1.

    The potential is ``sw.fields.RegionConsistency``: the price of a region S at labels x is
    :math:`\sum_j |\{i \in S: x_i \ne j\}|^\alpha - (L - 1) |S|^\alpha`. At probabilities it is the
    Lovász extension: for each label the probabilities in decreasing order, times the gains. The
    cost is O(N L log N), for sorting.
    """
    batch, labels, n = p.shape
    wide = p.double()
    # Sorted by region, and by decreasing probability within a region; other pixels come last.
    keys = torch.where(regions >= 0, regions, n_regions)
    by_p = torch.sort(wide, dim=2, descending=True, stable=True).indices
    spread = keys[:, None, :].expand(batch, labels, n)
    by_region = torch.sort(spread.gather(2, by_p), dim=2, stable=True)
    order = by_p.gather(2, by_region.indices)
    sizes = torch.zeros(batch, n_regions + 1, dtype=torch.int64, device=p.device)
    sizes.scatter_add_(1, keys, torch.ones_like(keys))
    starts = sizes.cumsum(1) - sizes
    own = by_region.values[:, 0]  # (B, N): the same for all labels
    rank = torch.arange(n, device=p.device) - starts.gather(1, own)
    gains = _gains(rank.double(), sizes.gather(1, own).double(), alpha)
    gains = torch.where(own < n_regions, gains, 0.0)
    prices = torch.zeros(batch, n_regions + 1, dtype=torch.float64, device=p.device)
    prices.scatter_add_(1, own, (wide.gather(2, order) * gains[:, None, :]).sum(1))
    return prices[:, :-1]


def _gains(rank: Tensor, size: Tensor, alpha: float) -> Tensor:
    """Return h(k + 1) - h(k) for h(n) = (s - n)^a - s^a + n s^(a - 1), k the rank, s the size."""
    left = size - rank
    return (left - 1).clamp(min=0) ** alpha - left**alpha + size ** (alpha - 1)


# Levels are multiples of _STEP. Logits of this size are rounded by only 4e-6 in single precision.
# Levels are at most _MOST_LEVEL, so that the sum of one level per pixel is exact.
_STEP = 64.0
_MOST_LEVEL = _STEP * INTEGERS / MOST_ENTRIES


class LevelledLogits(NamedTuple):
    """Logits in double precision, and the constants that were subtracted from them.

    In single precision the logits of labels far below the best one would be rounded, although
    couplings may choose such labels.
    """

    logits: Tensor
    """(B, L, N)"""
    constant: Tensor
    """(B,): log Z of the given logits minus log Z of these"""

    def above(self, bound: Tensor) -> Tensor:
        """Return upper bounds (B,) on log Z of the given logits, rounded up."""
        total = bound + self.constant
        above = torch.nextafter(total, torch.full_like(total, torch.inf))
        return torch.where(self.constant == 0, bound, above)


def levelled(logits: Tensor) -> LevelledLogits:
    """Subtract a multiple of ``_STEP`` near each pixel's largest logit from logits (B, L, N)."""
    wide = logits.double()
    level = _STEP * torch.trunc(wide.amax(1, keepdim=True) / _STEP)
    level = level.clamp(-_MOST_LEVEL, _MOST_LEVEL)
    return LevelledLogits(wide - level, level.sum((1, 2)))


def centred(logits: Tensor) -> Tensor:
    """Return logits (B, L, N) minus the largest one of each pixel."""
    return logits - logits.detach().amax(1, keepdim=True)
