"""Swap moves: all variables of two labels may exchange them."""

from __future__ import annotations

from itertools import combinations

from setwise.fields._field import Field
from setwise.fields._terms import TransitionTerm
from setwise.inference._map._moves._cut import best_of_two
from setwise.inference._map._moves._search import MoveSearch
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult


def swap(field: Field, options: MapOptions) -> MapResult:
    r"""Find a labelling that no swap improves (Boykov, Veksler, Zabih, PAMI 2001).

    A swap of a and b relabels the variables of these two labels, each with a or b; the best such
    labelling is a minimum cut, exactly. Tables need :math:`\theta(a, a) + \theta(b, b) \le
    \theta(a, b) + \theta(b, a)`, which is less than an expansion needs. Unused labels are included.
    With at most two labels one swap is the whole problem, and the result is optimal.

    Costs of label transitions are concave in the number n of edges that join two labels: each is
    replaced by its tangent at the current n. The best swap for the tangents is made if it decreases
    the energy, and this is repeated. Such a swap need not be the best one.
    """
    moves_decide = any(isinstance(term, TransitionTerm) for _, term in field._terms())
    if field.n_labels <= 2 and not moves_decide:
        return best_of_two(field, "swap", options)
    return MoveSearch(
        field,
        "swap",
        list(combinations(range(field.n_labels), 2)),
        lambda kernel, move: kernel.swap(*move),
        options,
    ).run()
