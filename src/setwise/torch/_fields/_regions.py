r"""Layers of regions: what each region pays at labels, hard or soft.

The potential is that of ``sw.fields.RegionConsistency``: a region S of label map k pays
:math:`w_S \sum_j |\{i \in S: x_i \ne j\}|^\alpha - (L - 1) |S|^\alpha`, and at probabilities its
Lovász extension: for each label the probabilities in decreasing order, times the gains.
"""

from __future__ import annotations

import torch
from torch import Tensor


def layer_prices(p: Tensor, regions: Tensor, alphas: tuple[float, ...], n_regions: int) -> Tensor:
    """(B, K, R): what each region of layers (B, K, N) pays at p (B, L, N), weight 1."""
    if not alphas:
        return torch.zeros(len(p), 0, 0, dtype=torch.float64, device=p.device)
    prices = [region_prices(p, regions[:, k], a, n_regions) for k, a in enumerate(alphas)]
    return torch.stack(prices, 1)


def region_prices(p: Tensor, regions: Tensor, alpha: float, n_regions: int) -> Tensor:
    """(B, R): the Lovász extension of each region of a layer (B, N) at p (B, L, N), weight 1.

    O(N L log N), for sorting; the price of labels where p is 0 and 1.
    """
    batch, labels, n = p.shape
    wide = p.double()
    # By region, and within one by falling probability; what is in no region comes last.
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
    """h(k + 1) - h(k) of h(n) = (s - n)^a - s^a + n s^(a - 1), k the rank among s variables."""
    left = size - rank
    return (left - 1).clamp(min=0) ** alpha - left**alpha + size ** (alpha - 1)
