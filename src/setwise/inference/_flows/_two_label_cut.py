"""Exact minima of two labels under changing unaries, by one graph with warm starts."""

from __future__ import annotations

import numpy as np

from setwise import _core
from setwise._foundation._arguments import BoolArray, FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import fold
from setwise.inference._flows._energy_as_cut import as_cut


class TwoLabelCut:
    """The potentials of a field of two labels as a cut.

    The constructor raises a ``ValueError`` if a cut cannot represent them. The first answer costs a
    maximum flow. The cost of a later answer is proportional to the part of the graph that the
    changes affect. Among all best labellings the answer is the one with the fewest ones, whatever
    the earlier calls were.

    After each answer ``value`` is the energy of its potentials, up to a constant that is the same
    for all answers. ``lost`` bounds the gap to other labellings that is due to rounding of the
    flow. It is 0 if that is within a few units in the last place.

    With ``apart``, changes that affect many variables are solved in blocks, on all threads.
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
        """The energy of the potentials in the last answer, up to a constant."""
        return float(self._answer[0])

    @property
    def above_least(self) -> float:
        """The cost of the last answer minus the least cost of each variable."""
        return float(self._answer[1])

    @property
    def lost(self) -> float:
        """The amount by which another labelling may be better than the last answer."""
        return float(self._answer[2])

    def ones(self, costs: FloatArray, share: float = 0.0) -> BoolArray:
        """Return which variables take label 1 at the least energy.

        Label 1 costs ``costs`` (N,) more than label 0; ``inf`` forbids label 1, ``-inf`` label 0.
        If rounding lowers the flow by more than ``share`` times ``above_least``, the flow is
        computed again from zero.
        """
        inside = np.empty(len(costs), np.bool_)
        self._cut.solve(costs, share, self._apart, inside, self._answer, self._n_threads)
        return inside
