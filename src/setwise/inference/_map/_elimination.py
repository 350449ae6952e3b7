"""The best labelling exactly, by the elimination of variables, where the graph is narrow."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise.fields._field import Field
from setwise.inference._map._junction_tree import planned
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult


def eliminate(field: Field, options: MapOptions) -> MapResult:
    r"""Minimise over one variable after the other, then choose labels on the way back.

    .. math:: m_i(x_S) = \min_{x_i} \theta_i(x_i, x_S) + \sum_c m_c(x_i, x_S)

    S are the later variables that share a table or a message with i, and c those whose messages
    are about i. The last message is the least energy, exact but for rounding, with potentials of
    any kind: those of many variables at once must be small. Of several best labellings it finds
    one. Time and memory are :math:`N L^{w + 1}`, w the width of the order, in which each variable
    adds the fewest edges.
    """
    try:
        tree, _, _ = planned(field, 1.0)
        options.watch.lap("set-up")
        labels: IntArray = np.empty(field.n_variables, np.int64)
        lowest = -tree.best(labels)
    except KeyboardInterrupt:
        return options.not_begun(field, "elimination")
    if lowest == inf:
        raise ValueError("field must have a labelling of finite energy, got none")
    value = float(field._energies(labels[None])[0])
    interrupted = False
    try:
        options.ends(1, value, value)
    except KeyboardInterrupt:
        interrupted = True
    result = options.result(labels, value, value, method="elimination", n_iter=1, converged=True)
    return replace(result, interrupted=interrupted)
