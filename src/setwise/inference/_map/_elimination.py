"""The exact best labelling by variable elimination, for graphs of small treewidth."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise._foundation._search import Ending
from setwise.fields._field import Field
from setwise.inference._map._junction_tree import planned
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._map._search import MapSearch


def eliminate(field: Field, options: MapOptions) -> MapResult:
    r"""Minimise over one variable after the other, then choose labels on the way back.

    .. math:: m_i(x_S) = \min_{x_i} \theta_i(x_i, x_S) + \sum_c m_c(x_i, x_S)

    S are the later variables that share a table or a message with i, and c the variables whose
    messages depend on i. The last message is the least energy, exact up to rounding. Potentials may
    be of any kind, but the tables of potentials over many variables must be small. If several
    labellings are best, one of them is returned. The time is :math:`N L^{w + 1}`, where w is the
    width of the order. Of several elimination orders, the one with the fewest cells in all tables
    is used. If the messages do not fit into memory, some are kept, and those between them are
    computed twice.
    """
    return _Elimination(field, options).run()


class _Elimination(MapSearch):
    method = "elimination"

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        self.limit = 1

    def step(self) -> bool:
        field = self.field
        tree = planned(field, 1.0).tree
        self.options.watch.lap("set-up")
        labels: IntArray = np.empty(field.n_variables, np.int64)
        if -tree.best(labels, self.options.n_threads) == inf:
            raise ValueError("field must have a labelling of finite energy, got none")
        value = float(field._energies(labels[None])[0])
        self.best, self.bound, self.converged = (labels, value), value, True
        return True

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        if ending.n_iter == 0:
            return self.options.not_begun(self.field, self.method)
        return super().result(ending)
