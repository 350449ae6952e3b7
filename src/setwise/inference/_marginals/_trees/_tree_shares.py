r"""Orders of elimination for a bound of trees, and the shares of edges.

Any shares with :math:`\sum_e \rho_e = 1` over the edges from each variable to later ones give a
bound, which is exact on a forest. Its derivative with respect to a share is minus the mutual
information of the ends. ``Shares`` are those of one order: :math:`\rho_e \propto \rho_e \exp(\eta
I_e)` is a step of mirror descent. On a grid these are the shares of each pixel's edges to the right
and down.

A ``Cover`` is one of several orders, whose bounds have a weighted mean. With forests T of weights
:math:`\alpha_T`, an edge has the share :math:`\rho_e = \sum_{T \ni e} \alpha_T`: the most
informative forests lower the bound most (Frank-Wolfe, as in Wainwright, Jaakkola and Willsky,
2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._edges import Grid
from setwise.inference._marginals._trees._pairs import Pairs

# The approximate number of variables that one thread eliminates at a time. It does not affect
# bounds. Not tuned.
TILE = 1024
# eta, in shares per nat. A quarter or four times this step widens the interval by 5 to 20 %.
STEP = 2.0
# The least share of an edge relative to an even share. A share of 0 would make the bound infinite.
# Not tuned.
LEAST = 0.05
# The number of rounds that move shares. With one round the interval is 2 % wider; with twelve,
# searches take twice the passes without a narrower interval.
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Order:
    """Variables in the order of their elimination, in blocks."""

    variables: IntArray
    """(N,)"""
    starts: IntArray
    """(B + 1,): the starts of the blocks, many of which can be processed at once"""

    def first(self, edges: IntArray) -> IntArray:
        """Return the end of each edge that is eliminated first, (E,)."""
        position = np.empty(len(self.variables), np.int64)
        position[self.variables] = np.arange(len(self.variables))
        places = position[edges]
        return np.asarray(np.where(places[:, 0] < places[:, 1], edges[:, 0], edges[:, 1]))


def order_of(pairs: Pairs, n: int) -> Order:
    """Return an elimination order: by tiles of a grid, by number, or by fewest edges first.

    Other graphs than grids get the second or the third order. A variable with d edges to later
    ones gives each a share of 1 / d, so the order with the smaller maximum of d is chosen.
    """
    grid = pairs.grid
    if grid is not None and prod(grid.sides) == n:
        tiles = _tiles(grid)
        if tiles is not None:
            return tiles
    whole = np.array([0, n] if n else [0])
    natural = np.arange(n)
    if len(pairs.edges) == 0:
        return Order(natural, whole)
    fewest = np.empty(n, np.int64)
    _core.fewest_edges_first(pairs.edges, n, fewest)
    orders = [Order(natural, whole), Order(fewest, whole)]
    counts = [np.bincount(order.first(pairs.edges), minlength=n) for order in orders]
    return orders[0] if counts[0].max() <= counts[1].max() else orders[1]


def _tiles(grid: Grid) -> Order | None:
    """Return tiles of a grid, each scanned in C order; None if its directions conflict.

    The columns of an image are skewed, from (r, c) to (r, c + a r), so that no direction leads into
    an earlier tile.
    """
    steps = np.array(grid.steps, np.int64).reshape(-1, len(grid.sides))
    place = np.indices(grid.sides).reshape(len(grid.sides), -1)
    if (steps < 0).any():
        if len(grid.sides) != 2 or (steps[:, 0] < 0).any() or (steps[steps[:, 0] == 0] < 0).any():
            return None
        down = steps[steps[:, 0] > 0]
        place[1] += place[0] * int(max(0, np.max(-(down[:, 1] // down[:, 0]), initial=0)))
    side = max(2, round(TILE ** (1 / len(grid.sides))))
    tile = place // side
    keys = np.ravel_multi_index(tuple(tile), tuple(tile.max(axis=1) + 1))
    variables = np.argsort(keys, kind="stable")
    counts = np.bincount(keys)
    return Order(variables, np.concatenate([[0], np.cumsum(counts[counts > 0])]))


class Shares:
    """The shares of edges under one order of elimination, and the rounds that move them."""

    def __init__(self, first: IntArray, n: int) -> None:
        """Start from even shares.

        ``first`` (E,) holds, for each edge, the end that is eliminated first. There are n
        variables.
        """
        self._first = first
        self._counts: IntArray = np.bincount(first, minlength=n)
        self.now: FloatArray = np.asarray(1.0 / self._counts[first])
        """(E,)"""
        self.before = self.now
        self.is_forest = not (self._counts > 1).any()
        """Whether all shares are 1, and the bound is log Z."""
        self.rounds = 0 if self.is_forest else ROUNDS
        """The number of remaining rounds."""

    def move(self, informations: FloatArray) -> float:
        """Raise the shares of edges whose ends have more information (E,), in nats.

        Return the decrease of the bound, in nats, that a linear model predicts.
        """
        self.rounds -= 1
        self.before = self.now
        powers = self._sharing(self.now * np.exp(STEP * informations))
        self.now = self._sharing(np.maximum(powers, LEAST / self._counts[self._first]))
        return float((self.now - self.before) @ informations)

    def take_back(self) -> None:
        """Return to the shares before the last move, and end the rounds."""
        self.now, self.rounds = self.before, 0

    def set(self, shares: FloatArray) -> None:
        """Set the shares of an earlier search for good, lowered where they sum to above 1."""
        shares = np.clip(shares.astype(np.float64), LEAST / self._counts[self._first] / 2, 1.0)
        sums = np.bincount(self._first, shares, minlength=len(self._counts))
        self.now, self.rounds = shares / np.maximum(sums, 1.0)[self._first], 0

    def _sharing(self, heights: FloatArray) -> FloatArray:
        """Return shares that are proportional to ``heights`` and sum to 1 for each variable."""
        sums = np.bincount(self._first, heights, minlength=len(self._counts))
        return np.minimum(heights / sums[self._first], 1.0)


class Cover(NamedTuple):
    """An order of elimination with shares, and the weight of its bound in the mean."""

    weight: float
    order: IntArray
    """(N,)"""
    shares: FloatArray
    """(E,): the shares of edges, 0 for omitted edges"""


def shares_of(covers: list[Cover]) -> FloatArray:
    """Return the mean of the covers' shares, (E,)."""
    total: FloatArray = np.sum([cover.weight * cover.shares for cover in covers], axis=0)
    return np.minimum(total, 1.0)


