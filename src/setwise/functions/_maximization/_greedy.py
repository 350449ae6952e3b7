"""Greedy algorithms for submodular maximisation, with the bounds that they prove."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._deadline import Deadline
from setwise.functions._base import SetFunction


@dataclass(frozen=True, eq=False)
class Chosen:
    """A set, its value, and what is known of the values of the sets in question."""

    mask: BoolArray
    value: float
    bound: float
    """None is higher when F is submodular, but for rounding."""
    trivial: float
    """The bound that the empty set gives: F(empty) and the largest gains of single elements."""
    order: IntArray
    """The elements as they were chosen."""
    interrupted: bool = False


def greedy(function: SetFunction, k: int, deadline: Deadline) -> Chosen:
    """At most k elements, the largest gain first, until no gain is positive.

    The bound is on every set of at most k elements. Ctrl-C and the time limit give the elements
    chosen so far; before the first gains are known, there is no bound, and no limit strikes.
    """
    n, lazy = function.n, function.is_submodular is True
    mask = np.zeros(n, np.bool_)
    value, order = _at(function, mask), np.zeros(0, np.int64)
    # F with each element added, as last evaluated; and what that says of its gain given the set,
    # an upper bound when F is submodular. Both are meaningless once the element is in.
    reached = _toggled(function, mask, np.arange(n))
    upper, fresh = reached - value, np.ones(n, np.bool_)
    bounds = [value + _largest(upper, k)]
    state = mask, value, order, bounds
    deadline.armed = True
    try:
        while len(order) < k:
            deadline.check()
            best = int(upper.argmax())
            if not fresh[best]:
                stale = np.array([best]) if lazy else np.flatnonzero(~fresh)
                reached[stale] = _toggled(function, mask, stale)
                upper[stale], fresh[stale] = reached[stale] - value, True
                continue
            if upper[best] <= 0:
                break
            if len(order):
                bounds = [*bounds, value + _largest(upper, k)]
            mask, value, order = mask.copy(), float(reached[best]), np.append(order, best)
            mask[best], upper[best] = True, -np.inf
            fresh[:] = mask
            state = mask, value, order, bounds  # all of it, or none: Ctrl-C may come at any time
        rest = np.flatnonzero(~fresh)
        upper[rest] = _toggled(function, mask, rest) - value
        bounds = [*bounds[: len(order)], value + _largest(upper, k)]
        if function.is_increasing is not True:
            # The best set may gain by leaving out some of the elements chosen so far.
            lost = np.concatenate([[0.0], np.cumsum(_losses(function, order))])
            bounds = [bound + loss for bound, loss in zip(bounds, lost, strict=True)]
    except KeyboardInterrupt:
        mask, value, order, bounds = state
        if not len(order) and not deadline.struck:
            raise
        bound = min(bounds) if function.is_increasing is True else bounds[0]
        return Chosen(mask, value, max(value, bound), bounds[0], order, interrupted=True)
    return Chosen(mask, value, max(value, min(bounds)), bounds[0], order)


def double_greedy(
    function: SetFunction, rng: np.random.Generator | None, deadline: Deadline
) -> Chosen:
    """Each element put into a growing set or taken from a shrinking one; at random with rng.

    The set in which the two meet, and a bound on every set. Ctrl-C and the time limit give the
    better of the two.
    """
    n = function.n
    everything = np.ones(n, np.bool_)
    start, end = map(float, function._values(np.array([~everything, everything])))
    singles = _toggled(function, ~everything, np.arange(n)) - start
    trivial = start + _largest(singles, n)
    state = (~everything, start), (everything, end)
    done = 0
    deadline.armed = True
    try:
        for i in range(n):
            deadline.check()
            (grown, at_grown), (shrunk, at_shrunk) = state
            pair = np.array([grown, shrunk])
            pair[:, i] = [True, False]
            with_i, without_i = map(float, function._values(pair))
            gain, relief = with_i - at_grown, without_i - at_shrunk
            if rng is None:
                take = gain >= relief
            else:
                # Both at most 0 only when both are 0, if F is submodular; either choice will do.
                gain, relief = max(gain, 0.0), max(relief, 0.0)
                take = relief <= 0 or rng.random() * (gain + relief) < gain
            state = ((pair[0], with_i), state[1]) if take else (state[0], (pair[1], without_i))
            done += 1
        grown, value = state[0]
        losses = _losses(function, np.arange(n))
        rest = np.flatnonzero(~grown)
        bounds = [
            value + _largest(_toggled(function, grown, rest) - value, n) + losses[grown].sum(),
            trivial,
            end + losses.sum(),
        ]
    except KeyboardInterrupt:
        if not done and not deadline.struck:
            raise
        mask, value = max(state, key=lambda pair: pair[1])
        bound = max(value, trivial)
        return Chosen(mask, value, bound, trivial, np.flatnonzero(mask), interrupted=True)
    if rng is None:
        bounds.append(3 * value - start - end)
    bound = max(value, float(min(bounds)))
    return Chosen(grown, value, bound, trivial, np.flatnonzero(grown))


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
