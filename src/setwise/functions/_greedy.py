"""Greedy algorithms for submodular maximisation, with the bounds that they prove."""

from __future__ import annotations

import numpy as np

from setwise.functions._arguments import BoolArray, FloatArray, IntArray
from setwise.functions._base import SetFunction


def greedy(function: SetFunction, k: int) -> tuple[BoolArray, float, float, IntArray]:
    """At most k elements, the largest gain first, until no gain is positive.

    Returns the set, its value, a bound on the value of every set of at most k elements when F is
    submodular, and the elements in the order in which they were chosen.
    """
    n, lazy = function.n, function.is_submodular is True
    mask, order = np.zeros(n, np.bool_), np.zeros(k, np.int64)
    value = _at(function, mask)
    # F with each element added, as last evaluated; and what that says of its gain given the set,
    # an upper bound when F is submodular. Both are meaningless once the element is in.
    reached = _toggled(function, mask, np.arange(n))
    upper, fresh = reached - value, np.ones(n, np.bool_)
    bounds = []
    size = 0
    while size < k:
        best = int(upper.argmax())
        if not fresh[best]:
            stale = np.array([best]) if lazy else np.flatnonzero(~fresh)
            reached[stale] = _toggled(function, mask, stale)
            upper[stale], fresh[stale] = reached[stale] - value, True
            continue
        if upper[best] <= 0:
            break
        bounds.append(value + _largest(upper, k))
        mask[best], value, order[size] = True, float(reached[best]), best
        upper[best] = -np.inf
        fresh[:] = mask
        size += 1
    rest = np.flatnonzero(~fresh)
    upper[rest] = _toggled(function, mask, rest) - value
    bounds.append(value + _largest(upper, k))
    order = order[:size]
    if function.is_increasing is not True:
        # The best set may gain by leaving out some of the elements chosen so far.
        lost = np.concatenate([[0.0], np.cumsum(_losses(function, order))])
        bounds = [bound + loss for bound, loss in zip(bounds, lost, strict=True)]
    return mask, value, max(value, min(bounds)), order


def double_greedy(
    function: SetFunction, rng: np.random.Generator | None
) -> tuple[BoolArray, float, float]:
    """Each element put into a growing set or taken from a shrinking one; at random with rng.

    Returns the set in which the two meet, its value, and a bound on the value of every set when F
    is submodular.
    """
    n = function.n
    everything = np.ones(n, np.bool_)
    grown, shrunk = ~everything, everything.copy()
    start, end = function._values(np.array([grown, shrunk]))
    at_grown, at_shrunk = float(start), float(end)
    for i in range(n):
        pair = np.array([grown, shrunk])
        pair[:, i] = [True, False]
        with_i, without_i = function._values(pair)
        gain, relief = with_i - at_grown, without_i - at_shrunk
        if rng is None:
            take = gain >= relief
        else:
            # Both at most 0 only when both are 0, if F is submodular; either choice will do.
            gain, relief = max(gain, 0.0), max(relief, 0.0)
            take = relief <= 0 or rng.random() * (gain + relief) < gain
        if take:
            grown, at_grown = pair[0], float(with_i)
        else:
            shrunk, at_shrunk = pair[1], float(without_i)
    value = at_grown
    losses = _losses(function, np.arange(n))
    rest = np.flatnonzero(~grown)
    singles = _toggled(function, ~everything, np.arange(n)) - start
    bounds = [
        value + _largest(_toggled(function, grown, rest) - value, n) + losses[grown].sum(),
        start + _largest(singles, n),
        end + losses.sum(),
    ]
    if rng is None:
        bounds.append(3 * value - start - end)
    return grown, value, max(value, float(min(bounds)))


def _at(function: SetFunction, mask: BoolArray) -> float:
    return float(function._values(mask[None])[0])


def _toggled(function: SetFunction, mask: BoolArray, elements: IntArray) -> FloatArray:
    """F of the set with each of the elements in turn put in, or taken out if it is in."""
    values = np.empty(len(elements))
    rows = max(1, (1 << 22) // max(1, function.n))
    for start in range(0, len(elements), rows):
        part = elements[start : start + rows]
        masks = np.repeat(mask[None], len(part), axis=0)
        masks[np.arange(len(part)), part] ^= True
        values[start : start + rows] = function._values(masks)
    return values


def _losses(function: SetFunction, elements: IntArray) -> FloatArray:
    """d_i: what the whole set gains by losing an element, if it does."""
    everything = np.ones(function.n, np.bool_)
    return np.maximum(_toggled(function, everything, elements) - _at(function, everything), 0.0)


def _largest(gains: FloatArray, k: int) -> float:
    """The sum of the k largest positive gains."""
    positive = gains[gains > 0]
    if 0 < k < len(positive):
        positive = -np.partition(-positive, k - 1)
    return float(positive[:k].sum())
