"""The methods of ``marginals``, as records, in the order in which "auto" tries them."""

from __future__ import annotations

from collections.abc import Callable

from setwise._foundation._methods import Method, Methods, always, refused, taken
from setwise.fields._field import Field
from setwise.fields._terms import (
    KINDS,
    CardinalityTerm,
    CliqueTerm,
    ConstantTerm,
    PottsTerm,
    TableTerm,
    Term,
    UnaryTerm,
)
from setwise.inference._map._junction_tree import narrow
from setwise.inference._map._methods import EVERY_TERM
from setwise.inference._marginals._counts._count_factors import COUNTED
from setwise.inference._marginals._counts._counts import counts, few_counts, lacks_counts
from setwise.inference._marginals._elimination import (
    elimination,
    forbids,
    is_worth_eliminating,
)
from setwise.inference._marginals._exact_binary import exact_binary
from setwise.inference._marginals._fixed_points import belief_propagation, mean_field
from setwise.inference._marginals._frank_wolfe import frank_wolfe
from setwise.inference._marginals._perturb import perturb
from setwise.inference._marginals._projection import projection
from setwise.inference._marginals._search import MarginalsOptions, MarginalsSolution
from setwise.inference._marginals._trees._tree_descent import trees

Run = Callable[[Field, MarginalsOptions], MarginalsSolution]


def _submodular(term: Term) -> str | None:
    return None if term.is_submodular else "it is not submodular in the pairs (variable, label)"


def _submodular_around_a_label(term: CardinalityTerm) -> str | None:
    if len(term.center) and (term.center != term.center[0]).any():
        return "its center must be the same label for all variables"
    return _submodular(term)


def _two_labels(field: Field) -> str | None:
    return None if field.n_labels == 2 else f"a field of two labels, got {field.n_labels}"


def _has_pairs(field: Field) -> bool:
    return any(isinstance(term, PottsTerm | TableTerm) for _, term in field._terms())


# for probabilities that are minus the gradient of the bound with respect to the unaries
_UPPER = "the upper bound, whose gradient they are"

_CLIQUES = refused(
    "it is a table of several variables, or forbids: elimination, mean_field and "
    "belief_propagation take it"
)
_SUBMODULAR = dict.fromkeys(KINDS, _submodular) | {CliqueTerm: _CLIQUES}
_PAIRS = dict.fromkeys(KINDS, refused("it joins more than pairs")) | dict.fromkeys(
    (ConstantTerm, UnaryTerm, PottsTerm, TableTerm, CliqueTerm), taken
)

_COUNTS = dict.fromkeys(KINDS, refused("it is neither a pair nor a function of one count")) | (
    dict.fromkeys((ConstantTerm, UnaryTerm, PottsTerm, TableTerm, *COUNTED), taken)
)

METHODS: Methods[Run] = Methods(
    Method(
        name="elimination",
        run=elimination,
        fields="of small width",
        answer="log Z and the marginals exactly, variable by variable",
        of="the field itself: they are exact",
        takes=EVERY_TERM,
        needs=narrow,
        takes_start=False,
        auto=is_worth_eliminating,
        because="the graph is narrow: elimination is exact, and cheap",
    ),
    Method(
        name="counts",
        run=counts,
        fields="two labels: pairs and any functions of counts; one count alone: any labels",
        answer="a bound that keeps counts as well as pairs; without pairs log Z itself",
        of=_UPPER,
        takes=_COUNTS,
        needs=lacks_counts,
        takes_start=False,
        auto=few_counts,
        because="it keeps functions of counts, and the pairs: the narrower interval around log Z",
        falls_back="trees",
    ),
    Method(
        name="trees",
        run=trees,
        fields="pairs of any kind, else submodular",
        answer="a lower upper bound that keeps the pairs, on forests log Z; over threads",
        of=_UPPER,
        takes=_SUBMODULAR | dict.fromkeys((PottsTerm, TableTerm), taken),
        auto=_has_pairs,
        because="it keeps the pairs: the narrower interval around log Z in the time of projection",
    ),
    Method(
        name="projection",
        run=projection,
        fields="submodular",
        answer="the least upper bound, by passes of exact block steps; over threads",
        of=_UPPER,
        takes=_SUBMODULAR,
        auto=always,
        because="no pairs, and the energy is submodular: the least upper bound on log Z",
    ),
    Method(
        name="frank_wolfe",
        run=frank_wolfe,
        fields="submodular",
        answer="the same, steps 2 / (k + 2): the paper's",
        of=_UPPER,
        takes=_SUBMODULAR,
    ),
    Method(
        name="exact_binary",
        run=exact_binary,
        fields="two labels, submodular",
        answer="the same, exactly, by cuts",
        of=_UPPER,
        takes=_SUBMODULAR | {CardinalityTerm: _submodular_around_a_label},
        needs=_two_labels,
        takes_start=False,
    ),
    Method(
        name="belief_propagation",
        run=belief_propagation,
        fields="unaries, pairs, cliques",
        answer="a fixed point, on trees exact",
        of="no bound: a fixed point",
        takes=_PAIRS,
        gives_bound=False,
        takes_start=False,
        certified=False,
        auto=forbids,
        because="tables forbid labellings, and the graph is wide: a factorised bound may know none",
    ),
    Method(
        name="mean_field",
        run=mean_field,
        fields="any",
        answer="a local maximum of the lower bound",
        of="the lower bound, which has no other",
        takes=EVERY_TERM,
        gives_bound=False,
        certified=False,
        auto=always,
        because="{projection}: no upper bound, a lower one only",
    ),
    Method(
        name="perturb",
        run=perturb,
        fields="any",
        answer="how often a label is the best one under Gumbel noise; log Z bounded up to chance",
        of="no bound: samples",
        takes=EVERY_TERM,
        takes_start=False,
        certified=False,
    ),
)
