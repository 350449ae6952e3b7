"""The methods of ``solve_map``, as records, in the order in which "auto" tries them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._methods import Method, Methods, always, refused, taken
from setwise.fields._field import Field
from setwise.fields._terms import (
    KINDS,
    CliqueTerm,
    ConstantTerm,
    PottsTerm,
    TableTerm,
    UnaryTerm,
)
from setwise.inference._map._branching._branch_and_bound import (
    TAKEN_BY_BRANCHING,
    branch_and_bound,
    is_hard,
    size_of_network,
)
from setwise.inference._map._branching._windows import windows
from setwise.inference._map._convex import convex
from setwise.inference._map._elimination import eliminate
from setwise.inference._map._enumerate import (
    FEW_LABELINGS,
    MOST_LABELINGS,
    count_labelings,
    enumerate_labels,
)
from setwise.inference._map._junction_tree import is_cheaper, narrow
from setwise.inference._map._messages._factor_graph import TAKEN_BY_MESSAGES
from setwise.inference._map._messages._messages import messages
from setwise.inference._map._moves._cut import cut
from setwise.inference._map._moves._expansion import expansion
from setwise.inference._map._moves._swap import swap
from setwise.inference._map._moves._terms import (
    NOT_PAIRS,
    TAKEN_BY_CUT,
    TAKEN_BY_EXPANSION,
    TAKEN_BY_SWAP,
)
from setwise.inference._map._odd_cycles._odd_cycles import MOST_VARIABLES, odd_cycles
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult

TAKEN_BY_ODD_CYCLES = dict.fromkeys(KINDS, refused("it joins more than pairs")) | dict.fromkeys(
    (ConstantTerm, UnaryTerm, PottsTerm, TableTerm), taken
)
TAKEN_BY_ODD_CYCLES[CliqueTerm] = refused(NOT_PAIRS)
EVERY_TERM = dict.fromkeys(KINDS, taken)


def _two_labels(field: Field) -> str | None:
    if field.n_labels <= 2:
        return None
    return f"a field of at most two labels, got {field.n_labels}"


def _two_labels_and_few_edges(field: Field) -> str | None:
    if field.n_labels != 2:
        return f"a field of two labels, got {field.n_labels}"
    if field.n_variables > MOST_VARIABLES:
        return f"at most {MOST_VARIABLES} variables, got {field.n_variables}"
    return None


def _finite(term: CliqueTerm) -> str | None:
    return "it forbids labellings: elimination, branch_and_bound take it" if term.is_hard else None


def _enough_time(field: Field) -> str | None:
    total = count_labelings(field)
    if total <= MOST_LABELINGS:
        return None
    got = "over 1e15" if total == np.inf else total
    return f"at most {MOST_LABELINGS:.0e} labellings, got {got}"


METHODS: Methods[Callable[[Field, MapOptions], MapResult]] = Methods(
    Method(
        name="cut",
        run=cut,
        fields="two labels, submodular",
        answer="exact: a minimum cut",
        is_exact=True,
        takes=TAKEN_BY_CUT,
        needs=_two_labels,
        by_cut=True,
        auto=always,
        because="at most two labels and a submodular energy: a cut is exact",
    ),
    Method(
        name="enumerate",
        run=enumerate_labels,
        fields="at most about 2e7 labellings",
        answer="exact",
        is_exact=True,
        takes=EVERY_TERM,
        needs=_enough_time,
        takes_start=False,
        adds_costs_only=True,
        auto=lambda field: count_labelings(field) <= FEW_LABELINGS,
        because="no cut is exact, and the labellings are few",
    ),
    Method(
        name="elimination",
        run=eliminate,
        fields="of small width; tables of any kind on few variables",
        answer="exact: variable by variable",
        is_exact=True,
        takes=EVERY_TERM,
        needs=narrow,
        takes_start=False,
        auto=is_cheaper,
        because="no cut is exact, and the graph is narrow: elimination is",
    ),
    Method(
        name="odd_cycles",
        run=odd_cycles,
        fields="two labels, pairs of any sign",
        answer="exact: a linear program with odd-cycle inequalities, and branching",
        is_exact=True,
        takes=TAKEN_BY_ODD_CYCLES,
        needs=_two_labels_and_few_edges,
    ),
    Method(
        name="branch_and_bound",
        run=branch_and_bound,
        fields="pairs, tables of any kind on few variables, forbidden combinations",
        answer="exact: a search over the labels, bounded by messages",
        is_exact=True,
        takes=TAKEN_BY_BRANCHING,
        needs=size_of_network,
        auto=is_hard,
        because="a table forbids labellings, and the graph is too wide for elimination",
    ),
    Method(
        name="windows",
        run=windows,
        fields="any number of labels, pairs of any kind",
        answer="mostly exact: searches where the messages leave a gap",
        takes=TAKEN_BY_ODD_CYCLES,
        needs=size_of_network,
    ),
    Method(
        name="expansion",
        run=expansion,
        fields="any number of labels; metric tables, regions, label costs",
        answer="no expansion to a label is better; bounded by messages, else as ``convex``",
        takes=TAKEN_BY_EXPANSION,
        gives_bound=False,
        auto=always,
        because="more than two labels, and every potential can take expansion moves",
    ),
    Method(
        name="messages",
        run=messages,
        fields="any pairwise tables, any function of a count, tables of several variables",
        answer="max-product and dual decomposition",
        takes=TAKEN_BY_MESSAGES,
        spare=True,
        gives_way=True,
        auto=always,
        because="{expansion}",
    ),
    Method(
        name="swap",
        run=swap,
        fields="tables with zero diagonal and more, label transitions",
        answer="no swap of two labels is better; bounded by messages, else as ``convex``",
        takes=TAKEN_BY_SWAP,
        gives_bound=False,
        spare=True,
        auto=always,
        because="{messages}",
    ),
    Method(
        name="convex",
        run=convex,
        fields="any, transitions and tables through a submodular minorant",
        answer="rounded minimiser of the Lovász relaxation, and its bound",
        takes=EVERY_TERM | {CliqueTerm: _finite},
        spare=True,
        auto=always,
        because="{messages}; {swap}",
    ),
)
