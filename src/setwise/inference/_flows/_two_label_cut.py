"""Exact minima of two labels while unaries change: one graph, and the flow of the last answer."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import fold
from setwise.inference._flows._energy_as_cut import as_cut
from setwise.inference._flows._flow_graph import FlowGraph


class TwoLabelCut:
    """The potentials of a field of two labels as a cut; a ``ValueError`` where they are none.

    The first answer costs a maximum flow, the next ones what the changes reach.
    """

    def __init__(self, field: Field) -> None:
        for potential, term in field._terms():
            if not term.is_submodular:
                raise ValueError(f"field must be submodular for a cut, {potential!r} is not")
        unary = fold(np.zeros(field.unary.shape), field._terms()).unary
        cut = as_cut(field, unary)
        self._costs = cut.costs
        graph = FlowGraph(len(cut.costs), cut.edges, cut.there, cut.back, dtype=np.float64)
        self._graph = graph._graph  # what it is told here needs no second check

    def ones(self, costs: FloatArray) -> BoolArray:
        """Which variables take label 1 at the least energy; it costs ``costs`` (N,) more than 0.

        ``inf`` forbids label 1, ``-inf`` label 0.
        """
        every = self._costs.copy()
        every[: len(costs)] += costs
        self._graph.set_all_terminals(np.maximum(-every, 0.0), np.maximum(every, 0.0))
        self._graph.solve()
        sides = np.empty(len(every), np.bool_)
        self._graph.read_sides(sides)
        return sides[: len(costs)]
