"""The Lovász extension and the vertices of the base polytope: one greedy pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_numbers
from setwise.functions._base import SetFunction, as_set_function


def base_vertex(function: SetFunction, w: ArrayLike) -> FloatArray:
    r"""Return a vertex of the base polytope that maximises <w, .> (Edmonds' greedy algorithm).

    Its entries are the gains of F along the elements sorted by decreasing w. For a submodular F
    it solves :math:`\max_{\mu \in B(F)} \langle w, \mu \rangle` (Lovász hinge paper,
    Proposition 3). For any F it is the gradient of the Lovász extension where this is
    differentiable.

    Parameters
    ----------
    function : SetFunction
    w : array of shape (n,)

    Returns
    -------
    mu : array of shape (n,)
        The vertex. Its entries sum to F(V) - F(empty). It costs one sort and one greedy pass.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Cardinality([0.0, 1.0, 1.5])
    >>> sw.functions.base_vertex(F, [0.2, 0.7]).tolist()
    [0.5, 1.0]
    """
    direction = as_numbers(w, "w", shape=(as_set_function(function).n,))
    order = np.argsort(-direction, kind="stable")
    vertex = np.empty(function.n)
    vertex[order] = function._gains(order)
    return vertex


def lovasz_extension(function: SetFunction, w: ArrayLike) -> float:
    r"""Evaluate the Lovász extension of F - F(empty) at w (Lovász hinge paper, equation (32)).

    .. math:: \hat F(w) = \sum_k w_{o_k} \bigl(F(\{o_0..o_k\}) - F(\{o_0..o_{k-1}\})\bigr),
        \qquad w_{o_0} \ge w_{o_1} \ge \dots

    It equals F(A) - F(empty) at the indicator of A, is piecewise linear, and is convex if and only
    if F is submodular (Proposition 5). w may lie outside the unit cube.

    Parameters
    ----------
    function : SetFunction
    w : array of shape (n,)

    Returns
    -------
    value : float
        The value, which costs one sort and one greedy pass.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Cardinality([0.0, 1.0, 1.5])
    >>> round(sw.functions.lovasz_extension(F, [0.2, 0.7]), 3)
    0.8
    """
    return float(
        as_numbers(w, "w", shape=(as_set_function(function).n,)) @ base_vertex(function, w)
    )