def strongest_forest(edges: IntArray, informations: FloatArray, n: int) -> Cover:
    """Return the spanning forest of most information, with weight 1."""
    kept = np.empty(len(edges), np.uint8)
    _core.spanning_forest(edges, n, informations, kept)
    order = np.empty(n, np.int64)
    _core.fewest_edges_first(np.ascontiguousarray(edges[kept > 0]), n, order)
    return Cover(1.0, order, kept.astype(np.float64))


def mixed(covers: list[Cover], forest: Cover, weight: float) -> list[Cover]:
    """Add a forest with a weight to the covers, whose weights are scaled to the rest."""
    lighter = [cover._replace(weight=(1.0 - weight) * cover.weight) for cover in covers]
    return [*lighter, forest._replace(weight=weight)]


def bound_of(kernel: Any, covers: list[Cover]) -> float:
    """Return the mean of the covers' bounds on log Z, at the kernel's messages."""
    return float(
        sum(cover.weight * kernel.cover_bound(cover.order, cover.shares) for cover in covers)
    )


def as_numbers(covers: list[Cover]) -> FloatArray:
    """Return the covers as one array, for ``from_numbers``."""
    parts: list[Any] = [[float(len(covers))]]
    for cover in covers:
        parts += [[cover.weight], cover.order, cover.shares]
    return np.concatenate(parts)


def from_numbers(numbers: FloatArray, edges: IntArray, n: int) -> list[Cover]:
    """Read the covers of a graph from an array; the list is empty if the array does not fit."""
    size = 1 + n + len(edges)
    count = int(numbers[0]) if len(numbers) else 0
    if count < 1 or len(numbers) != 1 + count * size:
        return []
    covers = [
        Cover(float(row[0]), row[1 : 1 + n].astype(np.int64), row[1 + n :].copy())
        for row in numbers[1:].reshape(count, size)
    ]
    total = sum(cover.weight for cover in covers)  # the sum is not exactly 1 in single precision
    covers = [cover._replace(weight=cover.weight / total) for cover in covers]
    shared = [_shared_out(cover, edges) for cover in covers]
    return [cover for cover in shared if cover] if all(shared) else []


def _shared_out(cover: Cover, edges: IntArray) -> Cover | None:
    """Return a valid cover, or None if the shares from a variable to later ones sum to above 1.

    A sum above 1 by a rounding error of single precision is divided out.
    """
    n = len(cover.order)
    if (
        not np.array_equal(np.sort(cover.order), np.arange(n))
        or (cover.shares < 0).any()
        or cover.weight < 0
    ):
        return None
    place = np.argsort(cover.order)[edges]
    first = np.where(place[:, 0] < place[:, 1], edges[:, 0], edges[:, 1])
    sums = np.bincount(first, cover.shares, minlength=n)
    if (sums > 1.0 + 1e-5).any():
        return None
    return cover._replace(shares=cover.shares / np.maximum(sums, 1.0)[first])
