"""The few forms that every potential comes down to: what inference reads instead of potentials.

A potential translates itself into terms for a field of N variables and L labels; a method says
which kinds of terms it takes. So a new potential works with every method that takes its terms, and
a new method need not know the potentials.
"""

from setwise.fields._terms._base import Term, rounding_of_heights
from setwise.fields._terms._cliques import CliqueTerm
from setwise.fields._terms._fold import Folded, fold, sum_constants
from setwise.fields._terms._label_counts import CardinalityTerm, LabelTerm
from setwise.fields._terms._pairs import PottsTerm, TableTerm, TransitionTerm
from setwise.fields._terms._region_counts import CountTerm, RobustTerm
from setwise.fields._terms._singles import ConstantTerm, UnaryTerm

KINDS: tuple[type[Term], ...] = (
    ConstantTerm,
    UnaryTerm,
    PottsTerm,
    TableTerm,
    CountTerm,
    RobustTerm,
    LabelTerm,
    TransitionTerm,
    CardinalityTerm,
    CliqueTerm,
)

__all__ = [
    "KINDS",
    "CardinalityTerm",
    "CliqueTerm",
    "ConstantTerm",
    "CountTerm",
    "Folded",
    "LabelTerm",
    "PottsTerm",
    "RobustTerm",
    "TableTerm",
    "Term",
    "TransitionTerm",
    "UnaryTerm",
    "fold",
    "rounding_of_heights",
    "sum_constants",
]
