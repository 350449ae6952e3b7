"""Expansion moves: every variable may keep its label or take a common new one."""

from __future__ import annotations

from setwise.fields._field import Field
from setwise.inference._map._moves._cut import best_of_two
from setwise.inference._map._moves._search import MoveSearch
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult


def expansion(field: Field, options: MapOptions) -> MapResult:
    r"""Find a labelling that no expansion improves (Boykov, Veksler, Zabih, PAMI 2001).

    An expansion to label a lets any set of variables take a, the others keep their labels; the best
    of these :math:`2^N` labellings is a minimum cut, exactly, also with functions of counts and
    with label costs. For Potts terms the energy is at most twice the least (Theorem 6.1). Tables
    need :math:`\theta(a, a) + \theta(b, c) \le \theta(b, a) + \theta(a, c)`. With at most two
    labels the result is optimal, by ``cut``.

    A move costs a maximum flow over the variables that may gain from it; with edges only, over the
    parts of the field that changed since the label's last move. Functions of counts are first
    replaced by linear lower and upper bounds. A few flows over edges then bracket the best move
    between two sets, and auxiliary nodes are needed only for the variables between them.
    """
    if field.n_labels <= 2:
        return best_of_two(field, "expansion", options)
    return MoveSearch(
        field,
        "expansion",
        [(a,) for a in range(field.n_labels)],
        lambda kernel, move: kernel.expand(*move),
        options,
    ).run()
