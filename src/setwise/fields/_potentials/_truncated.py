"""TruncatedLinear and TruncatedQuadratic: costs of the distance between the labels of an edge."""

from __future__ import annotations

from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_number
from setwise.fields._base import Potential, range_in_repr
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._pairs import as_weights
from setwise.fields._terms._tables import TableTerm, of_tables


class _Truncated(Potential):
    """A weight for each edge times a truncated power of the distance between its labels."""

    power: ClassVar[int]

    edges: IntArray
    weights: FloatArray
    truncation: float

    def __init__(self, edges: ArrayLike, weights: ArrayLike, truncation: float = inf) -> None:
        pairs = as_edges(edges)
        limit = inf if truncation == inf else as_number(truncation, "truncation", positive=True)
        self._set(edges=pairs, weights=as_weights(weights, len(pairs)), truncation=limit)

    def check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)

    def terms(self, n_variables: int, n_labels: int) -> tuple[TableTerm, ...]:
        labels = np.arange(float(n_labels))
        distance = np.abs(labels[:, None] - labels) ** self.power
        table = np.minimum(distance, self.truncation)
        return (of_tables(self.edges, table, self.weights),) if len(self.edges) else ()

    def __repr__(self) -> str:
        weights = range_in_repr(self.weights)
        limit = "" if self.truncation == inf else f", truncation={self.truncation:g}"
        return f"{type(self).__name__}(edges={len(self.edges)}, weights={weights}{limit})"


class TruncatedLinear(_Truncated):
    r"""A weight for each edge times the distance between its labels, up to a limit.

    .. math:: \varphi(x) = \sum_{e = (i, j)} w_e \, \min(|x_i - x_j|, \tau)

    This suits labels that are levels in order, such as disparities or grey values. It is a metric,
    so that expansion moves apply. With :math:`\tau \le 1` it is a Potts potential. Memory is E
    numbers, and an energy costs O(E), compiled.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; repeated edges are added.
    weights : float or array-like of shape (E,)
        Not negative.
    truncation : float, default=inf
        The limit :math:`\tau` of the distance, positive.

    Examples
    --------
    >>> import setwise as sw
    >>> linear = sw.fields.TruncatedLinear([[0, 1], [1, 2]], [1.0, 0.5], truncation=2.0)
    >>> (sw.fields.Field([[0.0] * 4] * 3) + linear).energy([0, 3, 2])
    2.5
    >>> linear
    TruncatedLinear(edges=2, weights=0.5..1, truncation=2)
    """

    power = 1


class TruncatedQuadratic(_Truncated):
    r"""A weight for each edge times the squared distance between its labels, up to a limit.

    .. math:: \varphi(x) = \sum_{e = (i, j)} w_e \, \min((x_i - x_j)^2, \tau)

    This suits labels that are levels of a smooth quantity. It is not a metric unless it is a Potts
    potential, so that swap moves and messages apply, but no expansion moves. Memory is E numbers,
    and an energy costs O(E), compiled.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; repeated edges are added.
    weights : float or array-like of shape (E,)
        Not negative.
    truncation : float, default=inf
        The limit :math:`\tau` of the squared distance, positive.

    Examples
    --------
    >>> import setwise as sw
    >>> quadratic = sw.fields.TruncatedQuadratic([[0, 1], [1, 2]], 0.5, truncation=5.0)
    >>> (sw.fields.Field([[0.0] * 4] * 3) + quadratic).energy([0, 3, 1])
    4.5
    >>> quadratic
    TruncatedQuadratic(edges=2, weights=0.5, truncation=5)
    """

    power = 2
