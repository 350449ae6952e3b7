r"""Which spanning forests a bound is the mean of, with what weights.

With forests T of weights :math:`\alpha_T`, an edge has the share :math:`\rho_e = \sum_{T \ni e}
\alpha_T`, and the derivative of the bound with respect to it is minus the information that the
edge's ends have about each other: forests of much information are worth most (Frank-Wolfe, as in
Wainwright, Jaakkola and Willsky, 2005).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray


class Cover(NamedTuple):
    """An order of elimination with shares, and the weight of its bound in the mean."""

    weight: float
    order: IntArray
    """(N,)"""
    shares: FloatArray
    """(E,): 0 for edges that are left out"""


def shares_of(covers: list[Cover]) -> FloatArray:
    """(E,): the mean of the covers' shares."""
    total: FloatArray = np.sum([cover.weight * cover.shares for cover in covers], axis=0)
    return np.minimum(total, 1.0)


def strongest_forest(edges: IntArray, informations: FloatArray, n: int) -> Cover:
    """The spanning forest of most information, of weight 1."""
    kept = np.empty(len(edges), np.uint8)
    _core.spanning_forest(edges, n, informations, kept)
    order = np.empty(n, np.int64)
    _core.fewest_edges_first(np.ascontiguousarray(edges[kept > 0]), n, order)
    return Cover(1.0, order, kept.astype(np.float64))


def mixed(covers: list[Cover], forest: Cover, weight: float) -> list[Cover]:
    """The covers and a forest of a weight; their weights fall to the rest."""
    lighter = [cover._replace(weight=(1.0 - weight) * cover.weight) for cover in covers]
    return [*lighter, forest._replace(weight=weight)]


def bound_of(kernel: Any, covers: list[Cover]) -> float:
    """The mean of the covers' bounds on log Z, at the kernel's messages."""
    return float(
        sum(cover.weight * kernel.cover_bound(cover.order, cover.shares) for cover in covers)
    )


def as_numbers(covers: list[Cover]) -> FloatArray:
    """The covers as one array, for ``from_numbers``."""
    parts: list[Any] = [[float(len(covers))]]
    for cover in covers:
        parts += [[cover.weight], cover.order, cover.shares]
    return np.concatenate(parts)


def from_numbers(numbers: FloatArray, edges: IntArray, n: int) -> list[Cover]:
    """The covers of a graph that an array has; none if they are not of this graph."""
    size = 1 + n + len(edges)
    count = int(numbers[0]) if len(numbers) else 0
    if count < 1 or len(numbers) != 1 + count * size:
        return []
    covers = [
        Cover(float(row[0]), row[1 : 1 + n].astype(np.int64), row[1 + n :].copy())
        for row in numbers[1:].reshape(count, size)
    ]
    total = sum(cover.weight for cover in covers)  # not quite 1 in single precision
    covers = [cover._replace(weight=cover.weight / total) for cover in covers]
    shared = [_shared_out(cover, edges) for cover in covers]
    return [cover for cover in shared if cover] if all(shared) else []


def _shared_out(cover: Cover, edges: IntArray) -> Cover | None:
    """The cover if the edges from each variable to later ones share out at most 1.

    Thirds in single precision sum to a little more, and are lowered.
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
