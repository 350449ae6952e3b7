"""Greedy algorithms for submodular maximisation, with the bounds that they prove."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._search import Search
from setwise.functions._base import SetFunction


@dataclass(frozen=True, eq=False)
class Chosen:
    """A set with its value and bounds on the values of the feasible sets."""

    mask: BoolArray
    value: float
    bound: float
    """No feasible set has a higher value if F is submodular, up to rounding."""
    trivial: float
    """The bound that the empty set gives: F(empty) and the largest gains of single elements."""
    order: IntArray
    """The elements in the order in which they were chosen."""


class Greedy(Search[None]):
    """The greedy algorithm for at most k elements, which ends when no gain is positive.

    The bound holds for every set of at most k elements. After Ctrl-C or the time limit the answer
    is the set of elements chosen so far.
    """

    has_answer = True

    def __init__(self, function: SetFunction, k: int) -> None:
        n = function.n
        self._function, self._k = function, k
        mask = np.zeros(n, np.bool_)
        value, order = _at(function, mask), np.zeros(0, np.int64)
        # The value of F with each element added, as last evaluated, and the gain at that time,
        # which is an upper bound on the present gain if F is submodular. Both are meaningless for
        # chosen elements.
        self._reached = _toggled(function, mask, np.arange(n))
        self._upper, self._fresh = self._reached - value, np.ones(n, np.bool_)
        self._state = mask, value, order, [value + _largest(self._upper, k)]
        self._is_complete = False

    def step(self) -> bool:
        """Add the element of the largest gain."""
        mask, value, order, bounds = self._state
        if len(order) == self._k:
            return True
        best = self._first()
        if self._upper[best] <= 0:
            return True
        if len(order):
            bounds = [*bounds, value + _largest(self._upper, self._k)]
        mask, value, order = mask.copy(), float(self._reached[best]), np.append(order, best)
        mask[best], self._upper[best] = True, -np.inf
        self._fresh[:] = mask
        self._state = mask, value, order, bounds
        return False

    def _first(self) -> int:
        """Return the element of the largest gain. Evaluate only gains that may be the largest."""
        lazy = self._function.is_submodular is True
        while True:
            best = int(self._upper.argmax())
            if self._fresh[best]:
                return best
            self._refresh(np.array([best]) if lazy else np.flatnonzero(~self._fresh))

    def _refresh(self, stale: IntArray) -> None:
        mask, value, _, _ = self._state
        self._reached[stale] = _toggled(self._function, mask, stale)
        self._upper[stale], self._fresh[stale] = self._reached[stale] - value, True

    def progress(self, n_iter: int, seconds: float) -> None:
        """Report nothing: ``maximize`` takes no callback."""

    def finish(self) -> None:
        """Compute the bounds at the last set."""
        self._refresh(np.flatnonzero(~self._fresh))
        mask, value, order, bounds = self._state
        bounds = [*bounds[: len(order)], value + _largest(self._upper, self._k)]
        if self._function.is_increasing is not True:
            # The best set may omit some of the elements chosen so far, which can increase the
            # value.
            lost = np.concatenate([[0.0], np.cumsum(_losses(self._function, order))])
            bounds = [bound + loss for bound, loss in zip(bounds, lost, strict=True)]
        self._state, self._is_complete = (mask, value, order, bounds), True

    def chosen(self) -> Chosen:
        """Return the set with its bounds."""
        mask, value, order, bounds = self._state
        every = self._is_complete or self._function.is_increasing is True
        bound = min(bounds) if every else bounds[0]
        return Chosen(mask, value, max(value, bound), bounds[0], order)


class DoubleGreedy(Search[None]):
    """The double greedy algorithm with a growing and a shrinking set; random if it has an rng.

    Each step adds an element to the growing set or removes it from the shrinking one. The bound
    holds for every set. After Ctrl-C or the time limit the answer is the better of the two sets.
    """

    has_answer = True

    def __init__(self, function: SetFunction, rng: np.random.Generator | None) -> None:
        self._function, self._rng = function, rng
        everything = np.ones(function.n, np.bool_)
        start, end = map(float, function._values(np.array([~everything, everything])))
        singles = _toggled(function, ~everything, np.arange(function.n)) - start
        self._trivial = start + _largest(singles, function.n)
        self._ends = start, end
        self._state = (~everything, start), (everything, end)
        self._i = 0
        self._bounds: list[float] | None = None

    def step(self) -> bool:
        """Decide one element."""
        i = self._i
        if i == self._function.n:
            return True
        (grown, at_grown), (shrunk, at_shrunk) = self._state
        pair = np.array([grown, shrunk])
        pair[:, i] = [True, False]
        with_i, without_i = map(float, self._function._values(pair))
        gain, relief = with_i - at_grown, without_i - at_shrunk
        if self._rng is None:
            take = gain >= relief
        else:
            # If F is submodular, both are at most 0 only if both are 0; then either choice is
            # right.
            gain, relief = max(gain, 0.0), max(relief, 0.0)
            take = relief <= 0 or self._rng.random() * (gain + relief) < gain
        first, second = self._state
        self._state = ((pair[0], with_i), second) if take else (first, (pair[1], without_i))
        self._i += 1
        return False

    def progress(self, n_iter: int, seconds: float) -> None:
        """Report nothing: ``maximize`` takes no callback."""

    def finish(self) -> None:
        """Compute the bounds at the set where the two sets are equal."""
        function = self._function
        grown, value = self._state[0]
        losses = _losses(function, np.arange(function.n))
        rest = np.flatnonzero(~grown)
        most = value + _largest(_toggled(function, grown, rest) - value, function.n)
        start, end = self._ends
        bounds = [most + losses[grown].sum(), self._trivial, end + losses.sum()]
        if self._rng is None:
            bounds.append(3 * value - start - end)
        self._bounds = bounds

    def chosen(self) -> Chosen:
        """Return the set with its bounds."""
        mask, value = self._state[0]
        bounds = self._bounds
        if bounds is None:  # the search was cut short
            mask, value = max(self._state, key=lambda pair: pair[1])
            bounds = [self._trivial]
        bound = max(value, float(min(bounds)))
        return Chosen(mask, value, bound, self._trivial, np.flatnonzero(mask))


def _at(function: SetFunction, mask: BoolArray) -> float:
    return float(function._values(mask[None])[0])


def _toggled(function: SetFunction, mask: BoolArray, elements: IntArray) -> FloatArray:
    """Return F of the set with each element added, or removed if it is in the set."""
    values = np.empty(len(elements))
    rows = max(1, (1 << 22) // max(1, function.n))
    for start in range(0, len(elements), rows):
        part = elements[start : start + rows]
        masks = np.repeat(mask[None], len(part), axis=0)
        masks[np.arange(len(part)), part] ^= True
        values[start : start + rows] = function._values(masks)
    return values


def _losses(function: SetFunction, elements: IntArray) -> FloatArray:
    """Return d_i = max(0, F(V - i) - F(V)) for each element."""
    everything = np.ones(function.n, np.bool_)
    return np.maximum(_toggled(function, everything, elements) - _at(function, everything), 0.0)


def _largest(gains: FloatArray, k: int) -> float:
    """Return the sum of the k largest positive gains."""
    positive = gains[gains > 0]
    if 0 < k < len(positive):
        positive = -np.partition(-positive, k - 1)
    return float(positive[:k].sum())
