"""Margin and slack rescaling of losses of counts in plain torch, with exact maxima."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setwise.losses import Loss
from setwise.losses._families import RatioRows, TableRows, Tables
from setwise.surrogates import SlackRescaling
from setwise.torch._reference._gains import Chain, convex, split_labels
from setwise.torch._reference._hinge import Answer, Sets


@dataclass(frozen=True)
class RescalingObjective:
    """The objective: l(I) - w <margins, I>, or l(I) (1 - w <margins, I>) with slack."""

    slack: bool
    weight: float

    def objective(self, loss: Tensor, margin: Tensor) -> Tensor:
        """Return the objective of a set with this loss and this sum of margins."""
        if self.slack:
            return loss * (1.0 - self.weight * margin)
        return loss - self.weight * margin

    def slope(self, loss: Tensor) -> Tensor:
        """Return the derivative of the objective in the margin of a chosen element."""
        return -self.weight * loss if self.slack else torch.full_like(loss, -self.weight)


def rescaled(loss: Loss, sets: Sets, rule: RescalingObjective) -> Answer | None:
    """Return the maximum over all sets of mistakes; None for losses that are not of counts."""
    form = loss._form
    maximum = MAXIMA.get(type(form))
    return None if maximum is None else maximum(form, sets, rule)


def has_maximum(loss: Loss) -> bool:
    """Return whether every device can compute the maximum, also with void elements."""
    return loss._traits.is_symmetric and type(loss._form) in MAXIMA


def _of_ratio(form: RatioRows, sets: Sets, rule: RescalingObjective) -> Answer:
    sides = Sides.sort(sets)
    formula = RatioFormula(*form.arguments, sides.m)
    if form.ratio.part == "supermodular":
        chosen = _of_positives(formula, sides, rule)
    else:
        chosen = _search(formula, sides, rule)
    return _answer(sets, sides, rule, *chosen)


def _of_tables(form: Tables, sets: Sets, rule: RescalingObjective) -> Answer | None:
    sides = Sides.sort(sets)
    labels = split_labels(sides.m.view(-1), sides.r.view(-1))
    tables = form.loss._table_rows(labels)
    if tables is None:
        return None
    if rule.slack and not form.loss.is_increasing:
        SlackRescaling(form.loss)._refuse_negative(form.loss, labels)
    if tables.of_counts:
        return _answer(sets, sides, rule, *_scan(tables, sides, rule))
    return _of_size(tables, sets, rule)


MAXIMA: dict[type, Callable[[Any, Sets, RescalingObjective], Answer | None]] = {
    RatioRows: _of_ratio,
    Tables: _of_tables,
}


@dataclass(frozen=True)
class Sides:
    """The cumulative sums of the sorted margins of the positives and of the negatives."""

    missed: Tensor
    """(S, n + 1), float64: the sum of the k least margins of positives; infinite beyond m."""
    added: Tensor
    """(S, n + 1): the same for the negatives."""
    rank: Tensor
    """(S, n): the number of elements of the same side before an element"""
    m: Tensor
    """(S, 1), float64: positives."""
    r: Tensor
    """(S, 1), float64: negatives."""

    @classmethod
    def sort(cls, sets: Sets) -> Sides:
        """Return both sides from one sort."""
        chain, along = Chain.sort(sets.margins, sets.positive, sets.valid)
        valid = torch.isfinite(along) if sets.valid is None else sets.valid.gather(1, chain.order)
        sums = []
        for side, place in (
            (chain.positive, chain.missed),
            (~chain.positive & valid, chain.added),
        ):
            total = torch.cumsum(torch.where(side, along.double(), 0.0), 1)
            out = torch.full((len(total), total.shape[1] + 2), math.inf, dtype=torch.float64)
            out = out.to(total.device)
            out[:, 0] = 0.0
            # Elements of the other side go to a last column that is removed.
            where = torch.where(side, place.long() + 1, total.shape[1] + 1)
            sums.append(out.scatter_(1, where, total)[:, :-1])
        ranks = torch.where(chain.positive, chain.missed, chain.added)
        rank = torch.zeros_like(ranks).scatter_(1, chain.order, ranks)
        return cls(sums[0], sums[1], rank, chain.positives, chain.negatives)


@dataclass(frozen=True)
class RatioFormula:
    """The ratio l(n, q) = (a n + q) / (c m - d n + q), or one of its parts, for m (S, 1)."""

    a: float
    c: float
    d: float
    part: int
    m: Tensor

    def __call__(self, n: Tensor, q: Tensor) -> Tensor:
        """Return the values at the counts."""
        x = self.c * self.m
        if self.part == RatioRows.PARTS["supermodular"]:
            return convex(n + 0 * q, x, self.a, self.d)
        ratio = torch.where(
            self.m > 0, (self.a * n + q) / (x - self.d * n + q), (q > 0).to(q.dtype)
        )
        return ratio if self.part == 0 else ratio - convex(n, x, self.a, self.d)


Chosen = tuple[Tensor, Tensor, Tensor, Tensor]


def _search(formula: RatioFormula, sides: Sides, rule: RescalingObjective) -> Chosen:
    """Find the best number q of false positives by binary search, for each number n of misses.

    The margin objective is concave in q; the slack product is unimodal where it is positive.
    """
    n = torch.arange(sides.missed.shape[1], dtype=torch.float64, device=sides.m.device)
    n = n.expand(len(sides.m), -1)
    allowed = n <= sides.m
    n = torch.minimum(n, sides.m)
    base = torch.where(allowed, sides.missed, 0.0)

    def sums(q: Tensor) -> Tensor:
        return base + sides.added.gather(1, q.long())

    def at(q: Tensor) -> Tensor:
        return rule.objective(formula(n, q), sums(q))

    low = torch.zeros_like(n)
    if rule.slack:
        peak = (torch.diff(sides.added, dim=1) < 0).sum(1, keepdim=True).to(n.dtype)
        low = low + peak
        allowed = allowed & (1.0 - rule.weight * sums(low) > 0)
    high = sides.r.expand_as(n).clone()
    while bool((low < high).any()):
        half = torch.floor((low + high) / 2)
        after = torch.minimum(half + 1, sides.r)
        rises = (half < sides.r) & (at(after) > at(half))
        if rule.slack:
            rises = rises & (1.0 - rule.weight * sums(after) > 0)
        moving = low < high
        low = torch.where(moving & rises, half + 1, low)
        high = torch.where(moving & ~rises, half, high)
    objective = torch.where(allowed, at(low), -math.inf)
    return _best(objective, n, low, formula(n, low))


def _best(objective: Tensor, n: Tensor, q: Tensor, losses: Tensor) -> Chosen:
    """Return the largest objective of each set, its counts and its loss; 0 for the empty set."""
    best, where = objective.max(1, keepdim=True)
    empty = ~(best > 0)
    zero = torch.zeros_like(best)
    n, q, losses = (torch.where(empty, zero, values.gather(1, where)) for values in (n, q, losses))
    return torch.where(empty, zero, best), n, q, losses


def _of_positives(formula: RatioFormula, sides: Sides, rule: RescalingObjective) -> Chosen:
    """Maximise over the number of false negatives, with all negatives of negative margin chosen."""
    q = (torch.diff(sides.added, dim=1) < 0).sum(1, keepdim=True).to(torch.float64)
    n = torch.arange(sides.missed.shape[1], dtype=torch.float64, device=sides.m.device)
    n = n.expand(len(sides.m), -1)
    allowed = n <= sides.m
    n = torch.minimum(n, sides.m)
    sums = torch.where(allowed, sides.missed, 0.0) + sides.added.gather(1, q.long())
    losses = formula(n, torch.zeros_like(n))
    objective = torch.where(allowed, rule.objective(losses, sums), -math.inf)
    return _best(objective, n, q.expand_as(n), losses)


def _scan(tables: TableRows, sides: Sides, rule: RescalingObjective) -> Chosen:
    """Try every pair of counts, set by set."""
    rows = []
    flat = torch.tensor(tables.tables, device=sides.m.device)
    for i, start in enumerate(tables.starts.tolist()):
        m, r = int(sides.m[i]), int(sides.r[i])
        table = flat[start : start + (m + 1) * (r + 1)]
        sums = (sides.missed[i, : m + 1, None] + sides.added[i, None, : r + 1]).reshape(-1)
        cells = torch.arange(len(table), device=flat.device, dtype=torch.float64)[None]
        n = torch.floor(cells / (r + 1))
        objective = rule.objective(table, sums)[None]
        rows.append(_best(objective, n, cells - n * (r + 1), table[None]))
    if not rows:
        return (sides.m,) * 4
    best, n, q, losses = (torch.cat([row[k] for row in rows]) for k in range(4))
    return best, n, q, losses


def _answer(
    sets: Sets,
    sides: Sides,
    rule: RescalingObjective,
    best: Tensor,
    n: Tensor,
    q: Tensor,
    losses: Tensor,
) -> Answer:
    chosen = sides.rank < torch.where(sets.positive, n, q)
    if sets.valid is not None:
        chosen = chosen & sets.valid
    return sets.answer(best.view(-1), torch.where(chosen, rule.slope(losses), 0.0))


def _of_size(tables: TableRows, sets: Sets, rule: RescalingObjective) -> Answer:
    """Maximise a loss of the number of mistakes: try the k smallest margins for each k."""
    chain, along = Chain.sort(sets.margins, sets.positive, sets.valid)
    sizes = chain.positives + chain.negatives
    k = torch.arange(along.shape[1] + 1, device=along.device)[None].expand(len(along), -1)
    allowed = k <= sizes
    flat = torch.tensor(tables.tables, device=along.device)
    starts = torch.tensor(tables.starts, device=along.device)[:, None]
    losses = flat[(starts + k).clamp(max=len(flat) - 1)]
    sums = torch.cumsum(torch.where(allowed[:, 1:], along.double(), 0.0), 1)
    sums = torch.cat([torch.zeros_like(sizes), sums], 1)
    objective = torch.where(allowed, rule.objective(losses, sums), -math.inf)
    best, n, _, loss = _best(objective, k.double(), k.double(), losses)
    slopes = torch.where(k[:, :-1] < n, rule.slope(loss), 0.0)
    return sets.answer(best.view(-1), torch.zeros_like(slopes).scatter_(1, chain.order, slopes))
