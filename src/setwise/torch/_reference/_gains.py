"""Elements sorted by their errors, and the gains of a loss along them, on any device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise.losses import Loss
from setwise.losses._families import Curve, RatioRows, TableRows, Tables, Terms, Weights
from setwise.losses._labels import Labels


@dataclass(frozen=True)
class Chain:
    """S sets of n elements each, sorted by decreasing error, void elements last."""

    order: Tensor
    """(S, n): the position of the k-th element in its set"""
    positive: Tensor
    """(S, n), bool."""
    missed: Tensor
    """(S, n), float64: false negatives before the k-th element."""
    added: Tensor
    """(S, n), float64: false positives before it."""
    positives: Tensor
    """(S, 1), float64: m, the positives of each set."""
    negatives: Tensor
    """(S, 1), float64: r, its negatives."""

    @classmethod
    def sort(cls, keys: Tensor, positive: Tensor, valid: Tensor | None) -> tuple[Chain, Tensor]:
        """Return the chain along increasing keys, and the sorted keys."""
        along, order = torch.sort(keys, dim=1, stable=True)
        hit = positive.gather(1, order)
        missing = ~hit if valid is None else ~hit & valid.gather(1, order)
        missed, added = (torch.cumsum(side, 1, dtype=torch.float64) for side in (hit, missing))
        empty = torch.zeros_like(missed[:, :1])
        positives = missed[:, -1:] if missed.shape[1] else missed.new_zeros(len(missed), 1)
        negatives = added[:, -1:] if added.shape[1] else positives
        return (
            cls(
                order,
                hit,
                torch.cat([empty, missed[:, :-1]], 1),
                torch.cat([empty, added[:, :-1]], 1),
                positives,
                negatives,
            ),
            along,
        )

    def labels(self) -> Labels:
        """Return the sets on the host with their positives first, for tables of counts."""
        return split_labels(self.positives.view(-1), self.negatives.view(-1))


def split_labels(positives: Tensor, negatives: Tensor) -> Labels:
    """Return sets with the given numbers of positives and negatives, positives first."""
    m, r = positives.cpu().numpy().astype(np.int64), negatives.cpu().numpy().astype(np.int64)
    runs = np.stack([m, r], 1).ravel()
    positive = np.repeat(np.tile(np.array([1, 0], np.uint8), len(m)), runs)
    offsets = np.concatenate([[0], np.cumsum(m + r)])
    return Labels(positive, offsets, "ragged", positive.shape)


def gains(loss: Loss, chain: Chain) -> Tensor | None:
    """Return gains (S, n) in float64 along the chain; None if only the host has them."""
    form = loss._form
    known = GAINS.get(type(form))
    return None if known is None else known.of(form, chain)


def rises(loss: Loss, chain: Chain) -> Tensor | None:
    """Return a mask (S, 1) of the sets whose loss is increasing, or None if this is not known."""
    form = loss._form
    known = GAINS.get(type(form))
    return None if known is None or known.rises is None else known.rises(form, chain)


def is_of_size(loss: Loss) -> bool:
    """Return whether the loss is a table over the number of mistakes."""
    form = loss._form
    known = GAINS.get(type(form))
    return known is not None and known.of_size(form)


def has_gains(loss: Loss) -> bool:
    """Return whether every device can compute the gains of the loss, for tables up to a limit."""
    form = loss._form
    known = GAINS.get(type(form))
    return known is not None and known.knows(form)


def _of_ratio(family: RatioRows, chain: Chain) -> Tensor:
    a, c, d, part = family.arguments
    n, q, x = chain.missed, chain.added, c * chain.positives
    if part == RatioRows.PARTS["supermodular"]:
        return torch.where(chain.positive, convex_step(n, x, a, d), 0.0)
    below = x - d * n + q
    above = a * n + q
    found = (a * below + d * above) / (below * (below - d))
    if part == RatioRows.PARTS["submodular"]:
        found = found - convex_step(n, x, a, d)
    steps = torch.where(chain.positive, found, (below - above) / (below * (below + 1)))
    alone = (q == 0).to(steps.dtype)  # without positives the first false positive costs 1
    return torch.where(chain.positives > 0, steps, alone)


def convex(n: Tensor, x: Tensor, a: float, d: float) -> Tensor:
    """Return G(n), the supermodular part of a ratio, a function of the false negatives."""
    return torch.where(n < 2, 0.0, a * d * n * (n - 1) / ((x - d * n) * (x - d)))


def convex_step(n: Tensor, x: Tensor, a: float, d: float) -> Tensor:
    """Return G(n + 1) - G(n)."""
    steps = a * d * n * (2 * x - d * (n + 1)) / ((x - d * n) * (x - d * (n + 1)) * (x - d))
    return torch.where(n < 1, 0.0, steps)


def _rises(form: RatioRows, chain: Chain) -> Tensor:
    """Return whether the false-negative step of f, least at q = r, is never negative."""
    a, c, d, _ = form.arguments
    n = torch.arange(chain.order.shape[1], dtype=torch.float64, device=chain.order.device)
    below = c * chain.positives - d * n + chain.negatives
    step = (a * below + d * (a * n + chain.negatives)) / (below * (below - d))
    falls = step < convex_step(n, c * chain.positives, a, d)
    return ~(falls & (n < chain.positives)).any(1, keepdim=True)


def _of_weights(form: Weights, chain: Chain) -> Tensor:
    if form.weights is None:
        return torch.ones_like(chain.missed)
    return _along(form.weights, chain)


def _along(weights: Any, chain: Chain) -> Tensor:
    if len(weights) != chain.order.shape[1]:
        raise ValueError(
            f"input must have {len(weights)} elements a set, one for each weight of the loss, "
            f"got {chain.order.shape[1]}"
        )
    return torch.tensor(weights, device=chain.order.device)[chain.order]


def on_tensors(function: Callable[..., Any]) -> Callable[[Tensor], Tensor] | None:
    """Return a NumPy ufunc, or one with some arguments fixed, as a function of tensors."""
    fixed: tuple[Any, ...] = ()
    inner: object = function
    if isinstance(function, partial) and not function.keywords:
        inner, fixed = function.func, function.args
    twin = getattr(torch, inner.__name__, None) if isinstance(inner, np.ufunc) else None
    if twin is None:
        return None
    return lambda x: twin(*(x.new_tensor(value) for value in fixed), x)


def _of_curve(form: Curve, chain: Chain) -> Tensor | None:
    concave = on_tensors(form.concave)
    if concave is None:
        return None
    sums = torch.cumsum(_along(form.weights, chain), 1)
    before = torch.cat([torch.zeros_like(sums[:, :1]), sums[:, :-1]], 1)
    return concave(sums) - concave(before)


def _of_terms(form: Terms, chain: Chain) -> Tensor | None:
    total: Tensor | None = None
    for term, scale in zip(form.terms, form.coefficients, strict=True):
        more = gains(term, chain)
        if more is None:
            return None
        total = float(scale) * more if total is None else total + float(scale) * more
    return total


def _knows_terms(form: Terms) -> bool:
    """Return whether the terms, or tables on the host, determine if the sum is increasing."""
    if not (form.loss.is_submodular and form.loss.is_increasing):
        return False
    return all(has_gains(term) for term in form.terms)


def _of_tables(form: Tables, chain: Chain) -> Tensor | None:
    family = form.loss._table_rows(chain.labels())
    return None if family is None else _of_rows(family, chain)


def _of_rows(family: TableRows, chain: Chain) -> Tensor:
    device = chain.order.device
    tables = torch.tensor(family.tables, device=device)
    starts = torch.tensor(family.starts, device=device)[:, None]
    n, q = chain.missed.long(), chain.added.long()
    if family.of_counts:
        width = chain.negatives.long() + 1
        here, step = starts + n * width + q, torch.where(chain.positive, width, 1)
    else:
        here, step = starts + n + q, torch.ones_like(n)
    # Void elements come last, beyond the table of the set: their values are not used.
    last = len(tables) - 1
    return tables[(here + step).clamp(max=last)] - tables[here.clamp(max=last)]


@dataclass(frozen=True)
class Gains:
    """The functions that compute the gains of a form on a device."""

    of: Callable[[Any, Chain], Tensor | None]
    knows: Callable[[Any], bool] = lambda form: True
    rises: Callable[[Any, Chain], Tensor] | None = None
    """a mask (S, 1) of the sets whose loss increases; None if its tables tell"""
    of_size: Callable[[Any], bool] = lambda form: False
    """Whether the form is a table of the number of mistakes."""


GAINS: dict[type, Gains] = {
    RatioRows: Gains(_of_ratio, rises=_rises),
    Tables: Gains(_of_tables, of_size=lambda tables: tables.of_size),
    Weights: Gains(_of_weights),
    Curve: Gains(_of_curve, lambda curve: on_tensors(curve.concave) is not None),
    Terms: Gains(_of_terms, _knows_terms),
}
