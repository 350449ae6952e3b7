r"""The Jaccard loss of soft labels: the Lovász extension of a submodular function of the errors.

With truths y in [0, 1], :math:`m = \sum_i y_i` and :math:`c_i = 1 - y_i`,

.. math:: f(A) = |A| / (m + c(A)), \qquad f(A) = \min(1, |A|) \text{ where } m = 0,

increases and is submodular. The loss of probabilities x is its Lovász extension at the errors
:math:`e_i = |x_i - y_i|`. It is 0 only at x = y, and for y in {0, 1} it is the Jaccard loss of
Lovász-softmax. The gain of an element along decreasing errors, with N elements and the denominator
D before it, is :math:`(D - N c_i) / (D (D + c_i))`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setwise.losses import Loss


def soft_scale(loss: Loss) -> float | None:
    """Return a if the loss is a times Jaccard, which has soft labels; None for other losses."""
    bare, scale = loss._unscaled()
    ratio = bare._fraction
    return scale if ratio is not None and ratio._constants == (1.0, 1.0, 0.0) else None


def soft_jaccard(x: Tensor, y: Tensor, valid: Tensor | None, buckets: int = 0) -> Tensor:
    """Return the values (S,) of probabilities x and truths y, (S, n), linear in the errors."""
    errors = (x - y).abs()
    with torch.no_grad():
        found = errors.detach().double()
        truths = y.double()
        if valid is not None:
            found = torch.where(valid, found, -1.0)  # void elements are sorted last
            truths = torch.where(valid, truths, 0.0)
        gains = _gains_in_buckets(found, truths, buckets) if buckets else _gains(found, truths)
        if valid is not None:
            gains = torch.where(valid, gains, 0.0)
        centers = _centers(found, buckets) if buckets else found
    wide = torch.where((gains == 0) & ~errors.isnan(), 0.0, errors * gains)
    if not buckets:
        return wide.sum(1).to(x.dtype)
    # The value is that of the rounded errors, and the derivative has the gains there.
    rounded = torch.where(gains == 0, 0.0, centers * gains).sum(1)
    return (wide.sum(1) + (rounded - wide.sum(1)).detach()).to(x.dtype)


def _gains(errors: Tensor, y: Tensor) -> Tensor:
    """Return the gains (S, n) of f along decreasing errors, at the positions of the elements."""
    order = torch.sort(errors, dim=1, descending=True, stable=True).indices
    c = 1 - y.gather(1, order)
    m = y.sum(1, keepdim=True)
    below = m + torch.cumsum(c, 1)
    before = below - c
    number = torch.arange(errors.shape[1], dtype=errors.dtype, device=errors.device)
    steps = (before - number * c) / (before * below)
    alone = (number == 0).to(steps.dtype)  # without truth the first error costs 1
    steps = torch.where(m > 0, steps, alone)
    return torch.zeros_like(steps).scatter(1, order, steps)


def _keys(errors: Tensor, buckets: int) -> Tensor:
    """Return the bucket of each error in [0, 1], the largest first; void elements are last."""
    steps = (errors * buckets).floor().clamp(0, buckets - 1)
    return torch.where(errors > 0, buckets - 1 - steps, float(buckets)).long()


def _centers(errors: Tensor, buckets: int) -> Tensor:
    """Return the middle of the bucket of each error, 0 for no error."""
    middle = (buckets - 0.5 - _keys(errors, buckets)) / buckets
    return torch.where(errors > 0, middle, 0.0)


def _gains_in_buckets(errors: Tensor, y: Tensor, buckets: int) -> Tensor:
    r"""Return a subgradient at the rounded errors, by counting.

    A bucket with n elements, whose c sum to C, changes (N, D) to (N + n, D + C). Along the straight
    line between them the gain of an element is :math:`\int_0^1 1 / D(t) - c_i N(t) / D(t)^2 \, dt`.
    The sum of the gains is the increase of f. For every part S of the bucket they sum to at most
    f(P + S) - f(P), where P are the elements before: since D >= N on the line, the derivative of N
    / D in the direction of S decreases when other elements are added.
    """
    keys = _keys(errors, buckets)
    c = 1 - y
    zero = errors.new_zeros(len(errors), buckets + 1)
    n = zero.scatter_add(1, keys, torch.ones_like(errors))
    more = zero.scatter_add(1, keys, c)
    m = y.sum(1, keepdim=True)
    number, below = torch.cumsum(n, 1) - n, m + torch.cumsum(more, 1) - more
    flat, bent = _line(number, below, n, more)
    alone = ((number == 0) & (n > 0)) / n.clamp(min=1)
    flat, bent = torch.where(m > 0, flat, alone), torch.where(m > 0, bent, 0.0)
    flat[:, -1] = bent[:, -1] = 0.0  # the last bucket holds elements without error
    return flat.gather(1, keys) - c * bent.gather(1, keys)


def _line(number: Tensor, below: Tensor, n: Tensor, more: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return the means of 1 / D and N / D^2 on the line from (N, D) to (N + n, D + C).

    With u = C / D and L = log(1 + u) they are L / C and
    N / (D (D + C)) + n (L - u / (1 + u)) / C^2.
    """
    safe = torch.where(below > 0, below, 1.0)
    u = more / safe
    small = u < 1e-3
    v = torch.where(small, 1.0, u)
    series_flat = 1 - u / 2 + u * u / 3 - u**3 / 4
    series_bent = 0.5 - 2 * u / 3 + 3 * u * u / 4 - 4 * u**3 / 5
    flat = torch.where(small, series_flat, torch.log1p(v) / v) / safe
    curved = torch.where(small, series_bent, (torch.log1p(v) - v / (1 + v)) / (v * v))
    bent = number / (safe * (safe + more)) + n * curved / (safe * safe)
    return flat, bent
