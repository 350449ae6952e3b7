"""The Lovász extension of many sets of unequal sizes, by one sort for all."""

from __future__ import annotations

import torch
from torch import Tensor


def ragged_lovasz(
    errors: Tensor,
    positive: Tensor,
    sets: Tensor,
    n_sets: int,
    constants: tuple[float, float, float],
) -> Tensor:
    r"""Return values (S,) of :math:`l(n, q) = (a n + q) / (c m - d n + q)`.

    Here n counts misses and q false positives. ``sets`` names the set of each element (R,); errors
    that are not positive contribute nothing. The values are linear in the errors, and autograd
    differentiates them. The cost is O(R log R) for any number of sets.
    """
    with torch.no_grad():
        # Sort by set, and by decreasing error within a set: the second sort is stable.
        first = torch.sort(errors.detach(), descending=True).indices
        second = torch.sort(sets[first], stable=True).indices
        order = first[second]
        owner = sets[order]
        hit = positive[order].double()
        sizes = torch.zeros(n_sets, dtype=torch.int64, device=sets.device)
        sizes = sizes.scatter_add(0, owner, torch.ones_like(owner))
        starts = torch.cumsum(sizes, 0) - sizes
        m = torch.zeros(n_sets, dtype=torch.float64, device=sets.device).scatter_add(0, owner, hit)
        before = torch.cumsum(hit, 0) - hit
        n = before - before[starts[owner]] if len(owner) else before
        q = torch.arange(len(owner), device=sets.device) - starts[owner] - n
        gains = _gains(n, q, m[owner], hit > 0, constants)
        gains = torch.zeros_like(gains).scatter(0, order, gains)
    counted = torch.where(errors > 0, errors * gains, torch.where(errors.isnan(), errors, 0.0))
    total = torch.zeros(n_sets, dtype=counted.dtype, device=counted.device)
    return total.scatter_add(0, sets, counted)


def _gains(
    n: Tensor, q: Tensor, m: Tensor, hit: Tensor, constants: tuple[float, float, float]
) -> Tensor:
    """Return l after an element minus l before it, with n misses and q false positives before."""
    a, c, d = constants
    below, above = c * m - d * n + q, a * n + q
    safe = torch.where(m > 0, below, 1.0)
    of_hit = (a * below + d * above) / (safe * torch.where(m > 0, below - d, 1.0))
    of_miss = (below - above) / (safe * (safe + 1))
    return torch.where(m > 0, torch.where(hit, of_hit, of_miss), ((q == 0) & ~hit).double())
