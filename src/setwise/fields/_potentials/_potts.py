"""Potts: a price for each edge whose ends differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._base import Potential, range_in_repr
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._pairs import PottsTerm, as_weights


class Potts(Potential):
    r"""A weight for each edge whose ends take different labels.

    .. math:: \varphi(x) = \sum_{e = (i, j)} w_e \, [x_i \ne x_j], \qquad w \ge 0

    It is submodular for any number of labels: half a cut for each label (Zhang, Djolonga and
    Krause, *Higher-Order Inference for Multi-class Log-supermodular Models*, equation 19). An
    energy costs O(E), compiled.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; repeated edges are added.
    weights : float or array-like of shape (E,)
        Not negative.

    Examples
    --------
    >>> import setwise as sw
    >>> potts = sw.fields.Potts([[0, 1], [1, 2]], [1.0, 3.0])
    >>> field = sw.fields.Field([[0.0, 0.0]] * 3) + potts
    >>> field.energy([[0, 0, 1], [0, 1, 0]]).tolist()
    [3.0, 4.0]
    >>> potts
    Potts(edges=2, weights=1..3)
    """

    edges: IntArray
    weights: FloatArray

    def __init__(self, edges: ArrayLike, weights: ArrayLike) -> None:
        pairs = as_edges(edges)
        self._set(edges=pairs, weights=as_weights(weights, len(pairs)))

    @property
    def is_submodular(self) -> bool:
        return True

    def check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        _core.potts_energies(labels, n_labels, self.edges, self.weights, energies)
        return energies

    def terms(self, n_variables: int, n_labels: int) -> tuple[PottsTerm, ...]:
        return (PottsTerm._of(self.edges, self.weights),)

    def __repr__(self) -> str:
        return f"Potts(edges={len(self.edges)}, weights={range_in_repr(self.weights)})"
