"""Exact minima of two labels while unaries change: one graph, and the flow of the last answer."""

from __future__ import annotations

import numpy as np

from setwise import _core
from setwise._foundation._arguments import BoolArray, FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import fold
from setwise.inference._flows._energy_as_cut import as_cut


class TwoLabelCut:
    """The potentials of a field of two labels as a cut; a ``ValueError`` where they are none.

    The first answer costs a maximum flow, the next ones what the changes reach. Of all best
    labellings an answer is the one with the fewest ones, whatever was asked before.

    After each answer ``value`` is what its potentials cost, but for a constant that is the same for
    all answers, and ``lost`` by how much another labelling may be better, by what rounding took
    from the flow: 0 where that is within a few units in the last place.

    With ``apart`` changes that reach many variables are solved in blocks, on all threads.
    """

    def __init__(self, field: Field, n_threads: int = 1, *, apart: bool = False) -> None:
        for potential, term in field._terms():
            if not term.is_submodular:
                raise ValueError(f"field must be submodular for a cut, {potential!r} is not")
        unary = fold(np.zeros(field.unary.shape), field._terms()).unary
        cut = as_cut(field, unary)
        self._cut = _core.make_changing_cut(cut.costs, cut.edges, cut.there, cut.back)
        self._n_threads, self._apart = n_threads, apart
        self._answer = np.zeros(3)

    @property
    def value(self) -> float:
        """What the potentials cost in the last answer, but for a constant."""
        return float(self._answer[0])

    @property
    def paid(self) -> float:
        """What the last answer costs, less the least that each cost of a variable may be."""
        return float(self._answer[1])

    @property
    def lost(self) -> float:
        """By how much another labelling may be better than the last answer."""
        return float(self._answer[2])

    def ones(self, costs: FloatArray, share: float = 0.0) -> BoolArray:
        """Which variables take label 1 at the least energy; it costs ``costs`` (N,) more than 0.

        ``inf`` forbids label 1, ``-inf`` label 0. A ``share`` of what the answer pays above the
        least costs of all may be lost to rounding before the flow is found from nothing again.
        """
        inside = np.empty(len(costs), np.bool_)
        self._cut.solve(costs, share, self._apart, inside, self._answer, self._n_threads)
        return inside
